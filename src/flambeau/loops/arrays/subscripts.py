"""Subscripts of views: integers, slices, ``...`` and None. Indices are checked as NumPy checks them."""

from __future__ import annotations

import itertools

import numpy as np

from ...base.records import replace
from ...inductor.assembly.instructions import Operand
from ..emitter import I64, Emitter
from ..faults import Limit
from ..numbers import bounds as between
from ..numbers.conversions import cast
from ..threads.dependence import facts
from ..values import ArrayView, Declined, Known, Scalar, Size, Slice, Tuple, known, plain
from .views import load

__all__ = ["checked_index", "subscript"]


def checked_index(e: Emitter, i: Scalar, n: Size, axis: int) -> Size:
    """A checked, non-negative index."""
    if i.kind not in "iu" or i.dtype == np.uint64:
        raise Declined(f"an index of {i.dtype}")
    i = cast(e, i, I64)
    v, size = i.v, e.bounds_of(n)
    if i.bounds and size and i.bounds[1] < 0 and i.bounds[0] >= -size[0]:
        return e.add(v, n)
    place: Operand = v
    if not (i.bounds and i.bounds[0] >= 0):
        negative = e.cmp("slt", v, 0)
        place = e.select(negative, e.op("add", v, n), v)
    if i.bounds and size and i.bounds[1] < size[0] and i.bounds[0] >= -size[0]:
        return place
    if i.bounds and i.bounds[0] >= 0 and i.below and isinstance(n, between.SizeOperand):
        of, more = n.place
        if i.below[0] is of and i.below[1] < more:
            return place
    ok = e.cmp("ult", place, n)
    e.check(ok, "IndexError", f"index {{0}} is out of bounds for axis {axis} with size {{1}}", v, n)
    return place


def _bound(e: Emitter, s, n: Size, default: Size) -> Size:
    """One end of a slice, clamped into 0..n."""
    if isinstance(s, Known) and s.value is None:
        return default
    if not isinstance(s, Scalar) or s.kind not in "iu":
        raise Declined("a slice whose ends aren't integers")
    s = cast(e, s, I64)
    v = e.know(s.v, s.bounds)
    if not (s.bounds and s.bounds[0] >= 0):
        if s.bounds and s.bounds[1] < 0:
            v = e.add(v, n)
        else:
            v = e.select(e.cmp("slt", v, 0), e.op("add", v, n), v)
        v = e.larger(v, 0)
    return e.smaller(v, n)


def _between(e: Emitter, k: Slice, n: Size) -> tuple[Size, Size]:
    """Start of a slice of step 1, and its length."""
    start, stop = _bound(e, k.start, n, 0), _bound(e, k.stop, n, n)
    more = _span(k)
    if more is not None and (start, stop) == (plain(k.start.v), plain(k.stop.v)):  # neither is clamped
        return start, e.know(more.v, more.bounds)
    return start, e.larger(e.sub(stop, start), 0) if not (start == 0 and stop == n) else n


def _span(k: Slice) -> Scalar | None:
    """What isn't negative and has been added to the start of a slice to make its stop."""
    for one, other in itertools.permutations(getattr(k.stop, "sum_of", None) or (), 2):
        if isinstance(k.start, Scalar) and k.start.v == one.v and other.bounds and other.bounds[0] >= 0:
            return other
    return None


def _inner(e: Emitter, k: Slice, n: Size) -> tuple[Size, Size] | None:
    """The same for a slice that leaves out a known number of elements at both ends, of a size that is known at the start: the lengths of such
    slices are equal as text when they are equal."""
    first, last = (
        0 if isinstance(s, Known) and s.value is None else getattr(s, "const", None) for s in (k.start, k.stop)
    )
    last_is_end = isinstance(k.stop, Known)
    if type(first) is not int or type(last) is not int or first < 0 or not (last < 0 or last_is_end):
        return None
    if not isinstance(n, Operand) or not e.is_at_entry(n):
        return None
    if first == last == 0:
        return 0, n
    # An empty slice may start behind the end: nothing is read there.
    length, size = e.larger_at_entry(e.added_at_entry(n, last - first), 0), e.bounds_of(n)
    return first, e.know(length, size and between.of("+", size, (last - first,) * 2))


