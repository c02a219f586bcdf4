"""New arrays, in buffers of the loop's own."""

from __future__ import annotations

import numpy as np

from ..emitter import Emitter
from ..numbers import conversions
from ..values import ArrayView, Declined, Expression, Scalar, Tuple
from .stores import fill
from .views import count, dense_strides

__all__ = ["given_sizes", "materialise", "temporary"]


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
