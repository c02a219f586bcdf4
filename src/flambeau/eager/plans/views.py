"""Plans of views: stored shapes and strides."""

from __future__ import annotations

from ... import _C
from ...core.operator import OpOverload
from ...core.viewmap import Strided
from .values import bytes_of


def views(op: OpOverload, values):
    x, rest = values[0], values[1:]
    item = x._array.itemsize
    v = op.definition.map(Strided(x._shape, x._strides, 0), *rest)
    many = not isinstance(v, Strided)
    results = tuple((None, w.shape, bytes_of(w.strides, x._array.dtype), w.offset * item) for w in (v if many else [v]))
    return _C.CallPlan(1, results, view=True, many=many, tracked=op.tracks_views)


def reinterpreted(op: OpOverload, x):
    """The same memory from its first element on, as elements of another dtype."""
    if x._array is None or not x._array.size:
        return None
    meta = op.facet("meta")(x)
    return _C.CallPlan(
        1, ((meta.dtype.np, meta.shape, bytes_of(meta.strides, meta.dtype.np), 0),), view=True, tracked=True
    )
