"""Arrays put together from numbers and arrays: np.array, np.concatenate and their like."""

from __future__ import annotations

import functools

import numpy as np

from ...base.records import replace
from ...inductor.assembly.instructions import Operand
from .. import arrays
from ..emitter import F64, Emitter, constant
from ..numbers import conversions
from ..numbers.conversions import cast
from ..values import ArrayView, Declined, Expression, Known, Scalar, Size, Tuple, memory_type

__all__ = ["array", "asarray", "concatenate", "hstack", "known_axis", "row", "stack", "vstack"]


def _parts(e: Emitter, place: str, x) -> list[Expression]:
    """What is put together; lists of numbers are arrays."""
    items = x.items if isinstance(x, Tuple) else ()
    made = [array(e, f"{place}.{k}", p) if isinstance(p, Tuple) else p for k, p in enumerate(items)]
    given = [arrays.as_expression(e, p) for p in made]
    parts = [p for p in given if isinstance(p, Expression)]
    if not parts or len(parts) != len(given) or len({p.ndim for p in parts}) != 1:
        raise Declined("a concatenation of these values")
    return parts


def known_axis(axis, ndim: int) -> int:
    axis = getattr(axis, "const", axis)
    if type(axis) is not int or not -ndim <= axis < ndim:
        raise Declined("an axis that isn't known")
    return axis % ndim


def concatenate(e: Emitter, place: str, parts, axis=0) -> ArrayView:
    parts = _parts(e, place, parts)
    axis = known_axis(axis, parts[0].ndim)
    dtype = np.result_type(*(p.dtype for p in parts))
    total: Size = 0
    first = parts[0].sizes
    for p in parts:
        for d, (n, m) in enumerate(zip(p.sizes, first)):
            if d != axis and n != m:
                text = "all the input array dimensions except for the concatenation axis must match exactly"
                e.check(e.cmp("eq", n, m), "ValueError", text)
        total = e.add(total, p.sizes[axis])
    out = arrays.temporary(e, dtype, (*first[:axis], total, *first[axis + 1 :]), place)
    start: Size = 0
    for p in parts:
        into = replace(out, ptr=e.at(out.ptr, e.mul(start, out.strides[axis])), sizes=p.sizes, rows=False)
        arrays.fill(e, into, p)
        start = e.add(start, p.sizes[axis])
    return out


def hstack(e: Emitter, place: str, parts) -> ArrayView:
    return concatenate(e, place, parts, 0 if _parts(e, place, parts)[0].ndim == 1 else 1)


def vstack(e: Emitter, place: str, parts) -> ArrayView:
    rows = _parts(e, place, parts)
    if rows[0].ndim > 1:
        return concatenate(e, place, parts)
    return stack(e, place, parts)


def stack(e: Emitter, place: str, parts, axis=0) -> ArrayView:
    parts = _parts(e, place, parts)
    axis = known_axis(axis, parts[0].ndim + 1)

    def opened(p: Expression) -> Expression:
        def element(indices):
            return p.element((*indices[:axis], *indices[axis + 1 :]))

        return replace(p, sizes=(*p.sizes[:axis], 1, *p.sizes[axis:]), element=element)

    return concatenate(e, place, Tuple(tuple(map(opened, parts))), constant(axis))


def array(e: Emitter, place: str, x, dtype=None):
    """np.array of numbers, of lists of them, and of arrays side by side."""
    of = None if dtype is None else np.dtype(dtype.value) if isinstance(dtype, Known) else np.dtype("O")
    if of is not None:
        memory_type(of)
    if isinstance(x, ArrayView | Expression):
        return arrays.as_dtype(e, x, of or x.dtype)
    if not isinstance(x, Tuple) or not x.items:
        raise Declined("np.array of these values")
    if any(isinstance(item, ArrayView | Expression) for item in x.items):
        out = stack(e, place, x)
        return out if of in (None, out.dtype) else arrays.as_dtype(e, out, of)
    shape, numbers = _nested(x)
    if of is None:
        of = functools.reduce(np.promote_types, [n.dtype for n in numbers])
        memory_type(of)
        unknown = [n for n in numbers if n.weak is None]
        if unknown and (of != F64 or not any(n.dtype == F64 and n.weak is not None for n in numbers)):
            raise Declined("np.array of numbers of which it isn't known whether they are Python's")
    out = arrays.temporary(e, of, shape, place)
    for k, v in enumerate(_as(e, numbers, of)):
        e.store(e.at(out.ptr, k * of.itemsize), of, v)
    return out


def _as(e: Emitter, numbers: list[Scalar], dtype: np.dtype) -> list[Operand]:
    """Numbers as np.array turns them into a dtype."""
    return [cast(e, n, dtype, False).v if n.weak is False else conversions.stored(e, n, dtype) for n in numbers]


def row(e: Emitter, x: Tuple, dtype: np.dtype) -> list[Operand] | None:
    """Several numbers in a tuple, in this dtype; None for another tuple."""
    numbers = [n for n in x.items if isinstance(n, Scalar)]
    return _as(e, numbers, dtype) if len(numbers) == len(x.items) > 1 else None


def asarray(e: Emitter, place: str, x, dtype=None):
    if isinstance(x, ArrayView) and (dtype is None or (isinstance(dtype, Known) and np.dtype(dtype.value) == x.dtype)):
        return x
    return array(e, place, x, dtype)


def _nested(x: Tuple) -> tuple[tuple[int, ...], list[Scalar]]:
    """Shape and numbers of nested lists."""
    if all(isinstance(item, Scalar) for item in x.items):
        return (len(x.items),), list(x.items)
    if not all(isinstance(item, Tuple) and item.items for item in x.items):
        raise Declined("np.array of these values")
    parts = [_nested(item) for item in x.items]
    if len({shape for shape, _ in parts}) != 1:
        raise Declined("np.array of lists of different lengths")
    return (len(parts), *parts[0][0]), [n for _, numbers in parts for n in numbers]
