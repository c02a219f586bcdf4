"""Subscripts of elements and their numbers in C order: ``np.unravel_index`` and ``np.ravel_multi_index`` of numbers."""

from __future__ import annotations

import numpy as np

from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand
from . import arrays
from .emitter import I64, Emitter, constant
from .numbers import arithmetic, comparisons, conversions
from .values import Declined, Scalar, Tuple

BOOL = np.dtype(bool)

__all__ = ["chosen", "of_items", "ravel_multi_index", "unravel_index"]

# Of a tuple from which one is taken by a number that isn't known.
MOST = 64


def chosen(e: Emitter, items: tuple, key: Scalar, what: str):
    """The item of a tuple or list that a number names: all are numbers of one type, or tuples of such."""
    n = len(items)
    if key.dtype != I64 or not 0 < n <= MOST:
        raise Declined(f"a subscript of a {what}")
    k = e.select(e.cmp("slt", key.v, 0), e.op("add", key.v, n), key.v)
    e.check(e.cmp("ult", k, n), "IndexError", f"{what} index out of range")
    return _chosen(e, items, [e.cmp("eq", k, j) for j in range(n)], what)


def _chosen(e: Emitter, items: tuple, where: list[Operand], what: str):
    first = items[0]
    if isinstance(first, Tuple) and all(isinstance(t, Tuple) and len(t.items) == len(first.items) for t in items):
        columns = zip(*(t.items for t in items))
        return Tuple(tuple(_chosen(e, column, where, what) for column in columns), first.listed)
    if (
        not all(isinstance(x, Scalar) and (x.dtype, x.weak) == (first.dtype, first.weak) for x in items)
        or first.weak is None
    ):
        raise Declined(f"a subscript of a {what} of different things")
    out = first.v
    for x, here in zip(items[1:], where[1:]):
        out = e.select(here, x.v, out)
    bounds = [x.bounds for x in items]
    known = None if None in bounds else (min(low for low, _ in bounds), max(high for _, high in bounds))
    return Scalar(first.dtype, first.weak, out, known if first.dtype == I64 else None)


def of_items(e: Emitter, f, items: list[Scalar]):
    """What builtin functions give of a tuple or list of numbers that is written down; None for others."""
    if f in (max, min) and items:
        return comparisons.choose(e, f is max, items)
    if f is sum and not any(x.kind == "f" and x.weak is not False for x in items):
        out = constant(0)
        for x in items:
            out = arithmetic.binary(e, "+", out, x)
        return out
    if f in (any, all):
        out = llvm.constant(llvm.I1, f is all)
        for x in items:
            out = e.op("and" if f is all else "or", out, conversions.to_bool(e, x))
        return Scalar(BOOL, True, out)
    return None


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
