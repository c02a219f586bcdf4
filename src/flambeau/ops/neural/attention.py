"""Attention without a matrix of scores in memory: csrc/kernels/attention.c, forward and backward, as ATen's operators for CPUs.

Shapes: query (B, H, T, E), key and value (B, H / group, S, E), mask anything that broadcasts over (B, H, T, S), logsumexp (B, H, T). The result lies as the
query does; the cotangents as (B, T, H, E), so that joining the heads afterwards is free.
"""

from __future__ import annotations

import math

import numpy as np

from ...base import blas, dtypes
from ...base.shapes import broadcast_shapes, contiguous_strides
from ...base.symint import sym_sqrt
from ...core.declare import extern, random
from ...core.definition import TensorMeta
from ...core.dispatch import differentiated
from ...core.layouts import dense_like, in_order, strides_of
from ...core.operator import namespace
from ...core.sharding import Letters
from ..reductions.basic import as_dtype, widened

aten = namespace("aten")

_KINDS = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16)


def streams(query, key, value, mask, dropout_p, grouped) -> bool:
    """Whether attention of these goes by the streaming kernel: four dimensions, the last one side by side in memory, one dtype."""
    if not 0 <= dropout_p < 1 or query.ndim != 4 or key.ndim != 4 or value.ndim != 4 or query.dtype not in _KINDS:
        return False
    if not (query.dtype is key.dtype is value.dtype) or query.device.type == "meta":
        return False
    if any(strides_of(x)[-1] != 1 for x in (query, key, value)):
        return False
    (b, heads, _, e), (kb, held, _, _), (vb, held_values, _, ev) = query.shape, key.shape, value.shape
    if not (held and b == kb and b == vb and e == ev and held == held_values and (grouped or heads == held)):
        return False
    return mask is None or (2 <= mask.ndim <= 4 and mask.dtype in (dtypes.bool_, query.dtype))


def streamed(query, key, value, mask, dropout_p, causal, scale):
    """Dropout draws as ``dropout`` of the matrix of weights would."""
    kind = query.dtype
    query, key, value = (widened(t) for t in (query, key, value))
    if mask is not None and mask.dtype is not dtypes.bool_:
        mask = widened(mask)
    if dropout_p or (mask is not None and differentiated(mask)):
        kept = None
        if dropout_p:
            kept = aten._kept_bits.default([*query.shape[:3], key.shape[2]], 1 - dropout_p, device=query.device)
        out = aten._streamed_attention.default(query, key, value, mask, kept, dropout_p, causal, scale)
        return as_dtype(kind, out[0])
    out = aten._scaled_dot_product_flash_attention_for_cpu.default(
        query, key, value, 0.0, causal, attn_mask=mask, scale=scale
    )
    return as_dtype(kind, out[0])


def streamed_whole(query, key, value, mask, dropout_p, causal, scale, grouped):
    """Attention of tensors that have not four dimensions, are broadcast, have values of another width than keys, or lie otherwise, by the same
    kernel on tensors that are made like it; the result in C order. None where that isn't possible."""
    tensors = (query, key, value)
    sizes = [n for x in tensors for n in x.shape]
    if not 0 <= dropout_p < 1 or any(type(n) is not int or n < 1 for n in sizes) or min(x.ndim for x in tensors) < 2:
        return None
    if query.dtype not in _KINDS or any(x.dtype is not query.dtype or x.device.type == "meta" for x in tensors):
        return None
    if mask is not None and (mask.ndim < 2 or mask.dtype not in (dtypes.bool_, query.dtype)):
        return None
    heads, held, held_values = (x.shape[-3] if x.ndim > 2 else 1 for x in tensors)
    if grouped and (held != held_values or heads % held):
        return None
    rank = max(x.ndim for x in tensors)
    try:
        batch = broadcast_shapes(*(tuple(x.shape[:-3]) for x in tensors))
        if not grouped:
            shared = held == held_values == 1  # one head of keys for all
            (heads,) = broadcast_shapes((heads,), (held,), (held_values,))
            held = 1 if shared else heads
        whole = (*batch, heads, query.shape[-2], key.shape[-2])
        if mask is not None and (mask.ndim > rank or broadcast_shapes(tuple(mask.shape), whole) != whole):
            return None
    except RuntimeError:  # whole matrices will say it
        return None
    mask = None if mask is None else _folded_mask(mask, batch)
    e, ev = query.shape[-1], value.shape[-1]
    made = []
    for x, h in ((query, heads), (key, held), (value, held)):
        x = aten.expand.default(x, [*batch, h, *x.shape[-2:]])
        x = aten.reshape.default(x, [math.prod(batch), h, *x.shape[-2:]])
        if x.shape[-1] < max(e, ev):
            x = aten.constant_pad_nd.default(x, [0, max(e, ev) - x.shape[-1]])
        made.append(aten.contiguous.default(x))
    out = streamed(*made, mask, dropout_p, causal, _scale(query, scale))
    if ev < e:
        out = aten.contiguous.default(aten.narrow.default(out, -1, 0, ev))
    return aten.reshape.default(out, [*((*batch, heads) if rank > 2 else ()), query.shape[-2], ev])


