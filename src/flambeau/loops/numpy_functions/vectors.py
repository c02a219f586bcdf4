"""Functions of vectors and samples: running sums, differences, variances, norms, polynomials, closeness."""

from __future__ import annotations

import numpy as np

from ...base.records import replace
from .. import arrays, reductions
from ..arrays import OnElements
from ..emitter import BOOL, F64, I64, Emitter, constant
from ..faults import Limit
from ..numbers import arithmetic, mathematics
from ..numbers.conversions import cast
from ..values import ArrayView, Declined, Expression, Known, Scalar, Tuple, register_type
from .concatenation import array, known_axis

__all__ = ["WHOLE", "allclose", "cumsum", "diff", "isclose", "norm", "polyval", "variance"]


def cumsum(e: Emitter, place: str, x) -> ArrayView:
    x = arrays.as_expression(e, x)
    if not isinstance(x, Expression) or x.ndim != 1:
        raise Declined("np.cumsum of several dimensions")
    dtype = reductions.sum_dtype(x.dtype)
    out, total = arrays.temporary(e, dtype, x.sizes, place), f"total@{place}"
    e.set(total, register_type(dtype), constant(dtype.type(0)).v)
    for indices in e.loop(x.sizes):
        v = cast(e, x.element(indices), dtype).v
        v = arithmetic.numpy_operation(e, "+", dtype, e.get(total, register_type(dtype)), v)
        e.set(total, register_type(dtype), v)
        e.store(arrays.address(e, out, indices), dtype, v)
    return out


def diff(e: Emitter, place: str, x, n=None, axis=None) -> Expression:
    """Of one step along the last dimension."""
    x = arrays.as_expression(e, x)
    if not isinstance(x, Expression) or x.dtype.kind == "b":
        raise Declined("np.diff of a number or of bools")
    if (n is not None and n.const != 1) or (axis is not None and axis.const not in (-1, x.ndim - 1)):
        raise Declined("np.diff of several steps, or along another dimension than the last")

    def element(indices):
        *before, last = indices
        return arithmetic.binary(e, "-", x.element((*before, e.add(last, 1))), x.element(indices))

    sizes = (*x.sizes[:-1], e.larger(e.sub(x.sizes[-1], 1), 0))
    return Expression(x.dtype, sizes, element, x.reads)


WHOLE = Known(None)  # the axis of all dimensions


def variance(root: bool):
    """``root``: of it, the standard deviation."""

    def run(e: Emitter, place: str, x, axis=WHOLE):
        whole = arrays.as_expression(e, x)
        if not isinstance(whole, Expression) or whole.dtype.kind == "c":
            raise Declined("the variance of a number, or of complex ones")
        axes = None if axis == WHOLE or whole.ndim == 1 == 1 + known_axis(axis, 1) else (known_axis(axis, whole.ndim),)
        mean = reductions.reduce(e, "mean", x, axes, axes is not None, f"{place}.mean")
        if isinstance(mean, Expression):  # each is used along a line
            mean = arrays.materialise(e, mean, f"{place}.mean")
            e.drop(mean.ptr)
        apart = arrays.elementwise(e, OnElements(e, lambda e, p, q: arithmetic.binary(e, "-", p, q)), x, mean)
        square = arrays.elementwise(e, OnElements(e, lambda e, p: arithmetic.binary(e, "*", p, p)), apart)
        out = reductions.reduce(e, "mean", square, axes, False, place)
        return arrays.elementwise(e, OnElements(e, mathematics.MATH[np.sqrt]), out) if root else out

    return run


def norm(e: Emitter, place: str, x) -> Scalar:
    """np.linalg.norm(x): by the sum of the squares."""
    x = arrays.as_expression(e, x)
    if not isinstance(x, Expression) or x.dtype.kind != "f":
        raise Declined("the norm of these values")
    squares = arrays.elementwise(e, OnElements(e, lambda e, p: arithmetic.binary(e, "*", p, p)), x)
    return mathematics.MATH[np.sqrt](e, reductions.reduce(e, "sum", squares))


def allclose(e: Emitter, place: str, a, b, rtol=None, atol=None) -> Scalar:
    out = isclose(e, place, a, b, rtol, atol)
    if isinstance(out, Expression):
        out = reductions.reduce(e, "all", out)
    return replace(out, weak=True)


def isclose(e: Emitter, place: str, a, b, rtol=None, atol=None):
    rtol, atol = constant(1e-5) if rtol is None else rtol, constant(1e-8) if atol is None else atol
    if not all(isinstance(t, Scalar) and t.kind in "if" for t in (rtol, atol)):
        raise Declined("np.allclose with such tolerances")

    def close(e: Emitter, x: Scalar, y: Scalar) -> Scalar:
        x, y = (cast(e, Scalar(v.dtype, False, v.v), F64) for v in (x, y))
        apart = arithmetic.absolute(e, arithmetic.binary(e, "-", x, y))
        within = arithmetic.binary(e, "+", atol, arithmetic.binary(e, "*", rtol, arithmetic.absolute(e, y)))
        near = e.op("and", e.cmp("ole", apart.v, cast(e, within, F64).v), mathematics.MATH[np.isfinite](e, y).v)
        return Scalar(BOOL, False, e.op("or", near, e.cmp("oeq", x.v, y.v)))

    given = [arrays.as_expression(e, x) for x in (a, b)]
    if any(x.dtype not in (np.float64, np.int64, np.int32) for x in given):
        raise Declined("np.allclose of such numbers")
    return arrays.elementwise(e, OnElements(e, close), *given)


def polyval(e: Emitter, place: str, p, x) -> Scalar:
    """Of a number, by Horner's rule."""
    p = array(e, place, p) if isinstance(p, Tuple) else arrays.as_expression(e, p)
    if (
        not isinstance(p, Expression | ArrayView)
        or p.ndim != 1
        or not isinstance(x, Scalar)
        or "b" in (p.dtype.kind, x.kind)
    ):
        raise Declined("np.polyval of these values")
    p = arrays.as_expression(e, p)
    dtype = np.promote_types(p.dtype, x.dtype)
    if dtype not in (I64, F64, np.complex128):
        raise Declined("np.polyval of such numbers")
    e.check(e.cmp("sgt", p.sizes[0], 0), "ValueError", Limit("np.polyval without coefficients"))
    x, t, slot = cast(e, x, dtype, False), register_type(dtype), f"polynomial@{place}"
    e.set(slot, t, cast(e, constant(0), dtype, False).v)
    for indices in e.loop(p.sizes):
        made = arithmetic.binary(e, "*", Scalar(dtype, False, e.get(slot, t)), x)
        made = arithmetic.binary(e, "+", made, cast(e, p.element(indices), dtype, False))
        e.set(slot, t, made.v)
    return Scalar(dtype, False, e.get(slot, t))
