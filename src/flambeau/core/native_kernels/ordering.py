"""Scans, sorting, selection and searching."""

from __future__ import annotations

import math

from ...base import dtypes, kernels
from ...base.expr import at_least
from ...base.kernels import ORDERED, Order, element
from ...base.order import LONGEST
from ...base.result_spec import ResultSpec
from ...base.select import SEARCHED, common_dtype
from ...base.shapes import normalize_dim
from ...base.sizes import dense_strides, size, sizes

__all__ = ["arrange", "extreme", "logcumsumexp", "mode", "running", "scan", "search"]

_SCANNED = ("float32", "float64", "int64")


def scan(h, val, x, dim, product: bool):
    """Running sums or products along a dimension, see csrc/kernels/scan.c."""
    kind = dtypes.float32 if val.dtype in (dtypes.float16, dtypes.bfloat16) else val.dtype
    if not x.ndim:
        normalize_dim(dim, 0)
        return h.copied(h.as_dtype(x, val.dtype))
    if kind.name not in _SCANNED:
        raise NotImplementedError(f"there is no scan for {x.ndim} dimensions of {val.dtype}")
    # From its own dtype to the result's first, as eager does: an integer may not fit into the other's.
    x = h.as_dtype(h.as_dtype(x, val.dtype), kind)
    part = h.contiguous(x)
    out = ResultSpec(part.shape, dense_strides(part.shape), kind, val.device)
    numbers = {"dim": normalize_dim(dim, len(part.shape)), "product": product, "element": element(kind)}
    return h.as_dtype(h.launch(kernels.scan, [part], [out], math.prod(part.shape), **numbers)[0], val.dtype)


def running(h, vals, x, dim, least: bool):
    """[values, places] of cummax or cummin."""
    kind = element(x.dtype, ORDERED)
    if kind is None or not x.ndim:
        raise NotImplementedError(f"there are no running extremes of {x.ndim} dimensions of {x.dtype}")
    part = h.contiguous(x)
    strides = dense_strides(part.shape)
    outs = [ResultSpec(part.shape, strides, v.dtype, v.device) for v in vals]
    numbers = {"dim": normalize_dim(dim, x.ndim), "least": least, "element": kind}
    return h.launch(kernels.running, [part], outs, 4 * math.prod(part.shape), **numbers)


def logcumsumexp(h, val, x, dim):
    wide = dtypes.float32 if x.dtype in (dtypes.float16, dtypes.bfloat16) else x.dtype
    if wide not in (dtypes.float32, dtypes.float64) or not x.ndim:
        raise NotImplementedError(f"there is no running logarithm of {x.ndim} dimensions of {x.dtype}")
    part = h.contiguous(h.as_dtype(x, wide))
    out = ResultSpec(part.shape, dense_strides(part.shape), wide, val.device)
    numbers = {"dim": normalize_dim(dim, x.ndim), "f64": wide is dtypes.float64}
    made = h.launch(kernels.logcumsumexp, [part], [out], 60 * math.prod(part.shape), **numbers)[0]
    return h.as_dtype(made, val.dtype)


def arrange(h, val, what: Order, x, dim, descending=False, k=0, sorted=True, keepdim=True):
    """[values, places] as :func:`flambeau.base.order.arrange` gives them; ``val``: the results without data (of a median of all elements, one)."""
    kind = element(x.dtype, ORDERED)
    if kind is None:
        raise NotImplementedError(f"there is no sorting of {x.dtype}")
    if not x.ndim:
        normalize_dim(dim, 0)
        device = x.device
        return [h.in_memory(h.contiguous(x), x.dtype, (), device), h.full((), dtypes.int64, 0, device)]
    part = h.realize(x)
    shape = part.shape
    if not isinstance(val, (tuple, list)):  # of all elements
        shape = (math.prod(shape),)
        part, dim, keepdim = h.part(h.contiguous(x), shape, (1,)), 0, False
    dim = normalize_dim(dim, len(shape))
    if type(shape[dim]) is int and shape[dim] > LONGEST:
        raise NotImplementedError("lines of more than 2 ** 31 elements")
    count = {Order.WHOLE: shape[dim], Order.FIRST: size(k)}.get(what, 1)
    if what != Order.WHOLE and not at_least(count, 1):
        raise NotImplementedError("no element is wanted")
    out = (*shape[:dim], count, *shape[dim + 1 :])
    ruled = val[0] if what == Order.WHOLE and isinstance(val, (tuple, list)) else None  # of a result by its shape rule
    strides = dense_strides(out) if ruled is None else sizes(ruled.stride())
    outs = [ResultSpec(out, strides, t, x.device) for t in (x.dtype, dtypes.int64)]
    numbers = {"part": what, "k": k, "descending": bool(descending), "sorted": bool(sorted), "element": kind}
    made = h.launch(kernels.order, [part], outs, 20 * math.prod(shape), dim=dim, **numbers)
    if not keepdim:
        made = [_without(h, m, dim) for m in made]
    return made if isinstance(val, (tuple, list)) else made[0]


