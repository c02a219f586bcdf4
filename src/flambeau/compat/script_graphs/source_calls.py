"""Calls in a function of Python as those of TorchScript's archives: of ATen's operators, and of the program's functions."""

from __future__ import annotations

import ast
import types
import typing
from typing import Any

from ... import nn, ops
from ...core.tensor import Tensor
from ..torchscript.nodes import Refused
from ..torchscript.types import dotted
from .source_expressions import Kind, Known, SourceExpressions, call

__all__ = ["SourceCalls", "hints", "kind_of"]

_BUILTINS = {
    int: ("int", Kind.NUMBER), float: ("float", Kind.NUMBER), bool: ("bool", Kind.BOOL), str: ("str", Kind.OTHER),
    len: ("torch.len", Kind.NUMBER), print: ("print", Kind.OTHER),
}  # fmt: skip
# Of operators that have no schema, or one that says it otherwise.
_GIVEN = {
    "dim": Kind.NUMBER, "numel": Kind.NUMBER, "item": Kind.OTHER, "tensor": Kind.TENSOR, "append": Kind.OTHER,
}  # fmt: skip
# Sizes may stand in these methods' calls one by one.
_VARIADIC = {"view", "reshape", "permute", "expand", "repeat", "flip", "tile"}
# Of torch.nn.functional: the functions that take what the operators of their names do.
FUNCTIONAL = frozenset(
    "relu gelu silu mish selu relu6 hardswish hardsigmoid sigmoid tanh softplus leaky_relu prelu softmax log_softmax glu linear bilinear conv1d "
    "conv2d conv3d layer_norm group_norm dropout max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d "
    "adaptive_avg_pool2d pad cosine_similarity pixel_shuffle one_hot scaled_dot_product_attention".split()
)


def hints(function: types.FunctionType) -> dict[str, Any]:
    """The annotations of a function, none where they can't be read."""
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError):
        return {}


def kind_of(annotation) -> Kind:
    """What a type says of a value; OTHER for one that isn't known."""
    known = {Tensor: Kind.TENSOR, int: Kind.NUMBER, float: Kind.NUMBER, bool: Kind.BOOL}
    if typing.get_origin(annotation) is list:
        (of,) = typing.get_args(annotation)
        return {Kind.NUMBER: Kind.NUMBERS, Kind.TENSOR: Kind.TENSORS}.get(kind_of(of), Kind.OTHER)
    return known.get(annotation, Kind.OTHER) if isinstance(annotation, type) else Kind.OTHER


def _given(operator: str) -> Kind:
    """What is known of an operator's result."""
    packet = getattr(ops.aten, operator, None) if operator not in _GIVEN else None
    if not hasattr(packet, "overloads"):
        return _GIVEN.get(operator, Kind.OTHER)
    found = set()
    for overload in packet.overloads():
        returns = getattr(packet, overload)._schema.returns
        tensors = bool(returns) and all(r.type == "Tensor" for r in returns)
        found.add((Kind.TENSORS if len(returns) > 1 or returns[0].is_list else Kind.TENSOR) if tensors else Kind.OTHER)
    return found.pop() if len(found) == 1 else Kind.OTHER


def _listed(node: ast.expr) -> ast.expr:
    """Sizes are lists."""
    return ast.List(node.elts, ast.Load()) if isinstance(node, ast.Tuple) else node


class SourceCalls(SourceExpressions):
    """Names of ``torch`` and those of ``FUNCTIONAL`` are operators': other arguments are refused when the types are known."""

    def of_Call(self, node):
        path = dotted(node.func) or ""
        if not isinstance(node.func, ast.Name | ast.Attribute) or any(k.arg is None for k in node.keywords):
            raise Refused(node, f"the graph of {ast.unparse(node)} isn't built")
        if isinstance(node.func, ast.Attribute) and (not path or path.split(".")[0] in self.kinds):
            return self.method(node, node.func)
        value = self.resolved(node.func)
        if isinstance(value, types.FunctionType) and not value.__module__.startswith("flambeau"):
            if self.called.setdefault(value.__name__, value) is not value:
                raise Refused(node, f"two functions are called {value.__name__}")
            return Known(self.applied(node, f"__torch__.{value.__name__}", []), kind_of(hints(value).get("return")))
        if isinstance(value, type | types.BuiltinFunctionType) and value in _BUILTINS:
            target, kind = _BUILTINS[value]
            return Known(self.applied(node, target, []), kind)
        owner = self.resolved(node.func.value) if isinstance(node.func, ast.Attribute) else None
        functional = owner is nn.functional and node.func.attr in FUNCTIONAL
        if not functional and getattr(owner, "__name__", "") != "flambeau":
            raise Refused(node, f"the graph of a call of {path} isn't built")
        return Known(self.applied(node, f"torch.{node.func.attr}", []), _given(node.func.attr))

    def method(self, node: ast.Call, fn: ast.Attribute) -> Known:
        """A method of a tensor, or ``append`` of a list."""
        value = self.expression(fn.value)
        if value.kind is not Kind.TENSOR and (value.kind.element is Kind.OTHER or fn.attr != "append"):
            raise Refused(node, f"the graph of the method {fn.attr} isn't built")
        kind = _given(fn.attr)
        if fn.attr == "size":
            kind = Kind.NUMBER if node.args or node.keywords else Kind.NUMBERS
        return Known(self.applied(node, f"torch.{fn.attr}", [value.code]), kind)

    def applied(self, node: ast.Call, target: str, first: list[ast.expr]) -> ast.Call:
        """A call with the arguments of ``node`` behind ``first``: sizes are lists."""
        known = list(map(self.expression, node.args))
        args = [_listed(k.code) for k in known]
        if first and args and target.removeprefix("torch.") in _VARIADIC and all(k.kind is Kind.NUMBER for k in known):
            args = [ast.List(args, ast.Load())]
        made = call(target, *first, *args)
        made.keywords = [ast.keyword(k.arg, _listed(self.code(k.value))) for k in node.keywords]
        return made