def _folded_mask(mask, batch):
    """A mask for (batch, heads, T, S), of at most four dimensions."""
    lead = tuple(mask.shape[:-3])
    if all(n == 1 for n in lead):
        return aten.reshape.default(mask, list(mask.shape[-3:])) if lead else mask
    if len(batch) == 1:
        return mask
    rest = list(mask.shape[-3:])
    return aten.reshape.default(aten.expand.default(mask, [*batch, *rest]), [math.prod(batch), *rest])


def _by_place(like):
    """The result for (B, H, T, E) that lies as (B, T, H, E)."""
    b, h, t, e = like.shape
    return TensorMeta((b, h, t, e), (t * h * e, e, h * e, 1), like.dtype, like.device)


def _check(query, key, value, dropout_p=0.0):
    if dropout_p:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0")
    if len(query.shape) != 4 or len(key.shape) != 4 or len(value.shape) != 4:
        raise RuntimeError(
            "scaled_dot_product_attention_flash_attention: Accept only 4 dims inputs shape of {B, H, T, K}"
        )
    if query.dtype != key.dtype or query.dtype != value.dtype:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Q/K/V should have the same data type")
    if query.dtype not in (dtypes.float32, dtypes.float64, np.float32, np.float64):
        raise NotImplementedError(
            f"_scaled_dot_product_flash_attention_for_cpu: {query.dtype} is not built, only float32 and float64"
        )
    if query.shape[3] != key.shape[3] or key.shape[3] != value.shape[3] or key.shape[2] != value.shape[2]:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Q/K/V should have the same head size")
    if query.shape[0] != key.shape[0] or query.shape[0] != value.shape[0] or key.shape[1] != value.shape[1]:
        raise RuntimeError(
            "scaled_dot_product_attention_flash_attention: Q/K/V should have the same batch, K/V the same heads"
        )
    if not key.shape[1] or query.shape[1] % key.shape[1]:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: the heads of K/V should divide those of Q")


def _scale(query, scale):
    return 1 / sym_sqrt(max(query.shape[-1], 1)) if scale is None else scale


def _rows(x):
    """In the strides that the kernel reads: rows in C order, one after the other."""
    item = x.itemsize
    fits = (
        x.flags.aligned
        and (x.strides[3] == item or x.shape[3] == 1)
        and (x.strides[2] >= x.shape[3] * item or x.shape[2] == 1)
    )
    return x if fits and x.strides[2] % item == 0 else x.copy()


def _full(mask, query, key):
    return None if mask is None else np.broadcast_to(mask, (*query.shape[:3], key.shape[2]))


def _blank(x):
    b, h, t, e = x.shape
    return np.zeros((b, t, h, e), x.dtype).transpose(0, 2, 1, 3)


@extern(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, "
    "Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
    meta=lambda query, key, value, dropout_p, is_causal, attn_mask, scale: _forward_meta(query, key, value, dropout_p),
    variants="",
)
def flash(query, key, value, dropout_p, is_causal, attn_mask, scale):
    """Dao et al. 2022, arXiv:2205.14135. A row that sees no key is 0, its logsumexp -inf."""
    _check(query, key, value, dropout_p)
    if not query.size or not key.size:
        b, h, t, _ = query.shape
        return np.zeros_like(query), np.full((b, t, h), -np.inf, query.dtype).transpose(0, 2, 1)
    made = blas.attention(
        *map(_rows, (query, key, value)), _full(attn_mask, query, key), is_causal, float(_scale(query, scale))
    )
    if made is None:
        raise NotImplementedError(
            "_scaled_dot_product_flash_attention_for_cpu: there is no BLAS library in this process"
        )
    return in_order(made[0], dense_like(query.shape, strides_of(query))), made[1]


def _forward_meta(query, key, value, dropout_p):
    _check(query, key, value, dropout_p)
    b, h, t, _ = query.shape
    out = TensorMeta(tuple(query.shape), dense_like(query.shape, strides_of(query)), query.dtype, query.device)
    return out, TensorMeta((b, h, t), (t * h, 1, h), query.dtype, query.device)


