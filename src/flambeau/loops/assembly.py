"""Arrays put together from arrays: concatenation, rolling, products over one dimension, ranges."""

from __future__ import annotations

import functools

import numpy as np

from ..base.records import replace
from ..inductor.assembly.instructions import Operand, integer
from . import arithmetic, arrays, conversions, gathers, mathematics, places, reductions, shapes
from .arrays import OnElements
from .conversions import cast
from .emitter import BOOL, F64, I64, Emitter, constant
from .values import ArrayView, Declined, Expression, Known, Scalar, Size, Slice, Tuple, memory_type, register_type

__all__ = ["FUNCTIONS"]


def _parts(e: Emitter, place: str, x) -> list[Expression]:
    """What is put together; lists of numbers are arrays."""
    items = x.items if isinstance(x, Tuple) else ()
    made = [array(e, f"{place}.{k}", p) if isinstance(p, Tuple) else p for k, p in enumerate(items)]
    given = [arrays.as_expression(e, p) for p in made]
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
    parts = _parts(e, place, parts)
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
        return replace(view, ptr=e.at(view.ptr, e.mul(start, view.strides[axis])), sizes=sizes, rows=False)

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


def arange(e: Emitter, place: str, *ends) -> Expression:
    if not 1 <= len(ends) <= 3 or any(not isinstance(n, Scalar) or n.dtype != I64 or n.weak is None for n in ends):
        raise Declined("np.arange of these numbers")
    start, stop = (constant(0), *ends) if len(ends) == 1 else ends[:2]
    step = ends[2].const if len(ends) == 3 else 1
    if type(step) is not int or step < 1:
        raise Declined("np.arange with a step that isn't known, or goes down")
    span = e.larger(e.sub(stop.v, start.v), 0)
    size = span if step == 1 else e.op("sdiv", e.add(span, step - 1), step)
    first = start.v

    def element(indices) -> Scalar:
        return Scalar(I64, False, integer(e.add(first, e.mul(indices[0], step))))

    return Expression(I64, (size,), element)


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


def outer(e: Emitter, place: str, a, b) -> Expression:
    x, y = arrays.as_expression(e, a), arrays.as_expression(e, b)
    if (getattr(x, "ndim", 0), getattr(y, "ndim", 0)) != (1, 1):
        raise Declined("np.outer of these arguments")
    function = OnElements(e, lambda e, p, q: arithmetic.binary(e, "*", p, q))
    return outer_of(e, lambda p, q: arrays.elementwise(e, function, p, q), x, y)


def outer_of(e: Emitter, function, a, b) -> Expression | Scalar:
    """``ufunc.outer(a, b)``: ``function`` of all pairs of elements, the dimensions of ``a`` first."""
    x, y = arrays.as_expression(e, a), arrays.as_expression(e, b)
    if not isinstance(x, Expression) or not isinstance(y, Expression):
        return function(x, y)
    n = x.ndim
    column = replace(x, sizes=(*x.sizes, *(1 for _ in y.sizes)), element=lambda indices: x.element(indices[:n]))
    return function(column, y)


def flip(axes_of):
    """A view that runs the other way along some dimensions: ``axes_of(number of dimensions, axis)``."""

    def run(e: Emitter, place: str, x, axis=None) -> ArrayView:
        if not isinstance(x, ArrayView):
            raise Declined("np.flip of an expression")
        axes = axes_of(x.ndim, axis)
        whole, down = (Slice(Known(None), Known(None), Known(None) if n is None else constant(n)) for n in (None, -1))
        return arrays.subscript(e, x, Tuple(tuple(down if d in axes else whole for d in range(x.ndim))))

    return run


def _flipped_axes(ndim: int, axis) -> tuple[int, ...]:
    if axis is None or (isinstance(axis, Known) and axis.value is None):
        return tuple(range(ndim))
    return tuple(_axis(a, ndim) for a in (axis.items if isinstance(axis, Tuple) else (axis,)))


def _flipped_axis(d: int):
    def axes(ndim: int, axis) -> tuple[int, ...]:
        if axis is not None or ndim <= d:
            raise Declined("np.fliplr or np.flipud of these arguments")
        return (d,)

    return axes


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


def _variance(root: bool):
    """``root``: of it, the standard deviation."""

    def run(e: Emitter, place: str, x, axis=WHOLE):
        whole = arrays.as_expression(e, x)
        if not isinstance(whole, Expression) or whole.dtype.kind == "c":
            raise Declined("the variance of a number, or of complex ones")
        axes = None if axis == WHOLE or whole.ndim == 1 == 1 + _axis(axis, 1) else (_axis(axis, whole.ndim),)
        mean = reductions.reduce(e, "mean", x, axes, axes is not None, f"{place}.mean")
        if isinstance(mean, Expression):  # each is used along a line
            mean = arrays.materialise(e, mean, f"{place}.mean")
            e.drop(mean.ptr)
        apart = arrays.elementwise(e, OnElements(e, lambda e, p, q: arithmetic.binary(e, "-", p, q)), x, mean)
        square = arrays.elementwise(e, OnElements(e, lambda e, p: arithmetic.binary(e, "*", p, p)), apart)
        out = reductions.reduce(e, "mean", square, axes, False, place)
        return arrays.elementwise(e, OnElements(e, mathematics.MATH[np.sqrt]), out) if root else out

    return run


