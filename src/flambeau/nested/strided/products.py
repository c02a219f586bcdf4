"""Products, normalisations, reductions, embeddings and attention of nested tensors of the strided layout."""

from __future__ import annotations

from flambeau.core.operator import namespace

from ..around import wrapped
from .functions import components, contiguous, each, is_strided, joined, rule

aten = namespace("aten")


def _rows(t):
    """The elements as rows of the last dimension: (N, D). RuntimeError where it is irregular."""
    return contiguous(None, t)._buffer.view(-1, t.size(-1))


@rule("linear")
def linear(func, input, weight, bias=None):
    if not is_strided(input) or is_strided(weight):
        raise RuntimeError("linear: of nested tensors only the input may be one")
    if not input._places:
        return input
    if input.size(-1) != weight.shape[-1]:
        rows = input.numel() // max(input.size(-1), 1)
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{input.size(-1)} and {weight.shape[1]}x{weight.shape[0]})"
        )
    return _laid_out(func(_rows(input), weight, bias), input)


def _laid_out(rows, t):
    """Rows (N, E) as the parts of ``t`` with E in the place of the last size."""
    counts = [p.numel // p.size[-1] if p.size[-1] else 0 for p in t._places]
    pieces = aten.split_with_sizes(rows, counts)
    return joined([x.reshape(*p.size[:-1], rows.shape[-1]) for x, p in zip(pieces, t._places)])


@rule("matmul", "mm", "bmm", "__matmul__", "__rmatmul__")
def matmul(func, a, b):
    name = func.__name__
    if name == "__rmatmul__":
        a, b = b, a
    if not is_strided(a) or (not is_strided(b) and name != "bmm"):
        order = ("nested", "non-nested") if is_strided(a) else ("non-nested", "nested")
        raise RuntimeError(f"Expected both to be nested, but got a {order[0]} self and {order[1]} other")
    if a.dim() != b.dim() or a.dim() < 3 or (name == "bmm" and a.dim() != 3):
        raise RuntimeError(
            f"{name.strip('_')}: nested tensors need the same number of dimensions, at least 3, got {a.dim()} and {b.dim()}"
        )
    others = components(b) if is_strided(b) else b.unbind(0)
    if len(others) != len(a._places):
        raise RuntimeError(
            f"Expected size for the 1st dimension of 2nd input tensor to be: {len(a._places)} but got: {len(others)}."
        )
    return joined([x @ y for x, y in zip(components(a), others)])


@rule("softmax", "log_softmax", "_softmax")
def softmax(func, input, dim=None, *args, **kwargs):
    if dim is None:
        raise RuntimeError("softmax of a nested tensor takes a dimension")
    at = wrapped(input, dim) - 1
    if at < 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return each(input, lambda x: func(x, at, *args, **kwargs))


@rule("layer_norm")
def layer_norm(func, input, normalized_shape, weight=None, bias=None, eps=1e-5, *args):
    if weight is None or bias is None:
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    sizes = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    if any(list(p.size[-len(sizes) :]) != sizes for p in input._places):
        raise RuntimeError(
            f"Given normalized_shape={sizes}, expected input with shape [*, {', '.join(map(str, sizes))}], but got parts of "
            f"{[list(p.size) for p in input._places]}"
        )
    t = contiguous(None, input)
    made = func(t._buffer.view(-1, *sizes), sizes, weight, bias, eps, *args)
    return type(t)(made.reshape(-1), t._places)


@rule("sum")
def summed(func, input, dim=None, keepdim=False, dtype=None):
    if dim is None:
        raise NotImplementedError("sum of a whole nested tensor: values().sum() is that of its elements")
    dims = [dim] if isinstance(dim, int) else list(dim)
    if [wrapped(input, d) for d in dims] != [input.dim() - 1]:
        raise RuntimeError(
            f"NestedTensor can only be reduced across the last dimension for now got dimension {dims[0]} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return each(input, lambda x: x.sum(-1, keepdim=True, dtype=dtype))


@rule("embedding")
def embedding(func, input, weight, *args, **kwargs):
    # The operator takes the table first, the function the indices.
    indices = input if is_strided(input) else weight
    if is_strided(input) and is_strided(weight):
        raise RuntimeError("embedding: of nested tensors only the indices may be one")
    return each(indices, lambda x: func(*((x, weight) if indices is input else (input, x)), *args, **kwargs))


@rule("scaled_dot_product_attention")
def attention(func, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """(B, heads, j, E), sequence by sequence."""
    name = "Scaled_dot_product_attention: Nested tensors for query / key are not supported when"
    if attn_mask is not None:
        raise RuntimeError(f"{name} an explicit attn_mask is set")
    if is_causal:
        raise RuntimeError(f"{name} is_causal=True")
    if not all(map(is_strided, (query, key, value))):
        raise RuntimeError("scaled_dot_product_attention: query, key and value must be nested tensors, all of them")
    given = list(zip(*map(components, (query, key, value)), strict=True))
    return joined([func(q, k, v, None, dropout_p, False, scale=scale, enable_gqa=enable_gqa) for q, k, v in given])
