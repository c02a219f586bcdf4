"""New arrays of ranges, identities and constants."""

from __future__ import annotations

import numpy as np

from ...inductor.assembly.instructions import integer
from .. import arrays
from ..emitter import I64, Emitter, constant
from ..numbers import conversions
from ..values import ArrayView, Declined, Expression, Known, Scalar, memory_type

__all__ = ["arange", "eye", "full"]


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
