"""Expressions of Python as those of TorchScript's archives: operators of the language become calls of ATen's, by what is known of their operands."""

from __future__ import annotations

import ast
import builtins
import enum
import types
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...base.device import Device
from ...base.dtypes import DType
from ..torchscript.nodes import Refused
from ..torchscript.types import dotted
from ..torchscript.values import code_of

__all__ = ["Kind", "Known", "SourceExpressions", "call", "name"]


class Kind(enum.Enum):
    """What is known of a value while its function is read."""

    TENSOR = enum.auto()
    NUMBER = enum.auto()
    BOOL = enum.auto()
    NUMBERS = enum.auto()  # a list of them, as sizes are
    TENSORS = enum.auto()  # a list or tuple of them
    OTHER = enum.auto()

    @property
    def element(self) -> Kind:
        """What is known of an element."""
        return {Kind.NUMBERS: Kind.NUMBER, Kind.TENSORS: Kind.TENSOR}.get(self, Kind.OTHER)


class Known(NamedTuple):
    """An expression of an archive's language, and what is known of its value."""

    code: ast.expr
    kind: Kind


_BINARY: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "remainder", ast.Pow: "pow",
    ast.MatMult: "matmul", ast.BitAnd: "__and__", ast.BitOr: "__or__", ast.BitXor: "__xor__",
}  # fmt: skip
_COMPARED: dict[type, str] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne", ast.Is: "__is__", ast.IsNot: "__isnot__",
}  # fmt: skip
# With the number on the left of a tensor.
_SWAPPED = {"add": "add", "mul": "mul", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_ATTRIBUTES = {
    "shape": ("torch.size", Kind.NUMBERS), "dtype": ("ops.prim.dtype", Kind.OTHER), "device": ("ops.prim.device", Kind.OTHER),
    "ndim": ("torch.dim", Kind.NUMBER), "T": ("torch.numpy_T", Kind.TENSOR), "mT": ("torch.mT", Kind.TENSOR),
}  # fmt: skip


def name(text: str) -> ast.expr:
    """The node of a dotted name."""
    return ast.parse(text, mode="eval").body


def call(path: str, *args: ast.expr) -> ast.Call:
    """The node of a call."""
    return ast.Call(name(path), list(args), [])


def _collected(parts: list[Known]) -> Kind:
    """What is known of a list or tuple of these."""
    kinds = {p.kind for p in parts}
    return (
        {Kind.NUMBER: Kind.NUMBERS, Kind.TENSOR: Kind.TENSORS}.get(kinds.pop(), Kind.OTHER)
        if len(kinds) == 1
        else Kind.OTHER
    )


class SourceExpressions:
    """``kinds``: of the locals so far; ``scope``: the values of other names; ``before``: statements that the expression needs before its own.
    ``called``: the functions of the program that are called, by name."""

    def __init__(self, scope: Mapping[str, Any]):
        self.scope = scope
        self.kinds: dict[str, Kind] = {}
        self.before: list[ast.stmt] | None = None
        self.called: dict[str, types.FunctionType] = {}
        self.temporaries = 0

    def expression(self, node: ast.expr) -> Known:
        """The expression. Refused for one that has no form in archives here."""
        handler = getattr(self, f"of_{type(node).__name__}", None)
        if handler is None:
            raise Refused(node, f"the graph of {type(node).__name__} isn't built: {ast.unparse(node)}")
        found: Known = handler(node)
        return found

    def code(self, node: ast.expr) -> ast.expr:
        return self.expression(node).code

    def of_Constant(self, node):
        kinds = {int: Kind.NUMBER, float: Kind.NUMBER, complex: Kind.NUMBER, bool: Kind.BOOL}
        return Known(node, kinds.get(type(node.value), Kind.OTHER))

    def of_Name(self, node):
        return Known(node, self.kinds[node.id]) if node.id in self.kinds else self.outside(node)

    def outside(self, node: ast.expr) -> Known:
        """A value from outside of the function: dtypes and devices."""
        value = self.resolved(node)
        if isinstance(value, DType):
            return Known(ast.Constant(code_of(value)), Kind.OTHER)
        if isinstance(value, Device):
            return Known(call("torch.device", ast.Constant(str(value))), Kind.OTHER)
        raise Refused(
            node, f"{ast.unparse(node)} is a value from outside of the function, which TorchScript doesn't take"
        )

    def resolved(self, node: ast.expr):
        """What a dotted name outside of the function means."""
        path = dotted(node)
        if path is None:
            raise Refused(node, f"the graph of {ast.unparse(node)} isn't built")
        first, *rest = path.split(".")
        try:
            value = self.scope[first] if first in self.scope else getattr(builtins, first)
            for part in rest:
                value = getattr(value, part)
        except AttributeError:
            raise Refused(node, f"undefined value {path}") from None
        return value

    def of_UnaryOp(self, node):
        operand = self.expression(node.operand)
        if isinstance(node.op, ast.Not):
            return Known(call("torch.__not__", self.truth(operand)), Kind.BOOL)
        if isinstance(node.op, ast.USub) and isinstance(operand.code, ast.Constant):
            return Known(ast.UnaryOp(node.op, operand.code), operand.kind)
        names = {ast.USub: "neg", ast.Invert: "bitwise_not"}
        if type(node.op) not in names:
            raise Refused(node, f"the graph of {ast.unparse(node)} isn't built")
        return Known(call(f"torch.{names[type(node.op)]}", operand.code), operand.kind)

    def truth(self, value: Known) -> ast.expr:
        return value.code if value.kind is Kind.BOOL else call("bool", value.code)

    def of_BinOp(self, node):
        if type(node.op) not in _BINARY:
            raise Refused(node, f"the graph of {ast.unparse(node)} isn't built")
        return self.combined(node, _BINARY[type(node.op)], self.expression(node.left), self.expression(node.right))

    def combined(self, node: ast.expr, operator: str, left: Known, right: Known) -> Known:
        """An operator of the language on two values: with a tensor on the right of a number as TorchScript turns it."""
        kinds = {left.kind, right.kind}
        if not kinds <= {Kind.TENSOR, Kind.NUMBER, Kind.BOOL}:
            raise Refused(node, f"{ast.unparse(node)}: the types of the operands aren't known here")
        gives = Kind.TENSOR if Kind.TENSOR in kinds else Kind.NUMBER
        if gives is Kind.TENSOR and operator == "floordiv":
            operator = "floor_divide"
        if left.kind is not Kind.TENSOR and right.kind is Kind.TENSOR:
            if operator in _SWAPPED:
                return Known(call(f"torch.{_SWAPPED[operator]}", right.code, left.code), gives)
            if operator == "sub":
                return Known(call("torch.add", call("torch.neg", right.code), left.code), gives)
            if operator == "div":
                return Known(call("torch.mul", call("torch.reciprocal", right.code), left.code), gives)
        return Known(call(f"torch.{operator}", left.code, right.code), gives)

    def of_Compare(self, node):
        if len(node.ops) != 1 or type(node.ops[0]) not in _COMPARED:
            raise Refused(node, f"the graph of {ast.unparse(node)} isn't built")
        operator = _COMPARED[type(node.ops[0])]
        left, right = self.expression(node.left), self.expression(node.comparators[0])
        if operator.startswith("__"):
            return Known(call(f"torch.{operator}", left.code, right.code), Kind.BOOL)
        found = self.combined(node, operator, left, right)
        return found if found.kind is Kind.TENSOR else Known(found.code, Kind.BOOL)

    def chosen(self, node: ast.expr, test: ast.expr, first: ast.expr, second: ast.expr, truths: bool) -> Known:
        """A local that is one expression or another, by a statement before."""
        outer = self.before
        if outer is None:
            raise Refused(node, f"the graph of {ast.unparse(node)} in the test of a loop isn't built")
        condition, self.temporaries = self.truth(self.expression(test)), self.temporaries + 1
        made, branches, kinds = f"_chosen{self.temporaries}", [], []
        for branch in (first, second):
            self.before = body = []
            found = self.expression(branch)
            body.append(ast.Assign([ast.Name(made, ast.Store())], self.truth(found) if truths else found.code))
            branches.append(body)
            kinds.append(Kind.BOOL if truths else found.kind)
        self.before = outer
        outer.append(ast.If(condition, *branches))
        self.kinds[made] = kinds[0] if kinds[0] is kinds[1] else Kind.OTHER
        return Known(ast.Name(made, ast.Load()), self.kinds[made])

    def of_IfExp(self, node):
        return self.chosen(node, node.test, node.body, node.orelse, False)

    def of_BoolOp(self, node):
        first, *rest = node.values
        other = rest[0] if len(rest) == 1 else ast.copy_location(ast.BoolOp(node.op, rest), node)
        if isinstance(node.op, ast.And):
            return self.chosen(node, first, other, ast.Constant(False), True)
        return self.chosen(node, first, ast.Constant(True), other, True)

    def of_List(self, node):
        parts = list(map(self.expression, node.elts))
        return Known(ast.List([p.code for p in parts], ast.Load()), _collected(parts))

    def of_Tuple(self, node):
        parts = list(map(self.expression, node.elts))
        return Known(ast.Tuple([p.code for p in parts], ast.Load()), _collected(parts))

    def of_Attribute(self, node):
        root = (dotted(node) or "").split(".")[0]
        if root and root not in self.kinds:
            return self.outside(node)
        value = self.expression(node.value)
        if value.kind is not Kind.TENSOR or node.attr not in _ATTRIBUTES:
            raise Refused(node, f"the graph of the attribute {node.attr} isn't built")
        path, kind = _ATTRIBUTES[node.attr]
        return Known(call(path, value.code), kind)

    def of_Subscript(self, node):
        value = self.expression(node.value)
        if value.kind in (Kind.NUMBERS, Kind.TENSORS) and not isinstance(node.slice, ast.Slice | ast.Tuple):
            return Known(ast.Subscript(value.code, self.code(node.slice), ast.Load()), value.kind.element)
        if value.kind is not Kind.TENSOR:
            raise Refused(node, f"the graph of {ast.unparse(node)} isn't built")
        code, dim = value.code, 0
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if isinstance(part, ast.Slice):
                bounds = [ast.Constant(None) if b is None else self.code(b) for b in (part.lower, part.upper)]
                step = ast.Constant(1) if part.step is None else self.code(part.step)
                code, dim = call("torch.slice", code, ast.Constant(dim), *bounds, step), dim + 1
            elif isinstance(part, ast.Constant) and part.value is None:
                code, dim = call("torch.unsqueeze", code, ast.Constant(dim)), dim + 1
            else:
                found = self.expression(part)
                if found.kind is not Kind.NUMBER:
                    raise Refused(node, f"the graph of the index {ast.unparse(part)} isn't built")
                code = call("torch.select", code, ast.Constant(dim), found.code)
        return Known(code, Kind.TENSOR)
