"""Element-wise expressions: what is computed of each element where the expression is used up, and broadcasting."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from ...base.records import replace
from ...inductor.assembly.instructions import Operand
from ..emitter import Emitter
from ..numbers import complexes, conversions
from ..numbers.conversions import cast, loop_dtypes
from ..values import ArrayView, Declined, Expression, Scalar, Size, Under, register_type
from .views import load

__all__ = [
    "OnElements",
    "as_dtype",
    "as_expression",
    "broadcast",
    "broadcast_pairs",
    "elementwise",
    "filled",
    "indices_of",
    "part",
    "where",
]


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


def indices_of(e: Emitter, x: Expression, indices, sizes) -> tuple[Size, ...]:
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
    """What ``indices_of`` depends on: (size of a part, size of the result)."""
    own = zip(x.sizes, sizes[len(sizes) - x.ndim :])
    return (*x.pairs, *((n, size) for n, size in own if n not in (size, 1)))


def elementwise(e: Emitter, fn, *operands, into: ArrayView | None = None) -> Expression | Scalar:
    """``fn(*numbers)`` of each element of the broadcast operands, which are those of ``into`` where it is one of them that the results replace."""
    under = _common_mask(operands)
    xs = [x if under is not None else as_expression(e, x) for x in operands]
    arrays = [x for x in xs if isinstance(x, Expression)]
    if not arrays:
        return fn(*xs)
    e.same.update(x.v.text for x in xs if isinstance(x, Scalar))
    sizes = broadcast(e, arrays) if under is None else arrays[0].sizes
    if into is not None and under is None:
        sizes = _as_large_as(e, sizes, into)

    def element(indices):
        def own(x):
            return indices if under is not None else indices_of(e, x, indices, sizes)

        return fn(*(x.element(own(x)) if isinstance(x, Expression) else x for x in xs))

    reads = tuple(view for x in arrays for view in x.reads)
    pairs = () if under is not None else tuple(pair for x in arrays for pair in broadcast_pairs(x, sizes))
    # The dtype comes from a trial whose code is thrown away.
    trial = [x if isinstance(x, Scalar) else Scalar(x.dtype, False, Operand("%x", register_type(x.dtype))) for x in xs]
    return Expression(fn.trial(Emitter(), *trial).dtype, sizes, element, reads, pairs, under)


def _as_large_as(e: Emitter, sizes, into: ArrayView) -> tuple[Size, ...]:
    """The sizes of what is overwritten, to which nothing may be broadcast that has others."""
    if len(sizes) > into.ndim:
        raise Declined("an array with more dimensions than its place")
    for n, m in zip(sizes, into.sizes):
        if n != m:
            text = "could not broadcast input array from size {0} into size {1}"
            e.check(e.cmp("eq", n, m), "ValueError", text, n, m)
    return into.sizes


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
