"""Results put together from boxes, each stored at its place in one buffer: concatenation and padding."""

from __future__ import annotations

from ...base.expr import linear, variable
from ...base.shapes import normalize_dim
from ..ir.nodes import Region, dense_strides
from ..ir.sizes import sizes
from ..ir.values import short

__all__ = ["concatenate", "pad"]


def _store(lowering, buffer, origin, extents, value_at) -> None:
    """``value_at(coordinates from the box's corner)`` for every element of a box of the buffer."""
    if 0 in extents:
        return
    loops = lowering.variables(extents)
    coords = tuple(variable(v) for v in loops)
    where = linear(coords, buffer.strides, linear(origin, buffer.strides))
    lowering.store(buffer, loops, value_at(coords), where, "part")


def concatenate(lowering, parts, dim, val):
    """Tensors side by side."""
    shape, t = sizes(val.shape), short(val.dtype)
    dim = normalize_dim(dim, len(shape))
    buffer = lowering.new_buffer(shape, dense_strides(shape), t)
    at = 0
    for x in parts:
        origin = [at if d == dim else 0 for d in range(len(shape))]
        _store(lowering, buffer, origin, x.sizes, lambda coords, x=x: lowering.values.cast(x.at(coords), t))
        at = at + x.sizes[dim]
    return lowering.in_memory(Region(buffer.name, shape, buffer.strides), val.dtype, buffer.strides, val.device)


def pad(lowering, x, before, after, value, val):
    """``x`` between ``before`` and ``after`` elements of a number in each dimension; less than none cuts off."""
    shape, t = sizes(val.shape), short(val.dtype)
    n = len(shape)
    buffer = lowering.new_buffer(shape, dense_strides(shape), t)
    origin, cut = ([max(b, 0) for b in before], [max(-b, 0) for b in before])
    inner = [size + min(b, 0) + min(a, 0) for size, b, a in zip(x.sizes, before, after)]
    moved = lambda coords: x.at(tuple(c + k for c, k in zip(coords, cut)))  # noqa: E731
    _store(lowering, buffer, origin, inner, lambda coords: lowering.values.cast(moved(coords), t))
    number = lowering.values.element(value, t)
    for d in range(n):  # what lies beside the inner box in this dimension, and in none before
        for start, extent in ((0, origin[d]), (origin[d] + inner[d], max(after[d], 0))):
            corner = [*origin[:d], start, *[0] * (n - d - 1)]
            _store(lowering, buffer, corner, [*inner[:d], extent, *shape[d + 1 :]], lambda coords: number)
    return lowering.in_memory(Region(buffer.name, shape, buffer.strides), val.dtype, buffer.strides, val.device)
