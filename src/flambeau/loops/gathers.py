"""Indexing with arrays: integers, read and written, and masks. NumPy reads into a new array; it writes in the order of the indices."""

from __future__ import annotations

from ..base.records import replace
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand, integer
from . import arrays
from .arrays import as_expression
from .emitter import BOOL, I64, Emitter
from .numbers import conversions
from .numbers.conversions import cast, stored
from .values import ArrayView, Declined, Expression, Known, Scalar, Slice, Tuple, Under

__all__ = ["advanced", "count_nonzero", "nonzero", "read", "write"]


ITSELF = Operand('asm "", "=r,0"', llvm.PTR)  # what LLVM doesn't look into


def advanced(key) -> bool:
    """Whether a key asks for indexing with arrays."""
    return any(isinstance(k, (ArrayView, Expression)) for k in (key.items if isinstance(key, Tuple) else (key,)))


def _mask(e: Emitter, view: ArrayView, key) -> Expression | None:
    """The mask, when the key is one, over the first dimensions or all of them."""
    mask = as_expression(e, key) if not isinstance(key, Tuple) else None
    if not isinstance(mask, Expression) or mask.dtype != BOOL:
        return None
    if mask.ndim > view.ndim:
        raise Declined("a mask of more dimensions than its array")
    for d, (n, m) in enumerate(zip(mask.sizes, view.sizes)):
        if n != m:
            text = f"boolean index did not match indexed array along axis {d}; size of axis is {{0}} but size of corresponding boolean axis is {{1}}"
            e.check(e.cmp("eq", n, m), "IndexError", text, m, n)
    return mask


class _Places:
    """What ``view[key]`` are, for arrays of integers: ``sizes`` of the result and the address of an element of it."""

    def __init__(self, e: Emitter, view: ArrayView, key):
        keys = list(key.items) if isinstance(key, Tuple) else [key]
        whole = Slice(Known(None), Known(None), Known(None))
        dots = [k for k, item in enumerate(keys) if isinstance(item, Known) and item.value is Ellipsis]
        if dots:
            keys[dots[0] : dots[0] + 1] = [whole] * (view.ndim - len(keys) + 1)
        keys += [whole] * (view.ndim - len(keys))
        if len(keys) != view.ndim:
            raise Declined("an index with more dimensions than its array, or with None beside arrays")
        place = [d for d, k in enumerate(keys) if isinstance(k, (ArrayView, Expression))]
        numbers = [d for d, k in enumerate(keys) if isinstance(k, Scalar)]
        together = sorted(place + numbers)
        if together != list(range(together[0], together[-1] + 1)):
            raise Declined("indices that are arrays, apart from each other")
        self.e, self.view, self.first = e, view, together[0]
        arrays_ = [as_expression(e, keys[d]) for d in place]
        if any(a.dtype.kind not in "iu" or a.dtype.str[1:] == "u8" for a in arrays_):
            raise Declined("an index that is an array of other things than integers, or a mask of some dimensions")
        sizes = arrays.broadcast(e, arrays_)
        self.indices = [(d, a, sizes) for d, a in zip(place, arrays_)]
        # What the slices and numbers leave of the view, the dimensions of the arrays being there as a whole.
        kept = Tuple(tuple(whole if d in place else k for d, k in enumerate(keys)))
        rest = arrays.subscript(e, view, kept)
        self.dimension = {}  # of the view with arrays -> of `rest`
        at = 0
        for d, k in enumerate(keys):
            if not isinstance(k, Scalar):
                self.dimension[d] = at
                at += 1
        self.rest = rest
        gathered = [self.dimension[d] for d in place]
        self.kept = [d for d in range(rest.ndim) if d not in gathered]
        self.inner = len(sizes)
        self.before = sum(d < gathered[0] for d in self.kept)
        outer = [rest.sizes[d] for d in self.kept]
        self.sizes = (*outer[: self.before], *sizes, *outer[self.before :])
        self.reads = tuple(v for a in arrays_ for v in a.reads)

    def address(self, indices) -> Operand:
        e, rest = self.e, self.rest
        middle = indices[self.before : self.before + self.inner]
        others = (*indices[: self.before], *indices[self.before + self.inner :])
        where = dict(zip(self.kept, others))
        for d, a, sizes in self.indices:
            at = self.dimension[d]
            i = a.element(arrays.indices_of(e, a, middle, sizes))
            where[at] = arrays.checked_index(e, Scalar(i.dtype, False, i.v), rest.sizes[at], d)
        return arrays.address(e, rest, [where[d] for d in range(rest.ndim)])


