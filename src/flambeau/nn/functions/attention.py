"""Attention of several heads, as ``MultiheadAttention`` computes it. Vaswani et al., arXiv:1706.03762."""

from __future__ import annotations

import math

from flambeau.core.bindings import function
from flambeau.core.overrides import overridable
from flambeau.core.tensor import Tensor

__all__ = ["multi_head_attention_forward"]

_linear, _dropout, _cat, _zeros, _zeros_like, _attend = map(
    function, ("linear", "dropout", "cat", "zeros", "zeros_like", "scaled_dot_product_attention")
)


def _as_bias(mask, name: str, dtype):
    """A mask to be added: -inf where a boolean one is true."""
    if mask is None:
        return None
    if mask.dtype.category == 0:
        return _zeros_like(mask, dtype=dtype).masked_fill(mask, float("-inf"))
    if not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    return mask


def _projected(query, key, value, weight, bias):
    """Query, key and value by the packed weight (3E, E): one product where they are one tensor."""
    e = query.size(-1)
    if key is value:
        if query is key:
            return _linear(query, weight, bias).chunk(3, -1)
        wq, wkv = weight.split([e, 2 * e])
        bq, bkv = (None, None) if bias is None else bias.split([e, 2 * e])
        return (_linear(query, wq, bq), *_linear(key, wkv, bkv).chunk(2, -1))
    weights = weight.chunk(3)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(_linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))


def _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads: int) -> None:
    """AssertionError for arguments whose numbers of dimensions don't belong together."""
    n = query.dim()
    if n not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {n}-D query tensor")
    kind = f"batched ({n}-D)" if n == 3 else f"unbatched ({n}-D)"
    if (key.dim(), value.dim()) != (n, n):
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {n}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != n - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {n - 1}-D but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead"
            )
        wanted = (num_heads, query.shape[0], key.shape[0])
        if n == 2 and attn_mask.dim() == 3 and tuple(attn_mask.shape) != wanted:
            raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {attn_mask.shape}")


def _with_batch(query, key, value):
    """Query, key and value with a batch of one; what was one tensor stays one, so that its products can be one."""
    q = query.unsqueeze(1)
    k = q if key is query else key.unsqueeze(1)
    return q, k, k if value is key else value.unsqueeze(1)


def _check_sizes(query, key, value, embed_dim: int, num_heads: int, separate: bool) -> None:
    """AssertionError for sizes that don't belong together; with weights of their own, the features of key and value may differ."""
    e = query.shape[2]
    if e != embed_dim:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim}, but got {e}")
    if e // num_heads * num_heads != e:
        raise AssertionError(f"embed_dim {e} not divisible by num_heads {num_heads}")
    if key.shape[:2] != value.shape[:2] if separate else key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _for_each_head(mask, heads: int, length: int, source: int):
    """The mask as (1 or heads, length, source)."""
    if mask is None:
        return None
    if mask.dim() == 2:
        if tuple(mask.shape) != (length, source):
            raise RuntimeError(f"The shape of the 2D attn_mask is {mask.shape}, but should be {(length, source)}.")
        return mask.unsqueeze(0)
    if mask.dim() != 3:
        raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
    if tuple(mask.shape) != (heads, length, source):
        raise RuntimeError(f"The shape of the 3D attn_mask is {mask.shape}, but should be {(heads, length, source)}.")
    return mask


def _widened(mask):
    """The mask with a column for one more key, which everything may look at."""
    return None if mask is None else _cat([mask, mask.new_zeros((*mask.shape[:-1], 1))], -1)


def _joined(attn_mask, padding, batch: int, num_heads: int, source: int):
    """Both masks as one of (batch * num_heads, 1 or length, source)."""
    if tuple(padding.shape) != (batch, source):
        raise AssertionError(f"expecting key_padding_mask shape of {(batch, source)}, but got {padding.shape}")
    mask = padding.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1).reshape(batch * num_heads, 1, source)
    return mask if attn_mask is None else attn_mask + mask


def _with_weights(q, k, v, mask, dropout_p: float):
    """The result and the weights, (batch * heads, length, ...) each, step by step."""
    scores = (q * math.sqrt(1.0 / q.shape[-1])).bmm(k.transpose(-2, -1))
    weights = (scores if mask is None else scores + mask).softmax(-1)
    if dropout_p > 0.0:
        weights = _dropout(weights, dropout_p, True)
    return weights.bmm(v), weights


def _fused(q, k, v, mask, dropout_p: float, is_causal: bool, batch: int, num_heads: int):
    """(batch, heads, length, head) by one operator that doesn't store the weights."""
    if mask is not None:
        mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.view(batch, num_heads, -1, k.shape[1])
    q, k, v = (t.view(batch, num_heads, t.shape[1], t.shape[2]) for t in (q, k, v))
    return _attend(q, k, v, mask, dropout_p, is_causal)


def _by_head(x, heads: int, head: int):
    """(length, batch, E) as (heads of all batches, length, features of a head)."""
    return x.reshape(x.shape[0], heads, head).transpose(0, 1)


def _with_zeros(x):
    """One more row of zeros, (heads, length + 1, head)."""
    return _cat([x, _zeros((x.shape[0], 1, x.shape[2]), dtype=x.dtype, device=x.device)], 1)


def _check_no_static(static_k, static_v) -> None:
    for name, given in (("key", static_k), ("value", static_v)):
        if given is not None:
            raise AssertionError(f"bias cannot be added to static {name}.")


@overridable
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """query (L, N, E), key and value (S, N, E), or without N: output (L, N, E) and the weights (N, L, S), a head each unless averaged."""
    _check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    batched = query.dim() == 3
    if not batched:
        query, key, value = _with_batch(query, key, value)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    length, batch, e = query.shape
    key_padding_mask = _as_bias(key_padding_mask, "key_padding_mask", query.dtype)
    attn_mask = _as_bias(attn_mask, "attn_mask", query.dtype)
    use_causal = is_causal and key_padding_mask is None and not need_weights
    if use_causal:
        attn_mask = None

    if use_separate_proj_weight:
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = (_linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))
    else:
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias)
    attn_mask = _for_each_head(attn_mask, batch * num_heads, length, key.shape[0])

    if bias_k is not None and bias_v is not None:
        _check_no_static(static_k, static_v)
        k, v = _cat([k, bias_k.repeat(1, batch, 1)]), _cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _widened(attn_mask), _widened(key_padding_mask)
    q = _by_head(q, batch * num_heads, e // num_heads)
    k = _by_head(k, batch * num_heads, e // num_heads) if static_k is None else static_k
    v = _by_head(v, batch * num_heads, e // num_heads) if static_v is None else static_v
    if add_zero_attn:
        k, v = _with_zeros(k), _with_zeros(v)
        attn_mask, key_padding_mask = _widened(attn_mask), _widened(key_padding_mask)
    if key_padding_mask is not None:
        attn_mask = _joined(attn_mask, key_padding_mask, batch, num_heads, k.shape[1])

    dropout_p = dropout_p if training else 0.0
    if need_weights:
        out, weights = _with_weights(q, k, v, attn_mask, dropout_p)
        weights = weights.view(batch, num_heads, length, k.shape[1])
        weights = weights.mean(1) if average_attn_weights else weights
        weights = weights if batched else weights.squeeze(0)
        out = out.transpose(0, 1)
    else:
        weights = None
        out = _fused(q, k, v, attn_mask, dropout_p, use_causal, batch, num_heads).permute(2, 0, 1, 3)
    out = _linear(out.reshape(length * batch, e), out_proj_weight, out_proj_bias).view(length, batch, e)
    return out if batched else out.squeeze(1), weights