def extreme(h, x, dim, least: bool):
    """The places (without the dimension, int64) of the greatest or least elements along ``dim``; None: of all elements."""
    kind = element(x.dtype, ORDERED)
    if kind is None or not x.ndim:
        raise NotImplementedError(f"there is no extreme of {x.ndim} dimensions of {x.dtype}")
    if dim is None:
        part, dim = h.part(h.contiguous(x), (math.prod(x.sizes),), (1,)), 0
    else:
        part, dim = h.realize(x), normalize_dim(dim, x.ndim)
    shape = (*part.shape[:dim], *part.shape[dim + 1 :])
    out = ResultSpec(shape, dense_strides(shape), dtypes.int64, x.device)
    numbers = {"dim": dim, "least": least, "element": kind}
    return h.launch(kernels.extreme, [part], [out], math.prod(part.shape), **numbers)[0]


def mode(h, vals, x, dim, keepdim: bool):
    """[values, places] of the most frequent elements along ``dim``."""
    kind = element(x.dtype, ORDERED)
    if kind is None or not x.ndim or not at_least(math.prod(x.sizes), 1):
        raise NotImplementedError(f"there is no order of {x.ndim} dimensions of {x.dtype}, or nothing")
    d, part = normalize_dim(dim, x.ndim), h.realize(x)
    last = lambda t: (*t[:d], *t[d + 1 :], t[d])  # noqa: E731
    lines = h.part(part, last(part.shape), last(part.strides))
    lines = h.in_memory(lines, x.dtype, lines.strides, x.device)
    *rest, n = lines.sizes
    count = math.prod(rest)
    parts = [h.part(h.realize(t), (count, n), (n, 1)) for t in arrange(h, (None, None), Order.WHOLE, lines, len(rest))]
    outs = [ResultSpec((count,), (1,), t, x.device) for t in (dtypes.int64, x.dtype)]
    places, values = h.launch(kernels.mode, parts, outs, 4 * count * n, element=kind)
    shape = sizes(vals[0].shape)
    made = [h.part(h.realize(t), shape, dense_strides(shape)) for t in (values, places)]
    return [h.in_memory(t, v.dtype, t.strides, x.device) for t, v in zip(made, vals)]


def _without(h, made, dim):
    """A tensor in memory without a dimension of size 1."""
    drop = lambda part: (*part[:dim], *part[dim + 1 :])  # noqa: E731
    part = h.realize(made)
    part = h.part(part, drop(part.shape), drop(part.strides))
    return h.in_memory(part, made.dtype, part.strides, made.device)


def search(h, val, sequence, values, right: bool):
    """searchsorted; ``val``: int64 or int32."""
    if not sequence.ndim:
        raise NotImplementedError("a sequence without a dimension")
    common = common_dtype(sequence, values)
    parts = [h.contiguous(h.as_dtype(t, common)) for t in (sequence, values)]
    out = ResultSpec(parts[1].shape, dense_strides(parts[1].shape), val.dtype, val.device)
    numbers = {"right": bool(right), "narrow": val.dtype is dtypes.int32, "element": element(common, SEARCHED)}
    return h.launch(kernels.search, parts, [out], 30 * math.prod(parts[1].shape), **numbers)[0]
