"""Quantised tensors in a program that is exported: while it is traced, each is a stand-in of its codes, scale and zero point, and functions of it
are their rules in plain operators (ops/affine/traced), so that the graph has plain tensors only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import _C
from ..base import pytree
from ..base.records import fields_of
from ..core.modes import TorchFunctionMode
from ..core.quantized import PackedWeight, is_quantized, parts
from ..core.tensor import Tensor
from ..dynamo.exc import UserErrorType
from ..ops.affine.tracing import operator_rule, stand_in
from .dynamic_shapes import user_error

__all__ = ["CodesApart", "named_tensors", "refuse_codes", "refuse_codes_out"]


class CodesApart(TorchFunctionMode):
    """Calls that make or take quantised tensors, or weights packed of them, are their rules."""

    def __init__(self) -> None:
        super().__init__()
        self._made: dict[int, tuple[Any, Any]] = {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        args, kwargs = pytree.tree_map(self._apart, (tuple(args), kwargs or {}))
        if args and isinstance(args[0], _C.TensorBase) and args[0].is_quantized:
            getter = func.__name__ == "__get__"
            name = func.__self__.__name__ if getter else func.__name__
            if name in vars(type(args[0])):  # what a stand-in answers itself
                own = getattr(args[0], name)
                return own if getter else own(*args[1:], **kwargs)
        return (operator_rule(func) or func)(*args, **kwargs)

    def _apart(self, x: Any) -> Any:
        """What stands for ``x``, the same at each call."""
        packed = isinstance(x, PackedWeight)
        if not (packed or is_quantized(x)):
            return x
        if id(x) not in self._made:
            if packed:
                made = type(x)(*(self._apart(getattr(x, name)) for name in fields_of(x)))
            else:
                p = parts(x)
                made = stand_in().of(p.codes, p.scale, p.zero_point, p.axis, p.packed)
            self._made[id(x)] = x, made  # it lives as long as its number is asked for
        return self._made[id(x)][1]


def named_tensors(name: str, value: Any, depth: int = 2) -> Iterator[tuple[str, Any]]:
    """The tensor that an attribute is, or those that a quantised tensor, a packed weight, or lists of such (``depth`` deep) are made of, with
    their names."""
    if is_quantized(value):
        p = parts(value)
        held = {"codes": p.codes, "scale": p.scale, "zero_point": p.zero_point}
        yield from ((f"{name}.{k}", t) for k, t in held.items() if isinstance(t, _C.TensorBase))
    elif isinstance(value, PackedWeight):
        for field in fields_of(value):
            yield from named_tensors(f"{name}.{field}", getattr(value, field))
    elif isinstance(value, (list, tuple)) and depth:
        for i, v in enumerate(value):
            if not isinstance(v, _C.TensorBase) or is_quantized(v):
                yield from named_tensors(f"{name}.{i}", v, depth - 1)
    elif isinstance(value, _C.TensorBase):
        yield name, value


def refuse_codes(leaves: list[Any], paths: list[str]) -> None:
    """UserError where an argument is quantised."""
    for leaf, path in zip(leaves, paths):
        if is_quantized(leaf):
            raise user_error(
                UserErrorType.INVALID_INPUT,
                f"{path} is a {leaf.dtype} tensor: an exported program takes and returns plain tensors. Give it {path}.int_repr() and call "
                "torch._make_per_tensor_quantized_tensor(codes, scale, zero_point) in the program",
            )


def refuse_codes_out(out: list[Any]) -> None:
    """UserError where a result is quantised."""
    for x in out:
        if isinstance(x, Tensor) and x.is_quantized:
            raise user_error(
                UserErrorType.INVALID_OUTPUT,
                f"the program returns a {x.dtype} tensor: an exported program takes and returns plain tensors. Return its dequantize(), or its "
                "int_repr() and call torch._make_per_tensor_quantized_tensor(codes, scale, zero_point) behind the program",
            )
