"""Calls of operators: which overload, and what its arguments are made. Arithmetic of sizes stays arithmetic of numbers."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ...base.device import Device
from . import resolve, rows, upgrades, values
from .expressions import Expressions, item
from .nodes import Refused, Typed
from .types import ANY, INT, NONE, SIZE, STR, TENSOR

__all__ = ["Operators"]

_SIZES = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
}
_ROUNDED = {"floor": _SIZES["floor_divide"], "trunc": lambda a, b: a // b if (a < 0) == (b < 0) else -(-a // b)}


class Operators(Expressions):
    """Calls of operators, by the space and name that TorchScript has for them."""

    def _ops(self, node, path: str):
        _, space, name = path.split(".")
        if space == "prim" and name == "RaiseException":
            parts = [self.value(a).code for a in node.args]
            return Typed(self.calling(node, self.program.raising(self.method), "raise", *parts), NONE)
        if space == "prim" and name == "NumToTensor" and len(node.args) == 1 and not self.depth:
            made, kind = self.expr(node.args[0])
            if kind in (INT, SIZE):
                return Typed(made, SIZE)
        return self._operator(node, space, name)

    def _small(self, node) -> Typed:
        """An operand that is a size: one already, or a whole number that the archive holds in a tensor."""
        made, kind = self.expr(node)
        if (
            kind == TENSOR
            and isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "CONSTANTS"
        ):
            held = self.program.constant(node, node.attr)
            if held.dim() == 0 and values.code_of(held.dtype) == 4:
                return Typed(self.constant(node, int(held)), SIZE)
        return Typed(made, kind)

    def _of_sizes(self, node, name: str):
        """An operator on sizes as arithmetic of numbers; None where it isn't that."""
        if self.depth or len(node.args) != 2 or name not in (*_SIZES, "div"):
            return None
        mode = node.keywords[0].value if len(node.keywords) == 1 and node.keywords[0].arg == "rounding_mode" else None
        fn = _SIZES.get(name) if not node.keywords else None
        if name == "div" and isinstance(mode, ast.Constant):
            fn = _ROUNDED.get(mode.value)
        if fn is None:
            return None
        (a, first), (b, second) = map(self._small, node.args)
        if first != SIZE or second not in (SIZE, INT) or isinstance(a, ast.Constant):
            return None
        return Typed(self.calling(node, fn, name, a, b), SIZE)

    def _operator(self, node, space: str, name: str):
        if space == "aten" and name in ("format", "percentFormat"):
            parts = [self.value(a).code for a in node.args]
            return Typed(self.calling(node, rows.formatted if name == "format" else rows.percent, name, *parts), STR)
        small = self._of_sizes(node, name) if space == "aten" else None
        if small is not None:
            return small
        args = [self.expr(a) for a in node.args]
        kwargs = {k.arg: self.expr(k.value) for k in node.keywords}
        space, name = upgrades.named(self.program.version, space, name, [a.type for a in args], kwargs)
        try:
            choice = self._chosen(space, name, args, kwargs)
        except resolve.UnknownOperator:
            raise Refused(
                node,
                f"Unknown builtin op: {space}::{name}.\nThis op may not exist or may not be currently supported in TorchScript.",
            ) from None
        except resolve.NoMatch as error:
            raise Refused(node, str(error)) from None
        except resolve.Unbuilt:
            return Typed(self.calling(node, self.program.missing(self.method, space, name), "missing"), ANY)
        made = [self.converted(node, a, choice.convert.get(place)) for place, a in enumerate(args)]
        named = {key: self.converted(node, a, choice.convert.get(key)) for key, a in kwargs.items()}
        return Typed(self.call(node, self.held(node, choice.fn, name), made, named), choice.gives)

    def _chosen(self, space, name, args, kwargs) -> resolve.Choice:
        if upgrades.held(space):
            return upgrades.choice(name)
        return resolve.choose(space, name, [a.type for a in args], {key: a.type for key, a in kwargs.items()})

    def converted(self, node, given: Typed, how: str | None) -> ast.expr:
        """An argument as the operator takes it: ``how`` is an entry of :class:`resolve.Choice`."""
        made = given.code
        if how == "tensor" or how is None and given.type == SIZE:
            return self.calling(node, rows.tensor_of, "tensor", made)
        if how is None:
            return made
        if how == "number":
            return made
        if how.startswith("repeat"):
            return self.calling(node, _repeated, "repeated", made, self.constant(node, int(how.split()[1])))
        if how in ("dtype", "layout", "format"):
            fn = {"dtype": values.dtype_of, "layout": values.layout_of, "format": values.format_of}[how]
            if isinstance(made, ast.Constant):
                return self.held(node, fn(made.value), how)
            return self.calling(node, fn, how, made)
        fns: dict[str, Callable] = {"int": int, "float": float, "item": item, "device": Device}
        return self.calling(node, fns[how], how, made)


def _repeated(n, times: int) -> list:
    return n if isinstance(n, list) else [n] * times
