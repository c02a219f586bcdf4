"""Arrays in other shapes: ``reshape``, ``ravel``, ``flatten``, and transposes."""

from __future__ import annotations

from ..base.records import replace
from . import arrays
from .emitter import Emitter, constant
from .faults import Limit
from .values import ArrayView, Declined, Expression, Scalar, Size, Tuple

__all__ = ["flatten", "ravel", "reshape", "transpose"]


def reshape(e: Emitter, place: str, x, *shape) -> ArrayView:
    """``x.reshape(*shape)``, a view: of an array whose elements don't lie one behind another, the kernel ends."""
    view = _together(e, place, x)
    given = shape[0].items if len(shape) == 1 and isinstance(shape[0], Tuple) else shape
    open_ = [d for d, n in enumerate(given) if isinstance(n, Scalar) and n.const == -1]
    if len(open_) > 1 or not given:
        raise Declined("reshape with these sizes")
    sizes = arrays.given_sizes(e, Tuple(tuple(constant(1) if d in open_ else n for d, n in enumerate(given))))
    total, made = arrays.count(e, view.sizes), arrays.count(e, sizes)
    text = "cannot reshape array of size {0} into this shape"
    if open_:
        e.check(e.cmp("ne", made, 0), "ValueError", text, total)
        rest = total // made if type(total) is type(made) is int else e.op("udiv", total, made)
        sizes[open_[0]] = rest
        made = e.mul(made, rest)
    if made != total:
        e.check(e.cmp("eq", made, total), "ValueError", text, total)
    return replace(
        view, sizes=tuple(sizes), strides=arrays.dense_strides(e, sizes, view.dtype.itemsize), whole=None, rows=False
    )


def ravel(e: Emitter, place: str, x) -> ArrayView:
    view = _together(e, place, x)
    return replace(view, sizes=(arrays.count(e, view.sizes),), strides=(view.dtype.itemsize,), whole=None, rows=False)


def flatten(e: Emitter, place: str, x) -> ArrayView:
    """A copy, whatever the order of the elements in memory."""
    x = arrays.as_expression(e, x)
    if not isinstance(x, Expression):
        raise Declined("flatten() of a number")
    return ravel(e, place, _made(e, place, x))


def transpose(e: Emitter, place: str, x) -> ArrayView:
    if not isinstance(x, ArrayView):
        raise Declined("the transpose of an expression")
    return replace(x, sizes=x.sizes[::-1], strides=x.strides[::-1], whole=None, rows=False)


def _made(e: Emitter, place: str, x: Expression) -> ArrayView:
    out = arrays.temporary(e, x.dtype, x.sizes, place)
    arrays.fill(e, out, x)
    return out


def _together(e: Emitter, place: str, x) -> ArrayView:
    """The array, whose elements lie one behind another."""
    if isinstance(x, Expression):
        return _made(e, place, x)
    if not isinstance(x, ArrayView) or not x.ndim:
        raise Declined("another shape of a number")
    if x.ndim == 1 and x.strides == (x.dtype.itemsize,):
        return x
    step: Size = x.dtype.itemsize
    for n, s in reversed(list(zip(x.sizes, x.strides))):
        if s != step:
            # Where there is one element it doesn't matter how far the next one would be.
            fits = e.op("or", e.cmp("eq", s, step), e.cmp("ule", n, 1))
            e.check(fits, "RuntimeError", Limit("reshape of elements in another order"))
        step = e.mul(step, n)
    return x