def read(e: Emitter, view: ArrayView, key, place: str, later: bool = False) -> ArrayView | Expression:
    """``view[key]``: a new array. ``later``: under a mask an expression, which may be stored under the same mask (see Under)."""
    mask = _mask(e, view, key)
    if later and not e.noting and mask is not None and mask.ndim == view.ndim and isinstance(key, ArrayView):
        under = Under(key, lambda x: _compacted(e, mask, x, place))
        return Expression(view.dtype, (1,), lambda ix: arrays.load(e, view, ix), (view, key), (), under)
    if mask is None:
        places = _Places(e, view, key)
        x = Expression(
            view.dtype, places.sizes, lambda ix: Scalar(view.dtype, False, e.load(places.address(ix), view.dtype))
        )
        out = arrays.temporary(e, view.dtype, places.sizes, place)
        for indices in e.loop(out.sizes):
            e.store(arrays.address(e, out, indices), view.dtype, x.element(indices).v)
        return out
    rest = view.sizes[mask.ndim :]
    out = arrays.temporary(e, view.dtype, (_count(e, mask, place), *rest), place)

    def copy(indices, at):
        for inner in e.loop(rest):
            element = arrays.load(e, view, (*indices, *inner)).v
            e.store(arrays.address(e, out, (at, *inner)), view.dtype, element)

    _where(e, mask, f"at@{place}", copy)
    return out


def _compacted(e: Emitter, mask: Expression, x: Expression, place: str) -> ArrayView:
    """An expression under a mask in memory."""
    out = arrays.temporary(e, x.dtype, (_count(e, mask, place),), place)

    def put(indices, at):
        e.store(arrays.address(e, out, (at,)), x.dtype, x.element(indices).v)

    _where(e, mask, f"at@{place}", put)
    return out


def _write_in_place(e: Emitter, view: ArrayView, mask: Expression, value: Expression) -> None:
    """``view[mask] = value`` of an expression under the same mask: each element is read where it is written."""
    for indices in e.loop(mask.sizes):
        yes, on = e.new_label(), e.new_label()
        e.branch(mask.element(indices).v, yes, on)
        e.label(yes)
        # LLVM would compute vectors of elements, and raise the floating-point flags of those where the mask is false.
        first, *rest = indices
        single = (e.call(llvm.I64, ITSELF, integer(first)), *rest)
        e.store(arrays.address(e, view, single), view.dtype, cast(e, value.element(single), view.dtype).v, view.origins)
        e.jump(on)
        e.label(on)


def _where(e: Emitter, mask: Expression, counter: str, do) -> Operand:
    """``do(indices, number)`` for each place at which the mask is true; how many there were."""
    e.set(counter, llvm.I64, 0)
    for indices in e.loop(mask.sizes):
        yes, on = e.new_label(), e.new_label()
        e.branch(mask.element(indices).v, yes, on)
        e.label(yes)
        at = e.get(counter, llvm.I64)
        do(indices, at)
        e.set(counter, llvm.I64, e.add(at, 1))
        e.jump(on)
        e.label(on)
    return e.get(counter, llvm.I64)


