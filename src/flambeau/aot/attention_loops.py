"""Attention as loops over blocks of queries and keys: ``block_forward`` and ``block_backward``, operators whose body is compiled once, for blocks of
a fixed size. Operands lie in blocks (B times blocks, 1, H, rows, E). Pairs of blocks that the mask hides from all heads are left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _C
from ..base.dtypes import bool_, int64
from ..base.expr import of, symbols
from ..base.symint import SymInt
from ..core.higher_order import HigherOrderOperator
from ..core.operator import namespace
from ..fake import FakeTensorMode
from ..proxy import ProxyTorchDispatchMode
from .attention_bodies import NOTHING
from .control_flow import recorded

__all__ = ["KEYS", "ROWS", "block_backward", "block_forward", "example"]

aten = namespace("aten")
block_forward = HigherOrderOperator("block_forward")
block_backward = HigherOrderOperator("block_backward")

# Of queries and of keys in a block. Fewer of either are packed more often for the same products, more are computed in vain where a mask ends.
ROWS, KEYS = 256, 256


def _array(x) -> np.ndarray:
    return x._array


def _places(heads: int, lengths: tuple[int, int, int]) -> tuple[list, Any, list, list]:
    """Indices as bodies get them: of images; of heads; of each block of rows; of each block of keys, with which of them there are."""
    b, rows, keys = lengths
    images = [np.full((1, 1, 1, 1), i) for i in range(b)]
    down = [np.minimum(np.arange(n, n + ROWS), rows - 1).reshape(1, 1, -1, 1) for n in range(0, rows, ROWS)]
    across = [np.arange(n, n + KEYS) for n in range(0, keys, KEYS)]
    pairs = [[np.minimum(x, keys - 1).reshape(1, 1, 1, -1), (x < keys).reshape(1, 1, 1, -1)] for x in across]
    made = _C.from_array
    return (
        list(map(made, images)),
        made(np.arange(heads).reshape(1, -1, 1, 1)),
        list(map(made, down)),
        [tuple(map(made, pair)) for pair in pairs],
    )


def _pairs(seen, lengths: tuple[int, int, int]) -> Iterator[tuple[int, int, list[int]]]:
    """(image, block of rows, blocks of keys that some of its heads see)."""
    b, down, across = lengths[0], -(-lengths[1] // ROWS), -(-lengths[2] // KEYS)
    table = None if seen is None else _array(seen).any(1)
    for i in range(b):
        for n in range(down):
            found = range(across) if table is None else np.flatnonzero(table[i if len(table) > 1 else 0, n]).tolist()
            yield i, n, found


def _tensors(x) -> list:
    """The blocks along the first dimension."""
    return list(map(_C.from_array, _array(x)))


@block_forward.rule("eager")
def _(op, body, query, key, value, seen, lengths, others):
    q, k, v = map(_tensors, (query, key, value))
    shape, kind = _array(query).shape, _array(query).dtype
    down, across = -(-lengths[1] // ROWS), -(-lengths[2] // KEYS)
    out = np.empty((*shape[:4], _array(value).shape[4]), kind)
    tops, totals = (np.empty(shape[:4], kind) for _ in range(2))
    images, heads, rows, keys = _places(shape[2], lengths)
    first = [_C.from_array(np.full(a.shape[1:], x, kind)) for a, x in ((out, 0), (tops, NOTHING), (totals, 0))]
    for b, n, found in _pairs(seen, lengths):
        at, state = b * down + n, first
        for c in found:
            place = b * across + c
            state = body(q[at], k[place], v[place], images[b], heads, rows[n], *keys[c], *state, *others)
        for a, x in zip((out, tops, totals), state):
            a[at] = _array(x)
    return tuple(map(_C.from_array, (out, tops, totals)))


@block_backward.rule("eager")
def _(op, body, query, key, value, lse, delta, g, seen, lengths, others, wanted):
    given = [_tensors(x) for x in (query, key, value, lse, delta, g)]
    q, k, v, *rest = given
    down, across = -(-lengths[1] // ROWS), -(-lengths[2] // KEYS)
    sums = [np.zeros_like(_array(x)) for x in (query, key, value, *(others[n] for n in wanted))]
    images, heads, rows, keys = _places(_array(query).shape[2], lengths)
    for b, n, found in _pairs(seen, lengths):
        at = b * down + n
        for c in found:
            place = b * across + c
            made = body(q[at], k[place], v[place], images[b], heads, rows[n], *keys[c], *(x[at] for x in rest), *others)
            targets = (sums[0][at], sums[1][place], sums[2][place], *sums[3:])
            for to, x in zip(targets, made):
                np.add(to, _array(x), out=to)
    return tuple(map(_C.from_array, sums))


# -- shapes and graphs --


@block_forward.rule(FakeTensorMode)
def _(op, mode, body, query, key, value, seen, lengths, others):
    shape = list(query._shape[:4])
    with mode:
        return tuple(aten.new_empty.default(query, n) for n in ([*shape, value._shape[4]], shape, shape))


@block_backward.rule(FakeTensorMode)
def _(op, mode, body, query, key, value, lse, delta, g, seen, lengths, others, wanted):
    with mode:
        return tuple(
            aten.new_empty.default(x, list(x._shape)) for x in (query, key, value, *(others[n] for n in wanted))
        )


def example(query) -> list:
    """Scores of a pair of blocks, and their indices."""
    h = query._shape[1]
    sizes = ([1, 1, 1, 1], [1, h, 1, 1], [1, 1, ROWS, 1], [1, 1, 1, KEYS])
    scores = aten.new_empty.default(query, [1, h, ROWS, KEYS])
    return [scores, *(aten.new_empty.default(query, n, dtype=int64) for n in sizes)]


def _one(mode, x):
    """A block like those of ``x``."""
    with mode.fake_mode:
        return aten.new_empty.default(x, list(x._shape[1:]))


def _examples(mode, query, key, value) -> list:
    with mode.fake_mode:
        _, *at = example(aten.select.int(query, 0, 0))
        valid = aten.new_empty.default(query, [1, 1, 1, KEYS], dtype=bool_)
    return [*(_one(mode, x) for x in (query, key, value)), *at, valid]


def _alone(mode, x):
    """A size that is computed from others, as a number of its own: a body has no other way to know it."""
    if type(x) is SymInt and x.expr not in map(of, symbols(x.expr)):
        return mode.fake_mode.shape_env.create_unbacked_symint(hint=x.hint)
    return x


@block_forward.rule(ProxyTorchDispatchMode)
def _(op, mode, body, query, key, value, seen, lengths, others):
    out = tuple(op(body, query, key, value, seen, lengths, others))
    operands = [*_examples(mode, query, key, value), *(_one(mode, x) for x in out), *(_alone(mode, x) for x in others)]
    return recorded(
        mode, op, [(body, operands)], lambda g, lifted: (*g, query, key, value, seen, lengths, (*others, *lifted)), out
    )


@block_backward.rule(ProxyTorchDispatchMode)
def _(op, mode, body, query, key, value, lse, delta, g, seen, lengths, others, wanted):
    out = tuple(op(body, query, key, value, lse, delta, g, seen, lengths, others, wanted))
    operands = [
        *_examples(mode, query, key, value),
        *(_one(mode, x) for x in (lse, delta, g)),
        *(_alone(mode, x) for x in others),
    ]
    return recorded(
        mode, op, [(body, operands)],
        lambda graphs, lifted: (*graphs, query, key, value, lse, delta, g, seen, lengths, (*others, *lifted), wanted), out,
    )  # fmt: skip