@extern(
    "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, "
    "float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
    meta=lambda grad_out, query, key, value, *rest: tuple(map(_by_place, (query, key, value))),
    variants="",
)
def flash_backward(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale):
    _check(query, key, value, dropout_p)
    if not query.size or not key.size:
        return tuple(map(_blank, (query, key, value)))
    return blas.attention(
        *map(_rows, (query, key, value)),
        _full(attn_mask, query, key),
        is_causal,
        float(_scale(query, scale)),
        _rows(grad_out),
        _rows(out),
        logsumexp,
    )


def _vjp(ct0, query, key, value, dropout_p, is_causal, attn_mask, scale, result, result1):
    return aten._scaled_dot_product_flash_attention_for_cpu_backward.default(
        ct0, query, key, value, result, result1, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
    )


@flash.override("lower")
def _lower(lowering, val, query, key, value, dropout_p, is_causal, attn_mask, scale):
    return lowering.attention(val, (query, key, value), attn_mask, is_causal, _scale(query, scale))


@flash_backward.override("lower")
def _lower_backward(lowering, val, grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale):
    backward = (grad_out, out, logsumexp)
    return lowering.attention(val, (query, key, value), attn_mask, is_causal, _scale(query, scale), backward)


flash.derivative((0,), query__key__value=_vjp)


