"""Arrays put together from arrays: concatenation, rolling, products over one dimension, ranges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..inductor.assembly.instructions import integer
from . import arithmetic, arrays, gathers, reductions
from .arithmetic import cast
from .arrays import OnElements
from .emitter import I64, Emitter, constant
from .values import ArrayView, Declined, Expression, Known, Scalar, Size, Slice, Tuple

__all__ = ["FUNCTIONS"]


def _parts(e: Emitter, x) -> list[Expression]:
    given = [arrays.as_expression(e, p) for p in x.items] if isinstance(x, Tuple) else []
    parts = [p for p in given if isinstance(p, Expression)]
    if not parts or len(parts) != len(given) or len({p.ndim for p in parts}) != 1:
        raise Declined("a concatenation of these values")
    return parts


def _axis(axis, ndim: int) -> int:
    axis = getattr(axis, "const", axis)
    if type(axis) is not int or not -ndim <= axis < ndim:
        raise Declined("an axis that isn't known")
    return axis % ndim


def concatenate(e: Emitter, place: str, parts, axis=0) -> ArrayView:
    parts = _parts(e, parts)
    axis = _axis(axis, parts[0].ndim)
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
        into = replace(out, ptr=e.at(out.ptr, e.mul(start, out.strides[axis])), sizes=p.sizes)
        arrays.fill(e, into, p)
        start = e.add(start, p.sizes[axis])
    return out


def hstack(e: Emitter, place: str, parts) -> ArrayView:
    return concatenate(e, place, parts, 0 if _parts(e, parts)[0].ndim == 1 else 1)


def vstack(e: Emitter, place: str, parts) -> ArrayView:
    rows = _parts(e, parts)
    if rows[0].ndim > 1:
        return concatenate(e, place, parts)
    return stack(e, place, parts)


def stack(e: Emitter, place: str, parts, axis=0) -> ArrayView:
    parts = _parts(e, parts)
    axis = _axis(axis, parts[0].ndim + 1)

    def opened(p: Expression) -> Expression:
        def element(indices):
            return p.element((*indices[:axis], *indices[axis + 1 :]))

        return replace(p, sizes=(*p.sizes[:axis], 1, *p.sizes[axis:]), element=element)

    return concatenate(e, place, Tuple(tuple(map(opened, parts))), constant(axis))


def roll(e: Emitter, place: str, x, shift, axis=None) -> ArrayView:
    x = arrays.as_expression(e, x)
    if not isinstance(x, Expression) or not isinstance(shift, Scalar) or shift.kind not in "iu":
        raise Declined("np.roll of these values")
    if axis is None or (isinstance(axis, Known) and axis.value is None):
        if x.ndim != 1:
            raise Declined("np.roll of all dimensions")
        axis = 0
    axis = _axis(axis, x.ndim)
    n = x.sizes[axis]
    whole = arrays.temporary(e, x.dtype, x.sizes, f"{place} source")
    out = arrays.temporary(e, x.dtype, x.sizes, place)
    arrays.fill(e, whole, x)
    # Python's remainder of the shift; a dimension without elements has nothing to move
    some = e.larger(n, 1)
    by = e.op("srem", cast(e, shift, I64).v, some)
    by = e.select(e.cmp("slt", by, 0), e.add(by, n), by)
    rest = e.sub(n, by)

    def part(view: ArrayView, start: Size, length: Size) -> ArrayView:
        sizes = (*view.sizes[:axis], length, *view.sizes[axis + 1 :])
        return replace(view, ptr=e.at(view.ptr, e.mul(start, view.strides[axis])), sizes=sizes)

    arrays.fill(e, part(out, by, rest), arrays.as_expression(e, part(whole, 0, rest)))
    arrays.fill(e, part(out, 0, by), arrays.as_expression(e, part(whole, rest, by)))
    return out


def tensordot(e: Emitter, place: str, a, b, axes=None):
    x, y = arrays.as_expression(e, a), arrays.as_expression(e, b)
    one = getattr(axes, "const", None) == 1
    if not one or not isinstance(x, Expression) or not isinstance(y, Expression) or x.ndim != 1 or y.ndim < 1:
        raise Declined("np.tensordot of these arguments")
    if x.sizes[0] != y.sizes[0]:
        e.check(e.cmp("eq", x.sizes[0], y.sizes[0]), "ValueError", "shape-mismatch for sum")
    column = replace(x, sizes=(*x.sizes, *(1 for _ in y.sizes[1:])), element=lambda indices: x.element(indices[:1]))
    product = arrays.elementwise(e, OnElements(e, lambda e, p, q: arithmetic.binary(e, "*", p, q)), column, y)
    return reductions.reduce(e, "sum", product, (0,), False, place)


def arange(e: Emitter, place: str, stop) -> Expression:
    if not isinstance(stop, Scalar) or stop.dtype != I64:
        raise Declined("np.arange of this number")
    return Expression(I64, (e.larger(stop.v, 0),), lambda indices: Scalar(I64, False, integer(indices[0])))


def transpose(e: Emitter, place: str, x) -> ArrayView:
    if not isinstance(x, ArrayView):
        raise Declined("the transpose of an expression")
    return replace(x, sizes=x.sizes[::-1], strides=x.strides[::-1], whole=None)


def ravel(e: Emitter, place: str, x) -> ArrayView:
    if isinstance(x, ArrayView) and x.ndim == 1:
        return arrays.subscript(e, x, Slice(Known(None), Known(None), Known(None)))
    raise Declined("np.ravel of an array with several dimensions")


def outer(e: Emitter, place: str, a, b) -> Expression:
    x, y = arrays.as_expression(e, a), arrays.as_expression(e, b)
    if not (isinstance(x, Expression) and isinstance(y, Expression)) or (x.ndim, y.ndim) != (1, 1):
        raise Declined("np.outer of these arguments")
    column = replace(x, sizes=(*x.sizes, 1), element=lambda indices: x.element(indices[:1]))
    return arrays.elementwise(e, OnElements(e, lambda e, p, q: arithmetic.binary(e, "*", p, q)), column, y)


def cumsum(e: Emitter, place: str, x) -> ArrayView:
    x = arrays.as_expression(e, x)
    if not isinstance(x, Expression) or x.ndim != 1:
        raise Declined("np.cumsum of several dimensions")
    dtype = reductions.sum_dtype(x.dtype)
    out, total = arrays.temporary(e, dtype, x.sizes, place), f"total@{place}"
    e.set(total, arithmetic.register_type(dtype), constant(dtype.type(0)).v)
    for indices in e.loop(x.sizes):
        v = cast(e, x.element(indices), dtype).v
        v = arithmetic.numpy_operation(e, "+", dtype, e.get(total, arithmetic.register_type(dtype)), v)
        e.set(total, arithmetic.register_type(dtype), v)
        e.store(arrays.address(e, out, indices), dtype, v)
    return out


def _variance(root: bool):
    def run(e: Emitter, place: str, x) -> Scalar:
        whole = arrays.as_expression(e, x)
        if not isinstance(whole, Expression):
            raise Declined("the variance of a number")
        mean = reductions.reduce(e, "mean", x)
        apart = arrays.elementwise(e, OnElements(e, lambda e, p, q: arithmetic.binary(e, "-", p, q)), x, mean)
        square = arrays.elementwise(e, OnElements(e, lambda e, p: arithmetic.binary(e, "*", p, p)), apart)
        out = reductions.reduce(e, "mean", square)
        return arithmetic.MATH[np.sqrt](e, out) if root else out

    return run


FUNCTIONS = {
    np.concatenate: concatenate, np.hstack: hstack, np.vstack: vstack, np.stack: stack, np.roll: roll, np.tensordot: tensordot, np.outer: outer,
    np.cumsum: cumsum, np.std: _variance(True), np.var: _variance(False), np.nonzero: gathers.nonzero, np.count_nonzero: gathers.count_nonzero,
    np.arange: arange, np.transpose: transpose, np.ravel: ravel,
}  # fmt: skip
"""NumPy's function -> function(emitter, place in the code, *arguments)."""
