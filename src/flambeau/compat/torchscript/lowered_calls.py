"""Calls of the archive's own functions, of its classes and of what is TorchScript's alone (``annotate``, ``isinstance``, ``fork``)."""

from __future__ import annotations

import ast
from collections.abc import Callable

from . import packed, rows, values
from .names import CONTEXTS
from .nodes import Closure, Refused, Typed
from .operators import Operators
from .types import ANY, BOOL, COMPLEX, FLOAT, INT, NONE, NUMBER, SIZE, STR, Type, dotted, match

__all__ = ["Calls"]

_CASTS: dict[str, tuple[Type, Callable]] = {
    "int": (INT, int),
    "float": (FLOAT, float),
    "bool": (BOOL, bool),
    "complex": (COMPLEX, complex),
    "str": (STR, values.shown),
}


class Calls(Operators):
    """``call_*``: the expression and type of a call of that name."""

    def function_of(self, node: ast.expr):
        """The function of the archive that the expression names, or a closure; None for values."""
        if isinstance(node, ast.Name):
            return None if node.id in self.types else self.functions.get(node.id)
        path = dotted(node)
        return self.program.function(node, path) if path is not None and path.startswith("__torch__.") else None

    def of_Call(self, node):
        fn = node.func
        if isinstance(fn, ast.Name):
            found = self.function_of(fn)
            if found is not None:
                return self._call_function(node, found)
            special = getattr(self, f"call_{fn.id}", None)
            if fn.id in _CASTS:
                return self._cast(node)
            if special is None and fn.id in rows.ROWS:
                return self._operator(node, "aten", fn.id)
            if special is None:
                raise Refused(node, f"undefined function {fn.id}")
            return special(node)
        if not isinstance(fn, ast.Attribute):
            raise Refused(node, f"a call of {ast.unparse(fn)}")
        path = dotted(fn)
        root = path.split(".")[0] if path is not None else ""
        if root == "torch" and root not in self.types and path.count(".") == 1:
            return self._operator(node, "aten", fn.attr)
        if root == "ops" and root not in self.types and path.count(".") == 2:
            return self._ops(node, path)
        if root == "__torch__":
            return self._global(node, path)
        made, kind = self.value(fn.value)
        return self._method(node, made, kind, fn.attr)

    def arguments(self, node, method) -> list[ast.expr]:
        """The arguments of a call of a function of the archive, all of them in its order."""
        given = dict(zip((name for name, _ in method.takes), node.args))
        if len(node.args) > len(method.takes):
            raise Refused(node, f"{method.name} takes {len(method.takes)} arguments, given {len(node.args)}")
        for k in node.keywords:
            if k.arg in given or k.arg not in dict(method.takes):
                raise Refused(node, f"{method.name}: the argument {k.arg}")
            given[k.arg] = k.value
        out = []
        for name, wanted in method.takes:
            if name in given:
                made, kind = self.value(given[name])
                out.append(self.fitted(made, kind, wanted))
            elif name in method.defaults:
                out.append(self.held(node, method.defaults[name], name))
            else:
                raise Refused(node, f"{method.name}() is missing value for argument '{name}'")
        return out

    def _call_function(self, node, found):
        if isinstance(found, Closure):
            return Typed(self.call(node, self.load(node, found.name), []), found.gives)
        name = self.program.name_of(found)
        return Typed(self.call(node, self.load(node, name), self.arguments(node, found)), found.gives)

    def _global(self, node, path: str):
        found = self.program.function(node, path)
        if found is not None:
            return self._call_function(node, found)
        if path.endswith(".__new__"):
            owner = path.removesuffix(".__new__")
            made = self.program.maker(node, owner)
            return Typed(self.call(node, self.held(node, made, "new"), []), Type(owner))
        cls = self.program.class_of(node, path)
        if cls.base != "NamedTuple":
            raise Refused(node, f"a call of {path}")
        args = self.arguments(node, cls)
        return Typed(self.call(node, self.held(node, cls.python, cls.name), args), Type(path))

    def _method(self, node, made: ast.expr, kind: Type, name: str):
        if kind.name in CONTEXTS and name == "__init__":
            return Typed(self.constant(node, None), NONE)
        of_packed = packed.CLASSES.get(kind.name)
        if of_packed is not None and name in of_packed.methods and not node.args and not node.keywords:
            found = of_packed.methods[name]
            return Typed(self.calling(node, found.get, name, made), found.gives)
        method = self.program.method(node, kind, name)
        fn = ast.copy_location(ast.Attribute(made, self.program.raw(name), ast.Load()), node)
        return Typed(self.call(node, fn, self.arguments(node, method)), method.gives)

    def _cast(self, node):
        if len(node.args) != 1:
            raise Refused(node, f"{ast.unparse(node)}")
        (arg,), name = node.args, node.func.id
        made, kind = self.expr(arg)
        gives, fn = _CASTS[name]
        if kind == SIZE and name == "int":
            return Typed(made, INT)
        return Typed(self.calling(node, fn, name, made), gives)

    def _annotated(self, node) -> tuple[Type, ast.expr]:
        """The type and the value of ``annotate(T, x)``."""
        if len(node.args) != 2 or node.keywords:
            raise Refused(node, f"{ast.unparse(node)}: a type and a value")
        return self.program.type(node.args[0]), node.args[1]

    def call_annotate(self, node):
        kind, inner = self._annotated(node)
        made, given = self.expr(inner)
        if given == SIZE and kind in (INT, NUMBER):
            return Typed(made, INT)
        if given == SIZE:
            made, given = self.value(inner)
        return Typed(self.fitted(made, given, kind), kind)

    def call_unchecked_cast(self, node):
        kind, inner = self._annotated(node)
        return Typed(self.value(inner).code, kind)

    def call_uninitialized(self, node):
        if len(node.args) != 1:
            raise Refused(node, ast.unparse(node))
        return Typed(self.constant(node, None), self.program.type(node.args[0]))

    def call_isinstance(self, node):
        if len(node.args) != 2:
            raise Refused(node, ast.unparse(node))
        of = node.args[1]
        kinds = tuple(map(self.program.type, of.elts if isinstance(of, ast.Tuple | ast.List) else [of]))
        made, given = self.value(node.args[0])
        if given != ANY and given.name not in ("Union", "Optional"):
            return Typed(self.constant(node, any(match(k, given, {}) for k in kinds)), BOOL)
        return Typed(self.calling(node, self.program.tester(kinds), "isinstance", made), BOOL)

    def call_getattr(self, node):
        if len(node.args) != 2 or not isinstance(node.args[1], ast.Constant) or not isinstance(node.args[1].value, str):
            raise Refused(node, f"{ast.unparse(node)}: getattr of a name")
        made, kind = self.value(node.args[0])
        name = node.args[1].value
        gives = self.program.attribute(node, kind, name)
        return Typed(self.calling(node, getattr, "getattr", made, self.constant(node, name)), gives)

    def call_print(self, node):
        parts = [self.value(a).code for a in node.args]
        return Typed(self.calling(node, _printed, "print", *parts), NONE)

    def call_fork(self, node):
        found = self.function_of(node.args[0]) if len(node.args) == 1 else None
        if not isinstance(found, Closure):
            raise Refused(node, "a fork of something that is no function in this one")
        made, gives = self._call_function(node, found)
        return Typed(made, Type("Future", (gives,)))

    def call_range(self, node):
        raise Refused(node, "range outside of a for statement")


def _printed(*values_) -> None:
    print(*map(values.shown, values_))