def _grouped(x, heads):
    """Each head of keys or values for the queries that share it."""
    b, held, s, e = x.shape
    if held == heads:
        return x
    wide = aten.expand.default(aten.unsqueeze.default(x, 2), [b, held, heads // held, s, e])
    return aten.reshape.default(wide, [b, heads, s, e])


def _gathered(x, like):
    """The adjoint of _grouped."""
    b, held, s, e = like.shape
    heads = x.shape[1]
    return x if held == heads else aten.sum.dim_IntList(aten.reshape.default(x, [b, held, heads // held, s, e]), [2])


def _second(ct0, ct1, ct2, ct3, grad_out, query, key, value, mask, kept, boost, is_causal, scale):
    """The derivative of the derivative, on whole matrices: cotangents of grad_out, query, key, value and mask from those of the four results."""
    t, mm, mul, add = (lambda x: aten.transpose.int(x, -2, -1)), aten.matmul.default, aten.mul.Tensor, aten.add.Tensor
    heads, factor = query.shape[1], _scale(query, scale)
    k, v, ck, cv = (None if x is None else _grouped(x, heads) for x in (key, value, ct1, ct2))
    scores = mul(mm(query, t(k)), factor)
    if is_causal:
        keep = aten.tril.default(aten.ones.default(list(scores.shape[-2:]), dtype=dtypes.bool_, device=query.device))
        scores = aten.masked_fill.Scalar(scores, aten.logical_not.default(keep), -math.inf)
    elif mask is not None and mask.dtype is dtypes.bool_:
        scores = aten.masked_fill.Scalar(scores, aten.logical_not.default(mask), -math.inf)
    elif mask is not None:
        scores = add(scores, mask)
    kept = None if kept is None else _truths(kept, key.shape[2])
    left = (lambda x: x) if kept is None else (lambda x: mul(mul(x, kept), boost))
    p = aten._safe_softmax.default(scores, -1)
    total = lambda x: aten.sum.dim_IntList(x, [-1], True)  # noqa: E731
    dp = left(mm(grad_out, t(v)))
    centred = aten.sub.Tensor(dp, total(mul(p, dp)))
    ds = mul(mul(p, centred), factor)
    c = aten.zeros_like.default(scores)
    if ct0 is not None:
        c = add(c, mm(ct0, t(k)))
    if ck is not None:
        c = add(c, mm(query, t(ck)))
    c = mul(c, factor)
    c = c if ct3 is None else add(c, ct3)
    cp = aten.sub.Tensor(mul(c, centred), mul(total(mul(c, p)), dp))
    cdp = left(mul(p, aten.sub.Tensor(c, total(mul(c, p)))))
    g_out, g_value = mm(cdp, v), mm(t(cdp), grad_out)
    if cv is not None:
        cp = add(cp, left(mm(grad_out, t(cv))))
        g_out = add(g_out, mm(left(p), cv))
    of_scores = mul(p, aten.sub.Tensor(cp, total(mul(p, cp))))
    cs = mul(of_scores, factor)
    g_query, g_key = mm(cs, k), mm(t(cs), query)
    if ck is not None:
        g_query = add(g_query, mm(ds, ck))
    if ct0 is not None:
        g_key = add(g_key, mm(t(ds), ct0))
    return g_out, g_query, _gathered(g_key, key), _gathered(g_value, value), of_scores


def _second_of_flash(ct0, ct1, ct2, grad_out, query, key, value, is_causal, attn_mask, scale):
    return _second(ct0, ct1, ct2, None, grad_out, query, key, value, attn_mask, None, 1.0, is_causal, scale)[:4]


flash_backward.derivative(
    grad_out__query__key__value=_second_of_flash,
    out=lambda ct0, ct1, ct2: None,  # a function of the others, which _second counts
    logsumexp=lambda ct0, ct1, ct2: None,
)


# ---- with dropout, or a mask that has a gradient -----------------------------------------------------------------------


_kept_bits = random(
    "_kept_bits(SymInt[] size, float p, *, Device? device=None) -> Tensor",
    shape=lambda size, p, *o: (*size[:-1], (size[-1] + 7) // 8),
    dtype=lambda size, p, *o: dtypes.uint8,
)(lambda gen, shape, dtype, size, p, device: gen.truth_bits(tuple(size), p))
_kept_bits.override("drawn", lambda lowering, val, strides, size, p, device: lowering.draw_bits(val, size[-1], p))


def _truths(kept, columns):
    """The matrix of truth values (B, H, T, columns) that bits stand for."""
    how = dict(dtype=dtypes.uint8, device=kept.device)
    places = aten.bitwise_left_shift.Tensor(aten.ones.default([8], **how), aten.arange.default(8, **how))
    bits = aten.ne.Scalar(aten.bitwise_and.Tensor(aten.unsqueeze.default(kept, -1), places), 0)
    return aten.narrow.default(aten.flatten.using_ints(bits, -2), -1, 0, columns)


def _boost(dropout_p: float) -> float:
    return 1 / (1 - dropout_p)


def _streamed_meta(query, key, value, attn_mask, kept, dropout_p, is_causal, scale):
    return _forward_meta(query, key, value, 0.0)


@extern(
    "_streamed_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, Tensor? kept, float dropout_p, bool is_causal, float? scale) "
    "-> (Tensor output, Tensor logsumexp)",
    meta=_streamed_meta,
    variants="",
)
def streamed_attention(query, key, value, attn_mask, kept, dropout_p, is_causal, scale):
    """The same where dropout leaves the weights that ``kept``, bits (_kept_bits), tells, and where the mask may need a gradient."""
    _check(query, key, value)
    if not query.size or not key.size:
        b, h, t, _ = query.shape
        return np.zeros_like(query), np.full((b, t, h), -np.inf, query.dtype).transpose(0, 2, 1)
    made = _run(query, key, value, attn_mask, kept, dropout_p, is_causal, scale)
    return in_order(made[0], dense_like(query.shape, strides_of(query))), made[1]


def _run(query, key, value, attn_mask, kept, dropout_p, is_causal, scale, *backward, of_mask=None):
    made = blas.attention(
        *map(_rows, (query, key, value)),
        _full(attn_mask, query, key),
        is_causal,
        float(_scale(query, scale)),
        *backward,
        kept=None if kept is None else np.ascontiguousarray(kept),
        boost=_boost(dropout_p),
        of_mask=of_mask,
    )
    if made is None:
        raise NotImplementedError("scaled_dot_product_attention: there is no BLAS library in this process")
    return made


def _mask_meta(mask):
    return TensorMeta(tuple(mask.shape), contiguous_strides(tuple(mask.shape)), mask.dtype, mask.device)


@extern(
    "_streamed_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor? attn_mask, Tensor? kept, Tensor out, "
    "Tensor logsumexp, float dropout_p, bool is_causal, float? scale, bool of_mask) "
    "-> (Tensor grad_query, Tensor grad_key, Tensor grad_value, Tensor grad_mask)",
    meta=lambda grad_out, query, key, value, attn_mask, *rest: (
        *map(_by_place, (query, key, value)),
        _mask_meta(attn_mask) if rest[-1] else None,
    ),
    variants="",
)
def streamed_backward(
    grad_out, query, key, value, attn_mask, kept, out, logsumexp, dropout_p, is_causal, scale, of_mask
):
    """The mask's cotangent, with ``of_mask``, in the mask's shape."""
    if not query.size or not key.size:
        return (*map(_blank, (query, key, value)), np.zeros_like(attn_mask) if of_mask else None)
    backward = (_rows(grad_out), _rows(out), logsumexp)
    shape = attn_mask.shape if of_mask else None
    made = _run(query, key, value, attn_mask, kept, dropout_p, is_causal, scale, *backward, of_mask=shape)
    return made if of_mask else (*made, None)


def _streamed_vjp(ct0, query, key, value, attn_mask, kept, dropout_p, is_causal, scale, result, result1, mask):
    return aten._streamed_attention_backward.default(
        ct0, query, key, value, attn_mask, kept, result, result1, dropout_p, is_causal, scale, mask[3]
    )


def _streamed_second(ct0, ct1, ct2, ct3, grad_out, query, key, value, attn_mask, kept, dropout_p, is_causal, scale):
    *others, of_scores = _second(
        ct0, ct1, ct2, ct3, grad_out, query, key, value, attn_mask, kept, _boost(dropout_p), is_causal, scale
    )
    return (*others, None if attn_mask is None else aten.sum_to_size.default(of_scores, list(attn_mask.shape)))


streamed_attention.derivative((0,), query__key__value__attn_mask=_streamed_vjp)
streamed_backward.derivative(
    grad_out__query__key__value__attn_mask=_streamed_second,
    out=lambda ct0, ct1, ct2, ct3: None,  # as above
    logsumexp=lambda ct0, ct1, ct2, ct3: None,
)


@streamed_attention.override("lower")
def _(lowering, val, query, key, value, attn_mask, kept, dropout_p, is_causal, scale):
    tensors = (query, key, value)
    return lowering.attention(
        val, tensors, attn_mask, is_causal, _scale(query, scale), kept=kept, boost=_boost(dropout_p)
    )


@streamed_backward.override("lower")
def _(
    lowering, val, grad_out, query, key, value, attn_mask, kept, out, logsumexp, dropout_p, is_causal, scale, of_mask
):
    made = lowering.attention(
        val if of_mask else val[:3],
        (query, key, value),
        attn_mask,
        is_causal,
        _scale(query, scale),
        (grad_out, out, logsumexp),
        kept,
        _boost(dropout_p),
    )
    return made if of_mask else [*made, None]


def _folded(call, tensors, masked):
    """Batches of four-dimensional tensors as more of their first dimension; (n, tensors)."""
    whole = [call.all(x, m) for x, m in zip(tensors, masked)]
    n = whole[0].shape[0]
    return n, [aten.reshape.default(x, [n * x.shape[1], *x.shape[2:]]) for x in whole]


def _fold_mask(call, mask, batched, n, query, key):
    if mask is None:
        return None
    b, h, t, s = query.shape[0] // n, query.shape[1], query.shape[2], key.shape[2]
    if not batched:
        return aten.repeat.default(aten.expand.default(mask, [b, h, t, s]), [n, 1, 1, 1])
    mask = call.all(mask, True)
    mask = aten.reshape.default(mask, [n, *[1] * (5 - mask.ndim), *mask.shape[1:]])
    return aten.reshape.default(aten.expand.default(mask, [n, b, h, t, s]), [n * b, h, t, s])


def _unfold(x, n):
    return aten.reshape.default(x, [n, x.shape[0] // n, *x.shape[1:]])


@flash.override("batch")
def _flash_batch(call, query, key, value, dropout_p, is_causal, attn_mask, scale):
    n, (q, k, v) = _folded(call, (query, key, value), call.mask[:3])
    mask = _fold_mask(call, attn_mask, call.mask[5], n, q, k)
    out = aten._scaled_dot_product_flash_attention_for_cpu.default(
        q, k, v, dropout_p, is_causal, attn_mask=mask, scale=scale
    )
    return tuple(_unfold(x, n) for x in out)


@flash_backward.override("batch")
def _flash_backward_batch(call, grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale):
    n, parts = _folded(call, (grad_out, query, key, value, out, logsumexp), call.mask[:6])
    mask = _fold_mask(call, attn_mask, call.mask[8], n, parts[1], parts[2])
    grads = aten._scaled_dot_product_flash_attention_for_cpu_backward.default(
        *parts, dropout_p, is_causal, attn_mask=mask, scale=scale
    )
    return tuple(_unfold(x, n) for x in grads)


def _products(query, key):
    b, h, t, e = query.shape
    return 2 * b * h * t * key.shape[2] * e


flash.override("flops", lambda query, key, *rest: 2 * _products(query, key))
flash_backward.override("flops", lambda grad_out, query, key, *rest: 5 * _products(query, key))
streamed_attention.override("flops", lambda query, key, *rest: 2 * _products(query, key))
streamed_backward.override("flops", lambda grad_out, query, key, *rest: 5 * _products(query, key))


flash.override("sharding", Letters("bh,bh,bh,,,bh..->bh,bh"))
flash_backward.override("sharding", Letters("bh,bh,bh,bh,bh,bh,,,bh..->bh,bh,bh"))
