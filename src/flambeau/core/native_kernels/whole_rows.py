"""Attention over whole rows."""

from __future__ import annotations

from ...base import blas, dtypes, kernels
from ...base.expr import at_least
from ...base.result_spec import ResultSpec
from ...base.sizes import dense_strides, sizes
from ..layouts import dense_like

__all__ = ["attention"]

_FLOAT = {dtypes.float32: "f32", dtypes.float64: "f64"}  # as base/blas.py names them


def _rows(h, x):
    """In memory with rows side by side, as the kernel reads it."""
    part = h.realize(x)
    _, _, t, e = part.shape
    if (part.strides[3] == 1 or e == 1) and (t == 1 or at_least(part.strides[2] - e, 0)):
        return part
    return h.contiguous(x)


def _refuse_others(query, key, value, mask, of_queries) -> None:
    """NotImplementedError unless the sizes are known to fit: the eager kernel says what is wrong. ``of_queries``: the shapes of the cotangent, the
    output and the sums."""
    (b, heads, t, e), s, wide = query, key[2], value[3]
    fits = tuple(key) == (b, heads, s, e) and tuple(value) == (b, heads, s, wide)
    whole = (b, heads, t, s)
    if mask is not None:
        fits = fits and len(mask) <= 4 and all(n == 1 or n == m for n, m in zip(mask, whole[4 - len(mask) :]))
    if of_queries:
        cotangent, out, sums = map(tuple, of_queries)
        fits = fits and cotangent == out == (b, heads, t, wide) and sums == (b, heads, t)
    if not fits:
        raise NotImplementedError("sizes that don't fit one another")


def attention(h, vals, tensors, mask, causal, scale, backward=(), kept=None, boost=1.0):
    """softmax(scale q k^T + mask) v and its logarithmic sums, or with ``backward`` (the cotangent, the output, the sums) the cotangents of q, k and
    v, and of the mask where there are four ``vals``, the results' shapes and strides. ``kept``: bits, the weights that dropout leaves, times
    ``boost``. See csrc/kernels/attention.c."""
    kind = vals[0].dtype
    if kind not in _FLOAT or not blas.gemm_address(_FLOAT[kind]):
        raise NotImplementedError(f"there is no attention in {kind}")
    parts = [_rows(h, x) for x in tensors]
    (b, heads, t, e), s = parts[0].shape, parts[1].shape[2]
    of_queries = [h.realize(x) for x in backward]
    p = None if mask is None else h.realize(mask)
    _refuse_others(*(x.shape for x in parts), None if p is None else p.shape, [x.shape for x in of_queries])
    if mask is not None:
        whole = (b, heads, t, s)
        skip = 4 - len(p.shape)
        strides = [0] * skip + [0 if n == 1 else st for n, st in zip(p.shape, p.strides)]
        parts.append(h.part(p, whole, tuple(strides)))
    else:
        parts.append(None)
    parts.append(kept if kept is None else h.contiguous(kept))
    if backward:
        cotangent, out, _ = backward
        parts += [_rows(h, cotangent), _rows(h, out), of_queries[2]]
    outs = []
    for v in vals:
        shape, strides = sizes(v.shape), sizes(v.stride())
        if len(outs) == 3:
            strides = dense_strides(shape)
        elif len(shape) == 4 and not (strides[3] == 1 and at_least(strides[2] - shape[3], 0)):
            strides = dense_like(shape, dense_strides(shape))
        outs.append(ResultSpec(shape, strides, kind, v.device))
    numbers = {"causal": causal, "scale": scale, "boost": boost, "f64": kind is dtypes.float64}
    numbers["truths"] = mask is not None and mask.dtype is dtypes.bool_
    flops = (10 if backward else 4) * b * heads * t * s * e
    return h.launch(kernels.attention_backward if backward else kernels.attention, parts, outs, flops, **numbers)
