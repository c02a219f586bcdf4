"""A function that the traced code made and passes into the graph: a node that makes it of the values that it closes over."""

from __future__ import annotations

from flambeau import fx

from ..exc import unsupported
from ..guards.source import ConstSource
from ..higher_order.opaque import FunctionTemplate, guard_function, writes_to_closure
from ..variables.functions.nested_functions import NestedFunctionVariable
from ..variables.functions.nested_functions import fixed as fixed_value
from ..variables.functions.python_functions import UserFunctionVariable
from ..variables.objects.class_object import ClassVariable
from ..variables.objects.namespaces import PythonModuleVariable
from ..variables.tensors.torch_functions import TorchFunctionVariable

__all__ = ["function_node"]


def function_node(tx, f: NestedFunctionVariable):
    """A node that makes the function ``f``, whose closure holds values of the graph."""
    if f.node is not None:
        return f.node
    if writes_to_closure(f.code):
        unsupported("closure", f"{f!r} writes to its closure and is passed into the graph")
    contents, fixed = [], {}
    for i, c in enumerate(f._closure):
        v = c.get(tx)
        if v is None:
            unsupported("closure", f"{f!r} closes over an unbound variable and is passed into the graph")
        if isinstance(v, UserFunctionVariable):
            guard_function(tx, v.fn, v.source)
        if isinstance(v, (UserFunctionVariable, TorchFunctionVariable, PythonModuleVariable, ClassVariable)):
            fixed[i] = v.fn if isinstance(v, UserFunctionVariable) else v.value
        elif v.mutable:
            unsupported(
                "opaque-function",
                f"{f.name} goes into the graph and reads {f.code.co_freevars[i]}, a {v.python_type_name()}",
                "It could change without being noticed, or be changed.",
                "Pass what is needed as an argument.",
            )
        else:
            contents.append(v.as_proxy())
    if f._kwdict is not None or not all(map(fixed_value, [*f._defaults, *f._kwdefaults.values()])):
        unsupported("closure", f"{f!r} has defaults that depend on the call and is passed into the graph")
    defaults = tuple(d.as_constant() for d in f._defaults)
    template = FunctionTemplate(
        f.code, f.globals, defaults, {k: v.as_constant() for k, v in f._kwdefaults.items()}, fixed
    )
    value = template(*fx.map_arg(contents, lambda n: n.meta["val"]))
    guard_function(tx, value, ConstSource(value, f.name), closure=False)
    f.node = tx.output.recorder.create_node(tx, "call_function", template, tuple(contents), {})
    f.node.meta["val"] = value
    return f.node
