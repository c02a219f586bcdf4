"""Membership, histograms and writes under masks in a graph: launches of csrc/kernels/select.c and what is made of them."""

from __future__ import annotations

import math

from ....base import dtypes, kernels
from ....base.device import CPU, Device
from ....base.expr import at_least, linear, of, variable
from ....base.kernels import Order
from ....base.result_spec import ResultSpec
from ....base.select import common_dtype
from ....base.shapes import normalize_dim
from ....core.messages import About
from ...assembly.dtypes import compute_type
from ...ir.nodes import Pointwise, Region, dense_strides
from ...ir.sizes import size, sizes
from ...ir.values import short
from ..eager_call import call_schema
from ..interface import constant
from ..lazy import broadcast_coords
from .launch import as_dtype, launch

__all__ = [
    "contained",
    "histogram",
    "known",
    "reduce_into",
    "scattered",
    "write_under_mask",
]

MOST_KNOWN = 1 << 16  # elements of a result that is computed when the graph is compiled


def contained(lowering, val, elements, among, invert: bool):
    """isin: whether each of ``elements`` is one of ``among``, by its place in them sorted."""
    kind = dtypes.result_type(elements, among)
    elements, among = (as_dtype(lowering, x, kind) for x in (elements, among))
    common = common_dtype(elements, among)
    n = math.prod(among.sizes)
    if (
        not at_least(n, 1)
        or not at_least(math.prod(elements.sizes), 1)
        or common is dtypes.float64 is not elements.dtype
    ):
        raise NotImplementedError("nothing to look for, or numbers that have to be compared as others")
    region = lowering.contiguous(as_dtype(lowering, among, common))
    line = lowering.in_memory(Region(region.buffer, (n,), (1,), region.offset), common, (1,), among.device)
    ordered = lowering.arrange((None, None), Order.WHOLE, line, 0)[0]
    place = lowering.lazy(elements.sizes, dtypes.int64, elements.at, device=val.device)
    place = lowering.search(_Meta(dtypes.int64, val.device), ordered, as_dtype(lowering, elements, common), False)
    values, t = lowering.values, short(common)

    def at(coords):
        at = values.make("minimum", (place.at(coords), values.index(n - 1)), "i64")
        tag = lowering.message("aten::isin")
        found = ordered.at((of(values.make("checked", (at, n, tag, False), "i64")),))
        x = values.cast(elements.at(coords), t)
        return values.make("ne" if invert else "eq", (found, x), "bool")

    return lowering.lazy(elements.sizes, dtypes.bool_, at, device=val.device)


class _Meta:
    def __init__(self, dtype, device):
        self.dtype, self.device = dtype, device


def histogram(lowering, val, x, bins, low, high):
    """histc."""
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise NotImplementedError(f"there is no histogram of {x.dtype}")
    if any(hasattr(n, "__sym__") for n in (bins, low, high)) or low > high or not math.isfinite(high - low):
        raise NotImplementedError("the range is refused, or known at the call only")
    tag = lowering.message("torch.histc: the range of the input is not finite", About.CONDITION)
    numbers = {"f64": x.dtype is dtypes.float64, "low": low, "high": high, "not_finite": tag}
    out, flops = ResultSpec((size(bins),), (1,), x.dtype, val.device), 4 * math.prod(x.sizes)
    return launch(lowering, kernels.histogram, [lowering.contiguous(x)], [out], flops, effect=True, **numbers)[0]


# ---- writes by index that combine, writes under a mask ------------------------------------------------------------------------

_COMBINE = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}


