"""Arrays in memory as views: the operands of a loop, sizes as numbers, addresses of elements."""

from __future__ import annotations

import numpy as np

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand, ParameterOperand, integer
from ..emitter import I64, Emitter
from ..numbers import bounds as between
from ..values import Array, ArrayView, Scalar, Size, known

__all__ = ["address", "count", "dense_strides", "described", "load", "operand", "same_place", "size"]


def described(n: int, dtype: np.dtype, dense: bool, sizes: tuple[Size, ...]) -> Array:
    """Operand number ``n``. ``dense``: at every call its last stride is one element."""
    strides: list[Size] = [ParameterOperand(f"%a{n}.s{d}", llvm.I64) for d in range(len(sizes))]
    if dense and strides:
        strides[-1] = dtype.itemsize
    return Array(n, dtype, ParameterOperand(f"%a{n}", llvm.PTR), tuple(strides), sizes)


def operand(array: Array) -> ArrayView:
    """The whole of an operand."""
    return ArrayView(array.ptr, array.dtype, array.sizes, array.strides, frozenset({array.n}), None, array.n, rows=True)


def count(e: Emitter, sizes) -> Size:
    """The number of elements."""
    n: Size = 1
    for m in sizes:
        n = e.mul(n, m)
    return n


def size(e: Emitter, n: Size) -> Scalar:
    """A size of an array as a number."""
    below = n.place if isinstance(n, between.SizeOperand) else None
    return Scalar(I64, True, integer(n), e.bounds_of(n) or (0, between.LARGEST), known(n), below=below)


def dense_strides(e: Emitter, sizes, itemsize: int) -> tuple[Size, ...]:
    out: list[Size] = []
    step: Size = itemsize
    for n in reversed(sizes):
        out.append(step)
        step = e.mul(step, n)
    return tuple(reversed(out))


def address(e: Emitter, view: ArrayView, indices) -> Operand:
    e.touch(view, bool(indices) and view.rows and indices[0] is e.row)
    offset: Size = 0
    for i, s in zip(indices, view.strides):
        offset = e.add(offset, e.mul(i, s))
    return e.at(view.ptr, offset)


def load(e: Emitter, view: ArrayView, indices) -> Scalar:
    return Scalar(view.dtype, False, e.load(address(e, view, indices), view.dtype, view.origins))


def same_place(a: ArrayView, b: ArrayView) -> bool:
    return (a.ptr, a.dtype, a.sizes, a.strides) == (b.ptr, b.dtype, b.sizes, b.strides)
