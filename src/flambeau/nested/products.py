"""Products, normalisations, embeddings and attention of nested tensors."""

from __future__ import annotations

from flambeau.core.operator import namespace

from .functions import extremes, is_nested, like, mask_of, padded, rule, same_sequences, unpadded
from .shapes import sequences

aten = namespace("aten")


def _contiguous(name: str, t) -> None:
    if t._ragged_idx == t.dim() - 1:
        raise ValueError(f"{name}: expected input to be a contiguous jagged layout NestedTensor, got shape {t.shape}")


@rule("linear")
def linear(func, input, weight, bias=None):
    if not is_nested(input):
        raise NotImplementedError("linear: a nested weight")
    _contiguous("NestedTensor linear_default(input: jt, weight: t, bias: t?)", input)
    return like(input, func(input._values, weight, bias))


@rule("matmul", "mm", "bmm", "__matmul__", "__rmatmul__")
def matmul(func, a, b):
    name = func.__name__
    if name == "__rmatmul__":
        a, b = b, a
    out = _product(a, b)
    if out is None:
        shapes = f"{_shape(a)} and {_shape(b)}"
        raise RuntimeError(f"{name.strip('_')}(): not supported between inputs of shapes {shapes}")
    return out


def _shape(x) -> str:
    return str(tuple(x.shape)) if is_nested(x) else str(x.shape)


def _product(a, b):
    """The product, or None where its sizes have no name."""
    if not is_nested(b):
        if a._ragged_idx == a.dim() - 1:
            return None
        if b.dim() <= 2 or a.dim() > 3:
            return like(a, aten.matmul(a._values, b)) if b.dim() <= 2 else None
        # (B, j, D) by (B, D, E)
        found = aten.bmm(padded(a, 0), b) if b.shape[0] == len(a) else aten.matmul(padded(a, 0), b)
        return like(a, unpadded(found, a))
    if not is_nested(a):
        if b._ragged_idx != b.dim() - 1:
            return None
        if a.dim() <= 2:
            return like(b, aten.matmul(a, b._values))
        if b.dim() != 3:
            return None
        return like(b, unpadded(aten.matmul(a, padded(b, 0).movedim(1, 2)), b))
    if a._offsets is not b._offsets or a._lengths is not b._lengths:
        return None
    summed = a._ragged_idx == a.dim() - 1, b._ragged_idx == b.dim() - 2
    if all(summed):  # (B, D, j) by (B, j, E): what stands behind the ends is 0
        return aten.matmul(padded(a, 0).movedim(1, a._ragged_idx), padded(b, 0).movedim(1, b._ragged_idx))
    if any(summed) or a._ragged_idx >= a.dim() - 2:
        return None
    return like(a, aten.matmul(a._values, b._values)) if same_sequences(a, b) else None


@rule("layer_norm", "rms_norm")
def norm(func, input, normalized_shape, *args, **kwargs):
    sizes = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    first = input.dim() - len(sizes)
    if first > input._ragged_idx:
        return like(input, func(input._values, sizes, *args, **kwargs))
    if first < 1 or input._lengths is not None or func.__name__ != "layer_norm":
        raise RuntimeError(
            f"{func.__name__}(): not supported where the batch or holes are normalised over for NestedTensor"
        )
    return _norm_of_sequences(input, sizes, *args, **kwargs)


def _norm_of_sequences(input, sizes, weight=None, bias=None, eps=1e-5):
    """Over the sequences, each on its own."""
    if sizes != list(input.shape[-len(sizes) :]):
        raise RuntimeError(
            f"Given normalized_shape={sizes}, expected input with shape [*, {', '.join(map(str, sizes))}], but got input of "
            f"size{list(input._values.shape)}"
        )
    made = [aten.layer_norm(s.contiguous(), list(s.shape[-len(sizes) :]), None, None, eps) for s in sequences(input)]
    out = like(input, aten.cat(made, input._ragged_idx - 1))
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


@rule("embedding")
def embedding(func, input, weight, *args, **kwargs):
    if func.__module__.endswith("functional") or not is_nested(weight):
        indices, table = (input, weight) if is_nested(input) else (weight, input)
        order = (indices._values, table) if indices is input else (table, indices._values)
        return like(indices, func(*order, *args, **kwargs))
    return like(weight, func(input, weight._values, *args, **kwargs))


@rule("scaled_dot_product_attention")
def attention(func, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """(B, heads, j, E), made by transposing (B, j, heads, E). Keys and values may have other sequences than queries."""
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")
    given = (query, key, value)
    if not all(map(is_nested, given)):
        raise RuntimeError("scaled_dot_product_attention: query, key and value must be nested tensors, all of them")
    if len({t.dim() for t in given}) != 1 or query.dim() not in (3, 4):
        raise ValueError(
            f"Expected query, key, and value to all be 3 or 4 dimensional, but got {[t.dim() for t in given]}"
        )
    if any(t._ragged_idx != t.dim() - 2 for t in given) or not same_sequences(key, value):
        raise RuntimeError(
            "scaled_dot_product_attention: the dimension before the last must be the ragged one (transpose heads in front of it), and "
            "key and value must have the same sequences"
        )
    q, k, v = (padded(t, 0).movedim(1, t._ragged_idx) for t in given)
    mask = None if _all_full(key) else mask_of(key).view(len(key), *[1] * (query.dim() - 2), -1)
    if mask is not None and is_causal:
        ones = aten.ones([q.shape[-2], k.shape[-2]], dtype=mask.dtype, device=mask.device)
        mask, is_causal = mask & aten.tril(ones), False
    if mask is not None:
        mask = mask.expand(*q.shape[:-1], k.shape[-2])
    return like(query, unpadded(func(q, k, v, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa), query))


def _all_full(t) -> bool:
    known = extremes(t)
    return known.shortest == known.longest
