"""Element loops that store: assignments to views.

An expression is evaluated in row-major order; when it reads memory that it is being stored to under another view, it goes through a buffer of its
own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...base.records import replace
from ...inductor.assembly.instructions import Operand, integer
from ..emitter import BOOL, Emitter
from ..numbers import conversions
from ..numbers.conversions import cast
from ..threads.dependence import facts
from ..values import ArrayView, Declined, Expression, Scalar, Size, Tuple, known
from .elementwise import as_expression, broadcast_pairs, indices_of
from .subscripts import checked_index, subscript
from .views import address, count, dense_strides, same_place

__all__ = ["assign", "assign_numbers", "assign_where", "fill", "may_hold", "store_element"]


def assign(e: Emitter, target: ArrayView, value) -> None:
    """``target[...] = value``"""
    x = as_expression(e, value)
    if isinstance(x, Scalar):
        v = conversions.stored(e, x, target.dtype)
        for indices in e.loop(target.sizes, parallel=True):
            e.store(address(e, target, indices), target.dtype, v, target.origins)
        return
    if x.ndim > target.ndim:
        raise Declined("an array with more dimensions than its place")
    sizes = target.sizes
    for k, n in enumerate(x.sizes):
        m = sizes[target.ndim - x.ndim + k]
        if n not in (m, 1):
            fits = e.op("or", e.cmp("eq", n, m), e.cmp("eq", n, 1))
            e.check(fits, "ValueError", "could not broadcast input array from size {0} into size {1}", n, m)
    if all(same_place(view, target) or not (view.origins & target.origins) for view in x.reads):
        fill(e, target, x)
        return
    if x.sizes == sizes and e.written_out(sizes):
        elements = [(indices, cast(e, x.element(indices), target.dtype).v) for indices in e.loop(sizes)]
        for indices, v in elements:
            e.store(address(e, target, indices), target.dtype, v, target.origins)
        return
    p = e.buffer(e.mul(count(e, sizes), target.dtype.itemsize))
    strides = dense_strides(e, sizes, target.dtype.itemsize)
    whole = ArrayView(p, target.dtype, sizes, strides, frozenset({"assigned"}), rows=True)
    fill(e, whole, x)
    fill(e, target, as_expression(e, whole))
    e.drop(p)


def assign_numbers(e: Emitter, target: ArrayView, numbers: Sequence[Operand]) -> None:
    """``target[...] = numbers``, several of the target's dtype, where it has one dimension."""
    (n,) = target.sizes
    if known(n) != len(numbers):
        text = "could not broadcast input array from size {0} into size {1}"
        e.check(e.cmp("eq", n, len(numbers)), "ValueError", text, len(numbers), n)
    for k, v in enumerate(numbers):
        e.store(address(e, target, (integer(k),)), target.dtype, v, target.origins)


def may_hold(target: np.dtype, dtype: np.dtype) -> bool:
    """Whether a ufunc may write what it computes in ``dtype`` into an array of the dtype ``target``."""
    return np.can_cast(dtype, target, "same_kind")


def fill(e: Emitter, target: ArrayView, x: Expression) -> None:
    """``target[...] = x``, where each element that is read is not written, or is the very element being written."""

    def write():
        for indices in e.loop(target.sizes, parallel=True):
            v = cast(e, x.element(indices_of(e, x, indices, target.sizes)), target.dtype).v
            e.store(address(e, target, indices), target.dtype, v, target.origins)

    e.versions(broadcast_pairs(x, target.sizes), write)


def assign_where(e: Emitter, target: ArrayView, mask, value: Scalar, passing) -> None:
    """``target[mask] = number``. ``passing``: puts an expression into an array of its own."""
    mask = as_expression(e, mask)
    if not isinstance(mask, Expression) or mask.dtype != BOOL or mask.ndim > target.ndim:
        raise Declined("an index that is an array of this kind")
    for n, m in zip(mask.sizes, target.sizes):
        if n != m:
            e.check(
                e.cmp("eq", n, m), "IndexError", "boolean index did not match indexed array: sizes {1} and {0}", n, m
            )
    if any(view.origins & target.origins and not same_place(view, target) for view in mask.reads):
        mask = as_expression(e, passing(mask))
    v = conversions.stored(e, value, target.dtype)
    if mask.ndim == target.ndim:  # all elements are written, some as they are, so that LLVM makes vectors
        for indices in e.loop(mask.sizes, parallel=True):
            p = address(e, target, indices)
            kept = e.load(p, target.dtype, target.origins)
            v_or_kept = e.select(mask.element(indices).v, v, kept)
            e.store(p, target.dtype, v_or_kept, target.origins)
        return
    for indices in e.loop(mask.sizes):
        yes, on = e.new_label(), e.new_label()
        e.branch(mask.element(indices).v, yes, on)
        e.label(yes)
        for inner in e.loop(target.sizes[mask.ndim :]):
            e.store(address(e, target, (*indices, *inner)), target.dtype, v, target.origins)
        e.jump(on)
        e.label(on)


def store_element(e: Emitter, view: ArrayView, key, value: Scalar) -> None:
    """``view[key] = number``"""
    keys = key.items if isinstance(key, Tuple) else (key,)
    if len(keys) != view.ndim or not all(isinstance(k, Scalar) for k in keys):
        assign(e, subscript(e, view, key), value)
        return
    offset: Size = 0
    for d, (k, n, s) in enumerate(zip(keys, view.sizes, view.strides)):
        offset = e.add(offset, e.mul(checked_index(e, k, n, d), s))
    e.touch(view if view.whole is None else replace(view, turn=view.turn | facts(dict(enumerate(keys)), {})))
    e.store(e.at(view.ptr, offset), view.dtype, conversions.stored(e, value, view.dtype), view.origins)
