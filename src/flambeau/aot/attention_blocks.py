"""Attention with the user's functions, block by block, as an operator of the graph: no matrix of scores is ever whole in memory.

``attend_by_blocks`` is what capture records: its body changes the scores of any pairs. Traced further it becomes loops over blocks
(``attention_loops.py``), forward and backward. A gradient that is differentiated again is that of whole matrices.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import _C
from .. import autograd as _autograd
from ..autograd.function import Function
from ..base.memory_format import contiguous_format
from ..core.higher_order import HigherOrderOperator
from ..core.operator import namespace
from ..fake import FakeTensorMode
from ..proxy import ProxyTorchDispatchMode
from .attention_bodies import NOTHING, backward_body, down, finite, forward_body
from .attention_loops import KEYS, ROWS, block_backward, block_forward, example
from .control_flow import differentiable, is_tensor

__all__ = ["KEYS", "ROWS", "attend", "attend_by_blocks", "example"]

aten = namespace("aten")
attend_by_blocks = HigherOrderOperator("attend_by_blocks")


def attend(whole: Callable, change: Callable, seen: Callable | None, query, key, value, learns: bool):
    """``whole()``: (result, logarithms of the sums). Capture may go by blocks instead, with ``change(scores, b, h, i, j)`` for the scores of a pair
    and ``seen()``, which pairs some row sees, boolean (B or 1, H or 1, blocks of rows, blocks of keys). ``learns``: ``change`` may read tensors
    that want a gradient."""
    return whole()


# -- the whole, of blocks --


def blocks(x, size: int):
    """(B, H, L, E) as (B times blocks, 1, H, size, E), dense, behind the last row zeros."""
    b, h, rows, *rest = x._shape
    count = -(-rows // size)
    flat = [0, 0] * len(rest) + [0, count * size - rows]
    x = aten.reshape.default(aten.constant_pad_nd.default(x, flat), [b, h, count, size, *rest])
    x = aten.clone.default(aten.transpose.int(x, 1, 2), memory_format=contiguous_format)
    return aten.reshape.default(x, [b * count, 1, h, size, *rest])


def whole(x, like, heads):
    """The inverse of :func:`blocks`, for rows as ``like`` (B, H, L, ...) has them."""
    b, rows = like._shape[0], like._shape[2]
    _, _, _, size, *rest = x._shape
    count = -(-rows // size)
    x = aten.transpose.int(aten.reshape.default(x, [b, count, heads, size, *rest]), 1, 2)
    x = aten.reshape.default(x, [b, heads, count * size, *rest])
    return aten.slice.Tensor(x, 2, 0, rows)


def operands_of(query, key, value):
    return blocks(query, ROWS), blocks(key, KEYS), blocks(value, KEYS)


def computed(change, query, key, value, seen, others):
    """(result (B, H, L, E), logarithm of the sum of exponentials (B, H, L))."""
    heads, lengths = query._shape[1], (query._shape[0], query._shape[2], key._shape[2])
    acc, top, total = block_forward(forward_body(change), *operands_of(query, key, value), seen, lengths, tuple(others))
    out = aten.masked_fill.Scalar(aten.div.Tensor(acc, down(total)), down(aten.eq.Scalar(top, NOTHING)), 0.0)
    lse = aten.add.Tensor(finite(top), aten.log.default(total))
    return whole(out, query, heads), whole(lse, query, heads)


class BlockAttention(Function):
    @staticmethod
    def forward(ctx, change, query, key, value, seen, *others):
        out, lse = attend_by_blocks(change, query, key, value, seen, others)
        ctx.change, ctx.seen = change, seen is not None
        ctx.numbers = [None if is_tensor(x) else x for x in others]
        tensors = [x for x in others if is_tensor(x)]
        ctx.save_for_backward(query, key, value, out, lse, *(() if seen is None else (seen,)), *tensors)
        return out, lse

    @staticmethod
    def backward(ctx, g_out, g_lse):
        query, key, value, out, lse, *tensors = ctx.saved_tensors
        seen = tensors.pop(0) if ctx.seen else None
        left = iter(tensors)
        others = [next(left) if n is None else n for n in ctx.numbers]
        wanted = tuple(k for k, x in enumerate(others) if ctx.needs_input_grad[5 + k] and differentiable(x))
        grads: list = [None] * len(others)
        if _C.tls("grad_enabled"):  # these gradients are differentiated again
            q, k, v, *more = on_whole_matrices(ctx.change, query, key, value, others, wanted, (g_out, g_lse))
        else:
            delta = aten.sum.dim_IntList(aten.mul.Tensor(g_out, out), [-1])
            if g_lse is not None:  # a row that sees nothing has no gradient
                delta = aten.sub.Tensor(delta, aten.masked_fill.Scalar(g_lse, aten.eq.Scalar(lse, NOTHING), 0.0))
            rows = [blocks(x, ROWS) for x in (finite(lse), delta, g_out)]
            lengths = (query._shape[0], query._shape[2], key._shape[2])
            body = backward_body(ctx.change, wanted)
            q, k, v, *more = block_backward(
                body, *operands_of(query, key, value), *rows, seen, lengths, tuple(others), wanted
            )
            q, k, v = (whole(g, x, x._shape[1]) for g, x in ((q, query), (k, key), (v, value)))
        for n, x in zip(wanted, more):
            grads[n] = x
        return (None, q, k, v, None, *grads)


def on_whole_matrices(change, query, key, value, others, wanted, cotangents) -> list:
    """The gradients as functions that can be differentiated."""
    outs = attend_by_blocks.rules["eager"](attend_by_blocks, change, query, key, value, None, tuple(others))
    pairs = [(x, g) for x, g in zip(outs, cotangents) if g is not None]
    asked = [query, key, value, *(others[n] for n in wanted)]
    needed = [x for x in asked if x.requires_grad]
    results, given = zip(*pairs)
    found = iter(_autograd.grad(results, needed, given, create_graph=True, allow_unused=True))
    return [next(found) if x.requires_grad else None for x in asked]


@attend_by_blocks.rule("autograd")
def _(op, change, query, key, value, seen, others):
    return BlockAttention.apply(change, query, key, value, seen, *others)


@attend_by_blocks.rule(FakeTensorMode)
def _(op, mode, change, query, key, value, seen, others):
    shape = list(query._shape[:3])
    with mode:
        return aten.new_empty.default(query, [*shape, value._shape[3]]), aten.new_empty.default(query, shape)


@attend_by_blocks.rule(ProxyTorchDispatchMode)
def _(op, mode, change, query, key, value, seen, others):
    with mode:
        return computed(change, query, key, value, seen, others)


@attend_by_blocks.rule("eager")
@attend_by_blocks.rule("vmap")
def _(op, change, query, key, value, seen, others):
    """On whole matrices."""
    b, h, rows, _ = query.shape
    sizes = (b, h, rows, key.shape[2])
    at = [
        aten.reshape.default(aten.arange.default(n), [n if d == k else 1 for k in range(4)])
        for d, n in enumerate(sizes)
    ]
    key, value = (aten.repeat_interleave.self_int(x, h // x.shape[1], 1) for x in (key, value))
    scores = aten.matmul.default(query, aten.transpose.int(key, -2, -1))
    (scores,) = change(scores, *at, *others)
    nothing = aten.eq.Scalar(aten.amax.default(scores, [-1]), NOTHING)
    lse = aten.logsumexp.default(aten.masked_fill.Scalar(scores, down(nothing), 0.0), [-1])
    out = aten.matmul.default(aten._safe_softmax.default(scores, -1), value)
    return out, aten.masked_fill.Scalar(lse, nothing, NOTHING)
