"""Arrays whose elements change places: rolled and flipped."""

from __future__ import annotations

from ...base.records import replace
from .. import arrays
from ..emitter import I64, Emitter, constant
from ..numbers.conversions import cast
from ..values import ArrayView, Declined, Expression, Known, Scalar, Size, Slice, Tuple
from .concatenation import known_axis

__all__ = ["flip", "flipped_axes", "flipped_axis", "roll"]


def roll(e: Emitter, place: str, x, shift, axis=None) -> ArrayView:
    x = arrays.as_expression(e, x)
    if not isinstance(x, Expression) or not isinstance(shift, Scalar) or shift.kind not in "iu":
        raise Declined("np.roll of these values")
    if axis is None or (isinstance(axis, Known) and axis.value is None):
        if x.ndim != 1:
            raise Declined("np.roll of all dimensions")
        axis = 0
    axis = known_axis(axis, x.ndim)
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


def flip(axes_of):
    """A view that runs the other way along some dimensions: ``axes_of(number of dimensions, axis)``."""

    def run(e: Emitter, place: str, x, axis=None) -> ArrayView:
        if not isinstance(x, ArrayView):
            raise Declined("np.flip of an expression")
        axes = axes_of(x.ndim, axis)
        whole, down = (Slice(Known(None), Known(None), Known(None) if n is None else constant(n)) for n in (None, -1))
        return arrays.subscript(e, x, Tuple(tuple(down if d in axes else whole for d in range(x.ndim))))

    return run


def flipped_axes(ndim: int, axis) -> tuple[int, ...]:
    if axis is None or (isinstance(axis, Known) and axis.value is None):
        return tuple(range(ndim))
    return tuple(known_axis(a, ndim) for a in (axis.items if isinstance(axis, Tuple) else (axis,)))


def flipped_axis(d: int):
    def axes(ndim: int, axis) -> tuple[int, ...]:
        if axis is not None or ndim <= d:
            raise Declined("np.fliplr or np.flipud of these arguments")
        return (d,)

    return axes
