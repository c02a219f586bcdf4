"""``scaled_dot_product_attention``: which way the scores go."""

from __future__ import annotations

import math

from ...base import dtypes
from ...base.shapes import broadcast_shapes
from ...base.symint import sym_sqrt
from ...core.declare import composite
from ...core.operator import namespace
from ..reductions.basic import as_dtype, widened
from .attention import streamed, streamed_whole, streams

aten = namespace("aten")


def _check_mask(mask, query, key) -> None:
    """RuntimeError unless the mask is of truth values, float32 or the queries' dtype and broadcasts against the scores."""
    if mask.dtype not in (dtypes.bool_, dtypes.float32, query.dtype):
        raise RuntimeError(
            f"Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {dtypes.c_name(mask.dtype)} and  "
            f"query.dtype: {dtypes.c_name(query.dtype)} instead."
        )
    if mask.ndim < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-{max(mask.ndim, 1)}, {max(mask.ndim, 1) - 1}], but got -2)"
        )
    rows = [1] * max(query.ndim - 2, 0)
    broadcast_shapes((*rows, query.shape[-2], key.shape[-2]), (*rows, *mask.shape[-2:]))


@composite(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, "
    "float? scale=None, bool enable_gqa=False) -> Tensor",
    variants="nn",
)
def scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    """softmax(Q K^T / sqrt(E)) V. Vaswani et al., arXiv:1706.03762."""
    if not query.dtype is key.dtype is value.dtype:
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype} key.dtype: {key.dtype} and "
            f"value.dtype: {value.dtype} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {query.ndim} key.dim: {key.ndim} and "
            f"value.dim: {value.ndim} instead."
        )
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise RuntimeError(
            f"scaled_dot_product_attention: query {list(query.shape)}, key {list(key.shape)} and value {list(value.shape)} don't fit: "
            "query and key must agree in the last dimension, key and value in the one before"
        )
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if attn_mask is not None:
        _check_mask(attn_mask, query, key)
    if streams(query, key, value, attn_mask, dropout_p, enable_gqa):
        return streamed(query, key, value, attn_mask, dropout_p, is_causal, scale)
    if query.ndim == key.ndim == value.ndim == 3 and query.is_contiguous():
        heads = [aten.unsqueeze.default(x, 0) for x in (query, key, value)]
        if streams(*heads, attn_mask, dropout_p, enable_gqa):
            out = streamed(*heads, attn_mask, dropout_p, is_causal, scale)
            return aten._unsafe_view.default(out, list(out.shape[1:]))
    out = streamed_whole(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if out is not None:
        return out
    if enable_gqa:
        heads, held, held_values = query.shape[-3], key.shape[-3], value.shape[-3]
        if heads % held or heads % held_values:
            raise RuntimeError(
                f"scaled_dot_product_attention: with enable_gqa the number of heads of query ({heads}) must be a multiple of those of key "
                f"({held}) and value ({held_values})"
            )
        key = aten.repeat_interleave.self_int(key, heads // held, -3)
        value = aten.repeat_interleave.self_int(value, heads // held_values, -3)
    kind = query.dtype
    query, key, value = (widened(t) for t in (query, key, value))
    factor = 1 / sym_sqrt(max(query.shape[-1], 1)) if scale is None else scale
    scores = aten.matmul.default(aten.mul.Tensor(query, factor), aten.transpose.int(key, -2, -1))
    if is_causal:
        rows, columns = scores.shape[-2:]
        keep = aten.tril.default(aten.ones.default([rows, columns], dtype=dtypes.bool_, device=query.device))
        scores = aten.masked_fill.Scalar(scores, aten.logical_not.default(keep), -math.inf)
    elif attn_mask is not None:
        if attn_mask.dtype is dtypes.bool_:
            scores = aten.masked_fill.Scalar(scores, aten.logical_not.default(attn_mask), -math.inf)
        else:
            scores = aten.add.Tensor(scores, attn_mask)
    # A row whose keys are all masked weighs them 0, not nan.
    weights = aten._softmax.default(scores, -1, False) if attn_mask is None else aten._safe_softmax.default(scores, -1)
    if dropout_p > 0:
        weights = aten.dropout.default(weights, dropout_p, True)
    return as_dtype(kind, aten.matmul.default(weights, value))