def eye(e: Emitter, place: str, n, m=None, *, dtype=None) -> Expression:
    of = np.dtype(np.float64 if dtype is None else dtype.value if isinstance(dtype, Known) else "O")
    memory_type(of)
    rows = arrays.given_sizes(e, n)
    columns = rows if m is None else arrays.given_sizes(e, m)
    one, zero = (constant(of.type(k)).v for k in (1, 0))
    return Expression(
        of, (*rows, *columns), lambda ix: Scalar(of, False, e.select(e.cmp("eq", ix[0], ix[1]), one, zero))
    )


def full(e: Emitter, place: str, shape, value, dtype=None) -> Expression:
    """np.full and np.full_like, the first argument of which may be an array."""
    if not isinstance(value, Scalar) or not (dtype is None or isinstance(dtype, Known)):
        raise Declined("np.full of these arguments")
    like = isinstance(shape, ArrayView)
    of = np.dtype(dtype.value) if dtype is not None else shape.dtype if like else np.result_type(value.dtype)
    if value.weak is None:
        raise Declined("np.full of a number of which it isn't known whether it is Python's")
    number = Scalar(of, False, conversions.stored(e, value, of))
    return arrays.filled(number, shape.sizes if like else arrays.given_sizes(e, shape))


def norm(e: Emitter, place: str, x) -> Scalar:
    """np.linalg.norm(x): by the sum of the squares."""
    x = arrays.as_expression(e, x)
    if not isinstance(x, Expression) or x.dtype.kind != "f":
        raise Declined("the norm of these values")
    squares = arrays.elementwise(e, OnElements(e, lambda e, p: arithmetic.binary(e, "*", p, p)), x)
    return mathematics.MATH[np.sqrt](e, reductions.reduce(e, "sum", squares))


def cross(e: Emitter, place: str, a, b):
    """Of two vectors of three."""
    given = [arrays.as_expression(e, x) for x in (a, b)]
    if not all(isinstance(x, Expression) and x.ndim == 1 and x.dtype.kind in "if" for x in given):
        raise Declined("np.cross of other things than two vectors")
    for x in given:
        if x.sizes[0] != 3:
            e.check(
                e.cmp("eq", x.sizes[0], 3),
                "ValueError",
                f"np.cross of vectors of another size than 3{conversions.INSTEAD}",
            )
    (a0, a1, a2), (b0, b1, b2) = [[x.element((integer(k),)) for k in range(3)] for x in given]

    def apart(p, q, r, s):
        return arithmetic.binary(e, "-", arithmetic.binary(e, "*", p, q), arithmetic.binary(e, "*", r, s))

    return array(e, place, Tuple((apart(a1, b2, a2, b1), apart(a2, b0, a0, b2), apart(a0, b1, a1, b0))))


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
    e.check(e.cmp("sgt", p.sizes[0], 0), "ValueError", f"np.polyval without coefficients{conversions.INSTEAD}")
    x, t, slot = cast(e, x, dtype, False), register_type(dtype), f"polynomial@{place}"
    e.set(slot, t, cast(e, constant(0), dtype, False).v)
    for indices in e.loop(p.sizes):
        made = arithmetic.binary(e, "*", Scalar(dtype, False, e.get(slot, t)), x)
        made = arithmetic.binary(e, "+", made, cast(e, p.element(indices), dtype, False))
        e.set(slot, t, made.v)
    return Scalar(dtype, False, e.get(slot, t))


FUNCTIONS = {
    np.eye: eye, np.identity: lambda e, place, n, dtype=None: eye(e, place, n, dtype=dtype), np.full: full, np.full_like: full,
    np.linalg.norm: norm, np.allclose: allclose, np.isclose: isclose, np.cross: cross, np.polyval: polyval,
    np.concatenate: concatenate, np.hstack: hstack, np.vstack: vstack, np.stack: stack, np.roll: roll, np.tensordot: tensordot, np.outer: outer,
    np.diff: diff, np.unravel_index: places.unravel_index, np.ravel_multi_index: places.ravel_multi_index,
    np.cumsum: cumsum, np.std: _variance(True), np.var: _variance(False), np.nonzero: gathers.nonzero, np.count_nonzero: gathers.count_nonzero,
    np.flip: flip(_flipped_axes), np.flipud: flip(_flipped_axis(0)), np.fliplr: flip(_flipped_axis(1)),
    np.array: array, np.asarray: asarray, np.arange: arange, np.transpose: shapes.transpose, np.ravel: shapes.ravel,
    np.reshape: shapes.reshape, np.ndarray.flatten: shapes.flatten,
}  # fmt: skip
"""NumPy's function -> function(emitter, place in the code, *arguments)."""
