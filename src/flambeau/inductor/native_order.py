"""Sorting in a graph: launches of csrc/order.c."""

from __future__ import annotations

import math

from ..base import dtypes
from ..base.expr import at_least
from ..base.order import FIRST, KINDS, LONGEST, WHOLE
from ..core.layouts import dense_like
from .ir import Region, dense_strides
from .native import launch
from .sizes import size

__all__ = ["arrange"]


def arrange(lowering, val, what, x, dim, descending=False, k=0, sorted=True, keepdim=True):
    """[values, places] as :func:`flambeau.base.order.arrange` gives them; ``val``: the results without data (of a median of all elements, one)."""
    kind = KINDS.get(x.dtype.name)
    if kind is None:
        raise NotImplementedError(f"there is no sorting of {x.dtype}")
    if not x.ndim:
        place = lowering.lazy((), dtypes.int64, lambda c: lowering.values.const(0, "i64"), device=x.device)
        return [lowering.lazy((), x.dtype, x.at, device=x.device), place]
    region = lowering.realize(x)
    shape = region.shape
    if not isinstance(val, (tuple, list)):  # of all elements
        region = lowering.contiguous(x)
        shape = (math.prod(shape),)
        region, dim, keepdim = Region(region.buffer, shape, (1,), region.offset), 0, False
    dim %= len(shape)
    if type(shape[dim]) is int and shape[dim] > LONGEST:
        raise NotImplementedError("lines of more than 2 ** 31 elements")
    count = {WHOLE: shape[dim], FIRST: size(k)}.get(what, 1)
    if not at_least(count, 1):
        raise NotImplementedError("no element is wanted")
    out = (*shape[:dim], count, *shape[dim + 1 :])
    strides = dense_strides(out)
    if what == WHOLE:
        strides = dense_like(out, x.strides or region.strides)
    outs = [(out, strides, t, x.device) for t in (x.dtype, dtypes.int64)]
    numbers = [dim, what, kind, bool(descending), k, bool(sorted)]
    made = launch(lowering, "order", [region], outs, numbers, 20 * math.prod(shape))
    if keepdim:
        return made
    less = []
    for m in made:
        r = m.region
        drop = lambda part: (*part[:dim], *part[dim + 1 :])  # noqa: E731
        region = Region(r.buffer, drop(r.shape), drop(r.strides), r.offset)
        less.append(lowering.in_memory(region, m.dtype, region.strides, m.device))
    return less if isinstance(val, (tuple, list)) else less[0]
