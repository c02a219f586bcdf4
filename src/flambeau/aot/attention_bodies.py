"""Attention of one block of queries and one block of keys: the bodies of the loops in ``attention_loops.py``.

Rows go by maxima and sums so far (online softmax); the backward makes the scores again, and their weights from the logarithm of the sums.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import autograd as _autograd
from ..core.operator import namespace

__all__ = ["NOTHING", "backward_body", "down", "finite", "forward_body"]

aten = namespace("aten")
NOTHING = float("-inf")


def scores_of(change: Callable, query, key, places, others):
    """The scores (1, H, ROWS, KEYS) of a pair of blocks; -inf for keys behind the last one."""
    *at, valid = places
    made = aten.matmul.default(query, aten.transpose.int(key, -2, -1))
    (made,) = change(made, *at, *others)
    return aten.where.ScalarOther(valid, made, NOTHING)


def for_heads(x, like):
    """Keys or values (1, heads, ...), each head as often as queries share it."""
    times = like._shape[1] // x._shape[1]
    if type(times) is int and times == 1:
        return x
    _, heads, rows, width = x._shape
    wide = aten.expand.default(aten.unsqueeze.default(x, 2), [1, heads, times, rows, width])
    return aten.reshape.default(wide, [1, heads * times, rows, width])


def finite(x):
    """Logarithms with 0 for -inf: rows that see nothing."""
    return aten.masked_fill.Scalar(x, aten.eq.Scalar(x, NOTHING), 0.0)


def down(x):
    return aten.unsqueeze.default(x, -1)


def forward_body(change: Callable) -> Callable:
    """Takes rows past a block: their sums of values, largest scores and sums of exponentials, so far, become those with the block."""

    def body(query, key, value, b, h, i, j, valid, acc, top, total, *others):
        key, value = for_heads(key, query), for_heads(value, query)
        scores = scores_of(change, query, key, (b, h, i, j, valid), others)
        new = aten.maximum.default(top, aten.amax.default(scores, [-1]))
        base = finite(new)
        weights = aten.exp.default(aten.sub.Tensor(scores, down(base)))
        kept = aten.exp.default(aten.sub.Tensor(top, base))
        added = aten.matmul.default(weights, value)
        acc = aten.add.Tensor(aten.mul.Tensor(acc, down(kept)), added)
        total = aten.add.Tensor(aten.mul.Tensor(total, kept), aten.sum.dim_IntList(weights, [-1]))
        return acc, new, total

    return body


def backward_body(change: Callable, wanted: tuple[int, ...]) -> Callable:
    """The block's part of the gradients of its queries, keys and values, and of the others number ``wanted``."""

    def body(query, key, value, b, h, i, j, valid, lse, delta, g, *others):
        with _autograd.enable_grad():
            query, key = (aten.detach.default(x).requires_grad_() for x in (query, key))
            others = [aten.detach.default(x).requires_grad_() if k in wanted else x for k, x in enumerate(others)]
            scores = scores_of(change, query, for_heads(key, query), (b, h, i, j, valid), others)
        weights = aten.exp.default(aten.sub.Tensor(aten.detach.default(scores), down(lse)))
        wide = for_heads(value, query)
        g_value = aten.matmul.default(aten.transpose.int(weights, -2, -1), g)
        if wide is not value:
            _, heads, rows, width = value._shape
            g_value = aten.sum.dim_IntList(aten.reshape.default(g_value, [1, heads, -1, rows, width]), [2])
        g_weights = aten.matmul.default(g, aten.transpose.int(wide, -2, -1))
        g_scores = aten.mul.Tensor(weights, aten.sub.Tensor(g_weights, down(delta)))
        asked = [query, key, *(others[k] for k in wanted)]
        found = [None] * len(asked)
        if scores.requires_grad:
            found = _autograd.grad([scores], asked, [g_scores], allow_unused=True)
        found = [aten.zeros_like.default(x) if g is None else g for g, x in zip(found, asked)]
        return found[0], found[1], g_value, *found[2:]

    return body