def write(e: Emitter, view: ArrayView, key, value, passing, place: str) -> None:
    """``view[key] = value``. ``passing``: puts an expression into an array of its own."""
    mask = _mask(e, view, key)
    if mask is not None and isinstance(value, Expression) and value.under is not None and value.under.mask is key:
        others = [v for v in value.reads if v.origins & view.origins and not arrays.same_place(v, view)]
        if mask.ndim == view.ndim and not others:
            _write_in_place(e, view, mask, value)
            return
    if isinstance(value, (ArrayView, Expression)):
        value = as_expression(e, value)
        if any(v.origins & view.origins for v in value.reads):
            value = as_expression(e, passing(value))
    elif not isinstance(value, Scalar):
        raise Declined(f"a {type(value).__name__.lower()} is stored by an array of indices")
    if mask is not None:
        if mask.ndim != view.ndim:
            raise Declined("an array is written where a mask of fewer dimensions is true")
        if any(v.origins & view.origins for v in mask.reads):
            mask = as_expression(e, passing(mask))
        if isinstance(value, Expression):
            if value.ndim != 1:
                raise Declined("an array of several dimensions is stored where a mask is true")
            n, have = value.sizes[0], _count(e, mask, place)
            fits = e.op("or", e.cmp("eq", n, have), e.cmp("eq", n, 1))
            text = "NumPy boolean array indexing assignment cannot assign {0} input values to the {1} output values where the mask is true"
            e.check(fits, "ValueError", text, n, have)
            one = e.cmp("eq", n, 1)

        def put(indices, at):
            if isinstance(value, Expression):
                v = cast(e, value.element((e.select(one, 0, at),)), view.dtype).v
            else:
                v = stored(e, value, view.dtype)
            e.store(arrays.address(e, view, indices), view.dtype, v)

        _where(e, mask, f"at@{place}", put)
        return
    places = _Places(e, view, key)
    if any(v.origins & view.origins for v in places.reads):
        raise Declined("indices that are read from the array that is written")
    if isinstance(value, Expression):
        if value.ndim > len(places.sizes):
            raise Declined("an array with more dimensions than its place")
        for n, m in zip(value.sizes[::-1], places.sizes[::-1]):
            if n not in (m, 1):
                fits = e.op("or", e.cmp("eq", n, m), e.cmp("eq", n, 1))
                e.check(
                    fits,
                    "ValueError",
                    "shape mismatch: value array of size {0} could not be broadcast to size {1}",
                    n,
                    m,
                )
    for indices in e.loop(places.sizes):
        if isinstance(value, Expression):
            v = cast(e, value.element(arrays.indices_of(e, value, indices, places.sizes)), view.dtype).v
        else:
            v = stored(e, value, view.dtype)
        e.store(places.address(indices), view.dtype, v)


def nonzero(e: Emitter, place: str, x) -> Tuple:
    """np.nonzero of one dimension."""
    x = as_expression(e, x)
    if not isinstance(x, Expression) or x.ndim != 1:
        raise Declined("np.nonzero of several dimensions")
    mask = replace(x, dtype=BOOL, element=lambda ix: Scalar(BOOL, False, conversions.to_bool(e, x.element(ix))))
    out = arrays.temporary(e, I64, (_count(e, mask, place),), place)
    _where(e, mask, f"at@{place}", lambda ix, at: e.store(arrays.address(e, out, (at,)), I64, integer(ix[0])))
    return Tuple((out,))


def count_nonzero(e: Emitter, place: str, x) -> Scalar:
    x = as_expression(e, x)
    if not isinstance(x, Expression):
        raise Declined("np.count_nonzero of a number")
    return Scalar(I64, False, _count(e, x, place), (0, 1 << 62))


def _count(e: Emitter, x: Expression, place: str) -> Operand:
    """How many elements are true."""
    counter = f"count@{place}"
    e.set(counter, llvm.I64, 0)
    for indices in e.loop(x.sizes):
        one = e.to("zext", conversions.to_bool(e, x.element(indices)), llvm.I64)
        e.set(counter, llvm.I64, e.add(e.get(counter, llvm.I64), one))
    return e.get(counter, llvm.I64)