def reduce_into(lowering, val, x, dim, index, src, reduce, identity):
    """scatter_reduce: ``src`` combined into ``x`` at ``index`` along ``dim``. ``identity``: what takes the place of the elements of ``x`` that are
    written, None: they take part. 16-bit numbers are combined in float32 and rounded once."""
    if not x.ndim or x.dtype.is_complex or x.dtype is dtypes.bool_:
        raise NotImplementedError(f"there is no scatter of {x.ndim} dimensions of {x.dtype}")
    dim = normalize_dim(dim, x.ndim)
    for d, (i, s, o) in enumerate(zip(index.sizes, src.sizes, x.sizes)):
        if not at_least(s - i, 0) or (d != dim and not at_least(o - i, 0)):
            raise NotImplementedError("the index may be larger than what it is for")
    wide = dtypes.float32 if x.dtype in (dtypes.float16, dtypes.bfloat16) else x.dtype
    values, t, shape = lowering.values, short(wide), x.sizes
    tag = lowering.message("aten::scatter_reduce")

    def write(target, value, how):
        loops = lowering.variables(index.sizes)
        lowering.add(lowering.scattered(target, loops, value, dim, index, tag, how))

    target = lowering.new_buffer(shape, dense_strides(shape), t)
    lowering.fill(target, as_dtype(lowering, x, wide))
    some = at_least(math.prod(index.sizes), 1)
    if not some and 0 not in index.sizes:
        raise NotImplementedError("the index may be empty")
    if some and not at_least(shape[dim], 1):
        raise NotImplementedError("what is indexed may be empty")
    if some:
        if lowering.checks_first:
            (index,) = lowering.checked_before([shape[dim]], [index], wrap=False)
        if identity is not None:
            write(target, lambda c: values.const(identity, t), "assign")
        write(target, lambda c: values.cast(values.cast(src.at(c), t), t), _COMBINE[reduce])
    out = lowering.in_memory(Region(target.name, shape, target.strides), wide, target.strides, val.device)
    if reduce == "mean":
        count = lowering.new_buffer(shape, dense_strides(shape), "i64")
        start = values.const(int(identity is None), "i64")
        lowering.fill(count, lowering.lazy(shape, dtypes.int64, lambda c: start))
        if some:
            write(count, lambda c: values.const(1, "i64"), "add")
        many = lowering.in_memory(Region(count.name, shape, count.strides), dtypes.int64, count.strides, val.device)
        total = out

        def at(c):
            n = values.make("maximum", (many.at(c), values.const(1, "i64")), "i64")
            return values.make("div" if wide.is_floating_point else "floordiv", (total.at(c), values.cast(n, t)), t)

        out = lowering.lazy(shape, wide, at, strides=dense_strides(shape), device=val.device)
    return as_dtype(lowering, out, val.dtype)


def scattered(lowering, target, loops, value, dim, index, tag, how) -> Pointwise:
    """The loop nest that writes ``value(coords)`` into ``target`` where ``index`` says along ``dim``."""
    coords = tuple(variable(v) for v in loops)
    values = lowering.values
    place = values.cast(index.at(coords), "i64")
    place = of(values.make("checked", (place, target.shape[dim], tag, False), "i64"))
    where = linear((*coords[:dim], place, *coords[dim + 1 :]), target.strides)
    return Pointwise(target.name, loops, value(coords), where, how)


def write_under_mask(lowering, val, x, mask, source):
    """masked_scatter: the elements of ``source`` one after the other where ``mask`` holds."""
    shape, n = sizes(val.shape), math.prod(source.sizes)
    if mask.dtype is not dtypes.bool_ or not at_least(n, 1) or not at_least(math.prod(shape), 1):
        raise NotImplementedError("no mask, or nothing to write")
    values, t, wide = lowering.values, short(x.dtype), compute_type(short(x.dtype))
    whole = lowering.lazy(shape, dtypes.int64, lambda c: values.cast(mask.at(broadcast_coords(c, mask.sizes)), "i64"))
    region = lowering.contiguous(whole)
    total = math.prod(shape)
    line = lowering.in_memory(Region(region.buffer, (total,), (1,), region.offset), dtypes.int64, (1,))
    rank = lowering.scan(_Meta(dtypes.int64, val.device), line, 0, False)
    data = lowering.contiguous(source)
    text = "masked_scatter: expected self and source to have same dtypes and source to hold more elements"
    tag = lowering.message(text, About.CONDITION)

    def at(coords):
        holds = mask.at(broadcast_coords(coords, mask.sizes))
        place = values.make("sub", (rank.at((linear(coords, dense_strides(shape)),)), values.const(1, "i64")), "i64")
        place = values.make("where", (holds, place, values.const(0, "i64")), "i64")
        place = of(values.make("checked", (place, n, tag, False), "i64"))
        there = values.cast(values.load(data.buffer, place + data.offset, t), wide)
        kept = values.cast(x.at(broadcast_coords(coords, x.sizes)), wide)
        return values.cast(values.make("where", (holds, there, kept), wide), t)

    return lowering.lazy(shape, x.dtype, at, strides=dense_strides(shape), device=val.device)


def known(lowering, val, op, *arguments):
    """The result of ``op`` of numbers alone, computed now."""
    if any(hasattr(n, "__sym__") for n in (*val.shape, *arguments)) or math.prod(val.shape) > MOST_KNOWN:
        raise NotImplementedError("a size that is known at the call only, or a large one")
    arguments = [CPU if isinstance(a, Device) else a for a in arguments]  # a constant is brought to the graph's device
    return constant(lowering, call_schema(op, arguments), val.device)