def _downwards(e: Emitter, k: Slice, n: Size, step: int) -> tuple[Size, Size]:
    """Start of a slice that goes down by ``step``, and its length."""

    def end(s, default: Size) -> Size:
        if isinstance(s, Known) and s.value is None:
            return default
        if not isinstance(s, Scalar) or s.kind not in "iu":
            raise Declined("a slice whose ends aren't integers")
        v: Size = cast(e, s, I64).v
        if not (s.bounds and s.bounds[0] >= 0):
            v = e.larger(e.select(e.cmp("slt", v, 0), e.add(v, n), v), -1)
        return e.smaller(v, last)

    last = e.sub(n, 1)
    start, stop = end(k.start, last), end(k.stop, -1)
    length = e.larger(e.sub(start, stop), 0)
    if step != 1:
        length = e.op("sdiv", e.add(length, step - 1), step)
    return e.larger(start, 0), length


def subscript(e: Emitter, view: ArrayView, key) -> ArrayView | Scalar:
    """``view[key]`` for integers, slices, ``...`` and None; a Scalar when no dimension is left."""
    keys = list(key.items) if isinstance(key, Tuple) else [key]
    if any(isinstance(k, Known) and k.value is Ellipsis for k in keys):
        at = next(i for i, k in enumerate(keys) if isinstance(k, Known) and k.value is Ellipsis)
        used = sum(not (isinstance(k, Known) and k.value is None) for k in keys) - 1
        keys[at : at + 1] = [Slice(Known(None), Known(None), Known(None))] * (view.ndim - used)
    offset: Size = 0
    sizes: list[Size] = []
    strides: list[Size] = []
    d, rows = 0, view.rows
    indices: dict[int, Scalar] = {}
    slices: dict[int, Slice] = {}  # that go up
    for k in keys:
        if isinstance(k, Known) and k.value is None:
            rows = rows and bool(sizes)
            sizes.append(1)
            strides.append(0)
            continue
        if d >= view.ndim:
            raise Declined("too many indices")
        n, s = view.sizes[d], view.strides[d]
        if isinstance(k, Scalar):
            offset = e.add(offset, e.mul(checked_index(e, k, n, d), s))
            indices[d] = k
            rows = rows and d > 0
        elif isinstance(k, Slice):
            step = 1 if isinstance(k.step, Known) else _step(e, k.step)
            if known(step) is not None and known(step) < 0:
                start, length = _downwards(e, k, n, -step)
                offset = e.add(offset, e.mul(start, s))
                sizes.append(length)
                strides.append(e.mul(s, step))
                rows = rows and d > 0
                d += 1
                continue
            start, length = _inner(e, k, n) or _between(e, k, n)
            slices[d] = k
            rows = rows and (d > 0 or known(start) == 0 and known(step) == 1)
            if (more := _span(k)) is not None and more.const == known(step):
                e.ones.add(length)
            if step != 1:
                length = e.op("sdiv", e.add(length, e.sub(step, 1)), step)
            offset = e.add(offset, e.mul(start, s))
            sizes.append(length)
            strides.append(e.mul(s, step))
        else:
            raise Declined(f"an index that is a {type(k).__name__.lower()}")
        d += 1
    sizes += view.sizes[d:]
    strides += view.strides[d:]
    turn = view.turn if view.whole is None else view.turn | facts(indices, slices)
    out = replace(
        view, ptr=e.at(view.ptr, offset), sizes=tuple(sizes), strides=tuple(strides), whole=None, turn=turn, rows=rows
    )
    return out if sizes else load(e, out, ())


def _step(e: Emitter, s) -> Size:
    """The step of a slice; one that isn't known goes up."""
    if not isinstance(s, Scalar) or s.kind not in "iu" or s.const == 0:
        raise Declined("a slice whose step isn't an integer, or is zero")
    if type(s.const) is int:
        return s.const
    v = cast(e, s, I64).v
    if not (s.bounds and s.bounds[0] > 0):
        e.check(e.cmp("sgt", v, 0), "RuntimeError", Limit("a slice of a compiled loop goes down, or nowhere"))
    return v
