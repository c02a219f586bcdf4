"""What captured code reads of the outside world goes through ``dynamo/tracing/world.py``, which leaves a guard: no other file of capture reads an attribute
of a user's object by itself. The places below are those that may, and why."""

import ast
import pathlib

import flambeau.dynamo

ROOT = pathlib.Path(flambeau.dynamo.__file__).parent
# Expressions that stand for objects of the program.
OBJECTS = ("value", "fn", "base", "obj")
ALLOWED = {
    "variables/containers/slices.py:of_slice": "the parts of a slice, guarded as attributes of the source",
    "variables/objects/opaque_object.py:OpaqueVariable.getattr": "whether a C object, guarded by identity, has a method of this name",
    "variables/functions/builtin.py:BuiltinVariable.getattr": "builtin functions and types, which nothing can be set on",
    "variables/objects/class_object.py:ClassVariable.found": "a classmethod that the library wrote, found on the class before",
    "variables/objects/class_statements.py:MadeClassVariable.of_interpreter": "the stand-in of a class that is made while tracing",
    "variables/values/constant_methods.py:ConstantMethodVariable.call": "a value that is known and immutable",
    "variables/values/constant.py:ConstantVariable.getattr": "a value that is known and immutable",
    "variables/objects/builtin_subclass.py:DerivedVariable.value_method": "a method of a builtin type",
    "variables/containers/ranges.py:RangeVariable.call_method": "a range, guarded as a whole",
    "variables/containers/ranges.py:RangeVariable.getattr": "a range, guarded as a whole",
    "variables/values/stdlib_values.py:ValueClassVariable.found": "a classmethod of the library, guarded on the class before",
    "variables/values/stdlib_values.py:ValueVariable.getattr": "an immutable object of the library, guarded by value, whose class is pinned before",
    "variables/tensors/program_queries.py:of_context": "what the library keeps in the context of a backward, guarded where it is read",
    "variables/tensors/torch_classes.py:TorchClassVariable.getattr": "whether what was found on a class of the library can be called",
}


def reads(path: pathlib.Path):
    """(function, text of the object) of each getattr() of a program's object with a name that is computed."""
    tree = ast.parse(path.read_text())
    stack = [(tree, "")]
    while stack:
        node, where = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            where = f"{where}.{node.name}" if where else node.name
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            what, name = node.args[0], node.args[1]
            last = what.attr if isinstance(what, ast.Attribute) else what.id if isinstance(what, ast.Name) else ""
            if last in OBJECTS and not isinstance(name, ast.Constant):
                yield where, ast.unparse(what)
        stack += [(child, where) for child in ast.iter_child_nodes(node)]


def test_only_world_reads_attributes():
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        if path.name != "world.py":
            for where, what in reads(path):
                found.setdefault(f"{path.relative_to(ROOT)}:{where}", set()).add(what)
    new = {k: v for k, v in found.items() if k not in ALLOWED}
    assert not new, f"read through world.attribute or world.library_attr, which leave guards: {new}"
    assert not (gone := ALLOWED.keys() - found.keys()), f"no longer needed: {gone}"
