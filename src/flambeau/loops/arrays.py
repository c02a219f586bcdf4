"""Array views, element-wise expressions, and what stores and reduces them: small loops inside the loop.

Indices are checked as NumPy checks them. An expression is evaluated where it is used up, element by element in row-major order; when it
reads memory that it is being stored to under another view, it goes through a buffer of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from ..base.records import replace
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand, ParameterOperand, integer
from . import bounds as between
from . import complexes, conversions
from .conversions import cast, loop_dtypes
from .dependence import facts
from .emitter import BOOL, I64, Emitter, constant
from .values import (
    Array,
    ArrayView,
    Declined,
    Expression,
    Known,
    Scalar,
    Size,
    Slice,
    Tuple,
    Under,
    known,
    register_type,
)

__all__ = [
    "OnElements",
    "as_expression",
    "assign",
    "assign_numbers",
    "broadcast",
    "described",
    "elementwise",
    "fill",
    "filled",
    "load",
    "materialise",
    "may_hold",
    "operand",
    "same_place",
    "size",
    "store_element",
    "subscript",
    "temporary",
]


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


# ---- subscripts ----------------------------------------------------------------------------------------------------------


def _index(e: Emitter, i: Scalar, n: Size, axis: int) -> Size:
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
    return start, e.larger(e.sub(stop, start), 0) if not (start == 0 and stop == n) else n


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
            offset = e.add(offset, e.mul(_index(e, k, n, d), s))
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
            if isinstance(k.start, Scalar) and getattr(k.stop, "sum_of", None) == (k.start.v, step):
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
        e.check(
            e.cmp("sgt", v, 0), "RuntimeError", f"a slice of a compiled loop goes down, or nowhere{conversions.INSTEAD}"
        )
    return v


def address(e: Emitter, view: ArrayView, indices) -> Operand:
    e.touch(view, bool(indices) and view.rows and indices[0] is e.row)
    offset: Size = 0
    for i, s in zip(indices, view.strides):
        offset = e.add(offset, e.mul(i, s))
    return e.at(view.ptr, offset)


def load(e: Emitter, view: ArrayView, indices) -> Scalar:
    return Scalar(view.dtype, False, e.load(address(e, view, indices), view.dtype, view.origins))


# ---- element-wise expressions -------------------------------------------------------------------------------------------


@overload
def as_expression(e: Emitter, x: ArrayView | Expression) -> Expression: ...
@overload
def as_expression(e: Emitter, x: Any) -> Expression | Scalar: ...
def as_expression(e: Emitter, x) -> Expression | Scalar:
    """The elements of an array in memory; a number as it is."""
    if isinstance(x, ArrayView):
        return Expression(x.dtype, x.sizes, lambda indices: load(e, x, indices), (x,))
    if isinstance(x, Expression) and x.under is not None:
        return as_expression(e, x.under.compact(x))
    if isinstance(x, Expression) or (isinstance(x, Scalar) and x.kind != "U"):
        return x
    raise Declined(f"a {type(x).__name__.lower()} in an array expression")


def given_sizes(e: Emitter, shape) -> list:
    """The sizes that a program gives for a new array: an integer or a tuple of them, checked not to be negative."""
    sizes = []
    for n in shape.items if isinstance(shape, Tuple) else (shape,):
        if not isinstance(n, Scalar) or n.kind not in "iu":
            raise Declined("a size of an array that isn't made of integers")
        n = conversions.to_int(e, n)
        if not (n.bounds and n.bounds[0] >= 0):
            e.check(e.cmp("sge", n.v, 0), "ValueError", "negative dimensions are not allowed")
        sizes.append(e.know(n.v, n.bounds))
    return sizes


def filled(value: Scalar, sizes) -> Expression:
    """An array of one number."""
    return Expression(value.dtype, tuple(sizes), lambda indices: replace(value, weak=False))


def broadcast(e: Emitter, operands) -> tuple[Size, ...]:
    """Common sizes; what doesn't fit ends the loop with NumPy's error."""
    ndim = max(x.ndim for x in operands)
    sizes: list[Size] = []
    for d in range(ndim):
        size: Size = 1
        for x in operands:
            k = d - (ndim - x.ndim)
            if k < 0 or x.sizes[k] == size or x.sizes[k] == 1:
                continue
            n = x.sizes[k]
            if size == 1:
                size = n
                continue
            one = e.cmp("eq", size, 1)
            fits = e.op("or", e.cmp("eq", size, n), one)
            fits = e.op("or", fits, e.cmp("eq", n, 1))
            e.check(fits, "ValueError", "operands could not be broadcast together: sizes {0} and {1}", size, n)
            size = e.select(one, n, size)
        sizes.append(size)
    return tuple(sizes)


def _indices_of(e: Emitter, x: Expression, indices, sizes) -> tuple[Size, ...]:
    """The element of ``x`` that belongs to an element of the broadcast result."""
    out = []
    for k, i in enumerate(indices[len(indices) - x.ndim :]):
        n, size = x.sizes[k], sizes[len(indices) - x.ndim + k]
        if n == size or (e.expecting and n != 1 and n not in e.ones):
            out.append(i)
        elif n == 1 or e.expecting:
            out.append(0)
        else:
            out.append(e.select(e.cmp("eq", n, 1), 0, i))
    return tuple(out)


def broadcast_pairs(x: Expression, sizes) -> tuple[tuple[Size, Size], ...]:
    """What ``_indices_of`` depends on: (size of a part, size of the result)."""
    own = zip(x.sizes, sizes[len(sizes) - x.ndim :])
    return (*x.pairs, *((n, size) for n, size in own if n not in (size, 1)))


def elementwise(e: Emitter, fn, *operands) -> Expression | Scalar:
    """``fn(*numbers)`` of each element of the broadcast operands."""
    under = _common_mask(operands)
    xs = [x if under is not None else as_expression(e, x) for x in operands]
    arrays = [x for x in xs if isinstance(x, Expression)]
    if not arrays:
        return fn(*xs)
    sizes = broadcast(e, arrays) if under is None else arrays[0].sizes

    def element(indices):
        def own(x):
            return indices if under is not None else _indices_of(e, x, indices, sizes)

        return fn(*(x.element(own(x)) if isinstance(x, Expression) else x for x in xs))

    reads = tuple(view for x in arrays for view in x.reads)
    pairs = () if under is not None else tuple(pair for x in arrays for pair in broadcast_pairs(x, sizes))
    # The dtype comes from a trial whose code is thrown away.
    trial = [x if isinstance(x, Scalar) else Scalar(x.dtype, False, Operand("%x", register_type(x.dtype))) for x in xs]
    return Expression(fn.trial(Emitter(), *trial).dtype, sizes, element, reads, pairs, under)


def _common_mask(operands) -> Under | None:
    """The mask under which all that are arrays are taken."""
    given = [x for x in operands if isinstance(x, (ArrayView, Expression))]
    unders = [getattr(x, "under", None) for x in given]
    first = unders[0] if unders else None
    if first is None or any(u is None or u.mask is not first.mask for u in unders):
        return None
    return first if all(isinstance(x, (Expression, Scalar)) for x in operands) else None


class OnElements:
    """A function of numbers that emits with the given emitter; ``trial`` runs it with another one."""

    def __init__(self, e: Emitter, fn):
        self.e, self.fn = e, fn

    def __call__(self, *numbers):
        return self.fn(self.e, *numbers)

    def trial(self, emitter, *numbers):
        return self.fn(emitter, *numbers)


# ---- stores ----------------------------------------------------------------------------------------------------------------


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


def same_place(a: ArrayView, b: ArrayView) -> bool:
    return (a.ptr, a.dtype, a.sizes, a.strides) == (b.ptr, b.dtype, b.sizes, b.strides)


def fill(e: Emitter, target: ArrayView, x: Expression) -> None:
    """``target[...] = x``, where each element that is read is not written, or is the very element being written."""

    def write():
        for indices in e.loop(target.sizes, parallel=True):
            v = cast(e, x.element(_indices_of(e, x, indices, target.sizes)), target.dtype).v
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
                e.cmp("eq", n, m),
                "IndexError",
                "boolean index did not match indexed array: sizes {1} and {0}",
                n,
                m,
            )
    if any(view.origins & target.origins and not same_place(view, target) for view in mask.reads):
        mask = as_expression(e, passing(mask))
    v = conversions.stored(e, value, target.dtype)
    for indices in e.loop(mask.sizes):
        yes, on = e.new_label(), e.new_label()
        e.branch(mask.element(indices).v, yes, on)
        e.label(yes)
        for inner in e.loop(target.sizes[mask.ndim :]):
            e.store(address(e, target, (*indices, *inner)), target.dtype, v, target.origins)
        e.jump(on)
        e.label(on)


def temporary(e: Emitter, dtype: np.dtype, sizes, place: str) -> ArrayView:
    """A new array that nothing holds yet: it is given back at the end of the turn unless a variable gets it. ``place`` names where in the code
    it is made."""
    p = e.buffer(e.mul(count(e, sizes), dtype.itemsize))
    e.drop(p)
    strides = dense_strides(e, sizes, dtype.itemsize)
    return ArrayView(p, dtype, tuple(sizes), strides, frozenset({place}), p, rows=True)


def materialise(e: Emitter, x: Expression, place: str) -> ArrayView:
    """A new array with the elements of ``x``. ``place`` names where in the code it is made."""
    if x.under is not None:
        made = x.under.compact(x)
        e.keep(made.ptr)
        return made
    p = e.buffer(e.mul(count(e, x.sizes), x.dtype.itemsize))
    strides = dense_strides(e, x.sizes, x.dtype.itemsize)
    view = ArrayView(p, x.dtype, x.sizes, strides, frozenset({place}), p, rows=True)
    fill(e, view, x)
    return view


def store_element(e: Emitter, view: ArrayView, key, value: Scalar) -> None:
    """``view[key] = number``"""
    keys = key.items if isinstance(key, Tuple) else (key,)
    if len(keys) != view.ndim or not all(isinstance(k, Scalar) for k in keys):
        assign(e, subscript(e, view, key), value)
        return
    offset: Size = 0
    for d, (k, n, s) in enumerate(zip(keys, view.sizes, view.strides)):
        offset = e.add(offset, e.mul(_index(e, k, n, d), s))
    e.touch(view if view.whole is None else replace(view, turn=view.turn | facts(dict(enumerate(keys)), {})))
    e.store(e.at(view.ptr, offset), view.dtype, conversions.stored(e, value, view.dtype), view.origins)


def part(e: Emitter, x, name: str):
    """``x.real`` and ``x.imag``: of an array in memory, a view."""
    if isinstance(x, ArrayView) and x.dtype.kind == "c":
        of = complexes.part(x.dtype)
        return replace(x, ptr=e.at(x.ptr, 0 if name == "real" else of.itemsize), dtype=of, whole=None)
    if isinstance(x, ArrayView):
        if name == "imag":
            raise Declined("imag of an array that isn't complex")
        return x
    return elementwise(e, OnElements(e, complexes.real if name == "real" else complexes.imag), x)


def where(e: Emitter, c: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """np.where of numbers."""
    compute, _ = loop_dtypes(np.maximum, replace(a, weak=a.weak is not False), replace(b, weak=b.weak is not False))
    x, y = cast(e, a, compute).v, cast(e, b, compute).v
    return Scalar(compute, False, e.select(conversions.to_bool(e, c), x, y))


def as_dtype(e: Emitter, x, dtype: np.dtype) -> Expression | Scalar:
    """``x.astype(dtype)``"""
    return elementwise(e, OnElements(e, lambda e, s: cast(e, s, dtype, False)), x)


def zero(dtype: np.dtype) -> Scalar:
    return constant(dtype.type(0))
