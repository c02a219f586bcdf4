"""Sums over segments and bags."""

from __future__ import annotations

import math

from ...base import dtypes, kernels
from ...base.kernels import Segment, element
from ...base.result_spec import ResultSpec
from ...base.shapes import normalize_dim
from ...base.sizes import dense_strides, sizes
from ..messages import About
from .computing import FLOATS

__all__ = ["bags", "combine", "segments"]


def segments(h, val, x, reduce: str, lengths, offsets, axis: int, unsafe: bool, initial, refused: str):
    """segment_reduce; ``refused``: what is said of lengths that aren't those of the rows."""
    if val.dtype not in FLOATS or reduce.upper() not in Segment.__members__ or (lengths is offsets is None):
        raise NotImplementedError(f"there is no reduction {reduce} of segments of {val.dtype}")
    shape, given = sizes(val.shape), offsets if lengths is None else lengths
    before, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    if math.prod(given.sizes[:-1]) != before:
        raise NotImplementedError("lengths may be of other rows")
    data, where = h.contiguous(x), h.contiguous(h.as_dtype(given, dtypes.int64))
    rows, count = x.sizes[axis], where.shape[-1]
    parts = [
        h.part(data, (before, rows, inner), (rows * inner, inner, 1)),
        h.part(where, (before, count), (count, 1)),
    ]
    out = ResultSpec((before, shape[axis], inner), (shape[axis] * inner, inner, 1), val.dtype, val.device)
    numbers = {"reduce": Segment[reduce.upper()], "offsets": lengths is None, "unsafe": bool(unsafe)}
    numbers |= {"started": initial is not None, "initial": initial or 0.0, "f64": val.dtype is dtypes.float64}
    tag = h.message(refused, About.CONDITION)
    flops = math.prod(x.sizes)
    made = h.launch(kernels.segment_reduce, parts, [out], flops, effect=not unsafe, **numbers, refused=tag)[0]
    strides = dense_strides(shape)
    return h.in_memory(h.part(h.realize(made), shape, strides), val.dtype, strides, val.device)


def combine(h, x, dim, index, source, reduce: str, included: bool):
    """scatter_reduce with an index of equally many dimensions: see csrc/kernels/combine.c."""
    kind = dtypes.float32 if x.dtype in (dtypes.float16, dtypes.bfloat16) else x.dtype
    way = Segment.__members__.get({"amax": "MAX", "amin": "MIN"}.get(reduce, reduce.upper()))
    if kind not in (*FLOATS, dtypes.int64) or way is None or (kind is dtypes.int64 and way == Segment.MEAN):
        raise NotImplementedError(f"there is no reduction {reduce} of {x.dtype} by places")
    shape, d = tuple(x.shape), normalize_dim(dim, len(x.shape))
    fits = x.dtype is source.dtype and index.dtype in (dtypes.int64, dtypes.int32)
    fits = fits and 0 < len(shape) == len(index.shape) == len(source.shape) <= 8
    if not fits or any(
        i > s or (e != d and i > n) for e, (n, i, s) in enumerate(zip(shape, index.shape, source.shape))
    ):
        raise NotImplementedError("an index that isn't as large")
    into, source = (h.as_dtype(t, kind) for t in (x, source))
    source = h.realize(source)
    parts = [
        h.contiguous(into),
        h.realize(h.as_dtype(index, dtypes.int64)),
        h.part(source, index.shape, source.strides),
    ]
    out = ResultSpec(shape, dense_strides(shape), kind, x.device)
    numbers = {"dim": d, "reduce": way, "included": bool(included), "element": element(kind)}
    flops = math.prod(shape) + 4 * math.prod(index.shape)
    return h.as_dtype(h.launch(kernels.combine, parts, [out], flops, **numbers)[0], x.dtype)


def bags(h, table, indices, starts, mode: int, weights, padding: int):
    """[rows of a table combined by bags, the bag of each index, the sizes of bags, where maxima are]; ``mode``: sum, mean, maximum."""
    kind, (_, width) = table.dtype, table.shape
    if kind not in FLOATS or not math.prod((*table.shape, *indices.shape, *starts.shape)):
        raise NotImplementedError(f"there are no bags of {kind} and sizes {list(table.shape)}")
    whole = (dtypes.int64, dtypes.int32)
    if indices.dtype not in whole or starts.dtype not in whole or len(indices.shape) != 1 or len(starts.shape) != 1:
        raise NotImplementedError("indices of other kinds")
    if weights is not None and (weights.dtype is not kind or tuple(weights.shape) != tuple(indices.shape)):
        raise NotImplementedError("weights of other kinds")
    count, shape = starts.shape[0], (starts.shape[0], width)
    parts = [h.contiguous(table), *(h.contiguous(h.as_dtype(t, dtypes.int64)) for t in (indices, starts))]
    parts.append(None if weights is None else h.contiguous(weights))
    wanted = [(shape, kind), (tuple(indices.shape), dtypes.int64), ((count,), dtypes.int64)]
    outs = [ResultSpec(s, dense_strides(s), t, table.device) for s, t in [*wanted, (shape, dtypes.int64)]]
    if mode != 2:
        outs[3] = None
    numbers = {"padding": padding, "mean": mode == 1, "f64": kind is dtypes.float64}
    flops = 2 * math.prod(indices.shape) * width
    made = h.launch(kernels.embedding_bag, parts, outs, flops, **numbers)
    made[2] = h.as_dtype(made[2], indices.dtype)
    return [*made[:3], made[3] if mode == 2 else made[2]]
