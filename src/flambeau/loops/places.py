"""Subscripts of elements and their numbers in C order: ``np.unravel_index`` and ``np.ravel_multi_index`` of numbers."""

from __future__ import annotations

from ..inductor.assembly.instructions import Operand
from . import arrays
from .emitter import I64, Emitter
from .values import Declined, Scalar, Tuple

__all__ = ["ravel_multi_index", "unravel_index"]


def unravel_index(e: Emitter, place: str, index, shape) -> Tuple:
    number, sizes = _integer(index, "np.unravel_index"), arrays.given_sizes(e, shape)
    total = _product(e, sizes)
    e.check(
        e.cmp("ult", number, total), "ValueError", "index {0} is out of bounds for array with size {1}", number, total
    )
    out: list[Operand] = []
    rest = number
    for size in reversed(sizes):
        out.insert(0, e.op("urem", rest, size))
        rest = e.op("udiv", rest, size)
    return Tuple(tuple(Scalar(I64, False, v) for v in out))


def ravel_multi_index(e: Emitter, place: str, multi_index, dims) -> Scalar:
    sizes = arrays.given_sizes(e, dims)
    if not isinstance(multi_index, Tuple) or len(multi_index.items) != len(sizes) or not sizes:
        raise Declined("np.ravel_multi_index of these subscripts")
    number = None
    for item, size in zip(multi_index.items, sizes):
        k = _integer(item, "np.ravel_multi_index")
        e.check(e.cmp("ult", k, size), "ValueError", "invalid entry in coordinates array")
        number = k if number is None else e.op("add", e.op("mul", number, size), k)
    return Scalar(I64, False, number)


def _integer(x, what: str) -> Operand:
    if not isinstance(x, Scalar) or x.dtype != I64:
        raise Declined(f"{what} of other things than one number of 64 bits")
    return x.v


def _product(e: Emitter, sizes):
    total = 1
    for size in sizes:
        total = size if total == 1 else e.mul(total, size)
    return total
