"""Attention as loops: the scores and the weights are matrices in memory, each row a softmax."""

from __future__ import annotations

import math

from ...base.expr import floordiv
from ..ir.nodes import dense_strides
from .elements import Elements

__all__ = ["attention", "attention_backward"]


def _shared(lead, query, other) -> list:
    """(image, head) of the keys or values that a head of the query reads: several heads may share one."""
    image, head = lead[:2]
    return [image, floordiv(head, floordiv(query.shape[1], other.shape[1]))]


def _scores(lowering, e: Elements, query, key, mask, causal, truths, scale):
    """(shape, function of the coordinates) of scale q k^T + mask."""
    (b, heads, t, width), s = query.shape, key.shape[2]

    def product(c):
        *lead, i, j, k = c
        return e.make("mul", e.at(query, [*lead, i, k]), e.at(key, [*_shared(lead, query, key), j, k]))

    raw = lowering.reduce("add", 0, (b, heads, t, s, width), [0, 1, 2, 3], [4], product)

    def at(c):
        v = e.make("mul", raw(c), scale)
        if mask is not None:
            m = e.at(mask, c)
            v = e.choose(m, v, -math.inf) if truths else e.make("add", v, m)
        if causal:
            v = e.choose(e.compare("le", e.values.index(c[3]), e.values.index(c[2])), v, -math.inf)
        return v

    return (b, heads, t, s), at


def _stored(lowering, shape, out, at):
    """A function of coordinates whose values lie in memory."""
    lazy = lowering.lazy(shape, out.dtype, at, strides=dense_strides(shape), device=out.device)
    region = lowering.realize(lazy)
    e = Elements(lowering)
    return lambda c: e.at(region, c)


def attention(lowering, operands, outs, causal, truths, f64, scale, boost):
    query, key, value, mask, kept = operands
    if kept is not None or any(0 in r.shape for r in (query, key, value)):
        raise NotImplementedError("attention with dropout, or of nothing")
    e, (out, sums) = Elements(lowering), outs
    shape, at = _scores(lowering, e, query, key, mask, causal, truths, scale)
    scores = _stored(lowering, shape, out, at)
    greatest = lowering.reduce("maximum", -math.inf, shape, [0, 1, 2], [3], scores)

    def base(c):
        m = greatest(c)
        return e.choose(e.compare("eq", m, -math.inf), 0.0, m)

    weights = _stored(lowering, shape, out, lambda c: e.make("exp", e.make("sub", scores(c), base(c[:3]))))
    total = lowering.reduce("add", 0, shape, [0, 1, 2], [3], weights)

    def part(c):
        *lead, d, j = c
        return e.make("mul", weights((*lead, j)), e.at(value, [*_shared(lead, query, value), j, d]))

    made = lowering.reduce("add", 0, (*shape[:3], value.shape[3], shape[3]), [0, 1, 2, 3], [4], part)

    def result(c):
        n = total(c[:3])
        return e.choose(e.compare("eq", n, 0.0), 0.0, e.make("div", made(c), n))

    def logarithm(c):
        return e.make("add", base(c), e.make("log", total(c)))

    return [e.result(out, result), e.result(sums, lambda c: logarithm(tuple(c[:3])))]


def attention_backward(lowering, operands, outs, causal, truths, f64, scale, boost):
    query, key, value, mask, kept, cotangent, out, sums = operands
    if kept is not None or any(0 in r.shape for r in (query, key, value)):
        raise NotImplementedError("attention with dropout, or of nothing")
    e, width = Elements(lowering), value.shape[3]
    shape, at = _scores(lowering, e, query, key, mask, causal, truths, scale)

    def weight(c):
        s = e.at(sums, c[:3])
        none = e.compare("eq", s, -math.inf)
        return e.choose(none, 0.0, e.make("exp", e.make("sub", at(c), e.choose(none, 0.0, s))))

    weights = _stored(lowering, shape, outs[0], weight)
    rows = (*shape[:3], width)
    own = lowering.reduce("add", 0, rows, [0, 1, 2], [3], lambda c: e.make("mul", e.at(cotangent, c), e.at(out, c)))

    def change(c):
        *lead, i, j, d = c
        return e.make("mul", e.at(cotangent, [*lead, i, d]), e.at(value, [*_shared(lead, query, value), j, d]))

    d_weights = lowering.reduce("add", 0, (*shape, width), [0, 1, 2, 3], [4], change)
    d_scores = _stored(
        lowering, shape, outs[0], lambda c: e.make("mul", weights(c), e.make("sub", d_weights(c), own(c[:3])))
    )

    def by_columns(made, region, which):
        """Over the rows of a matrix of weights, and the heads that share the result, times the operand's."""
        image, heads, n, d = made.shape
        many = floordiv(shape[1], heads)

        def part(c):
            image, head, j, d, other, i = c
            lead = (image, head * many + other)
            return e.make("mul", which((*lead, i, j)), e.at(region, [*lead, i, d]))

        return lowering.reduce("add", 0, (image, heads, n, d, many, shape[2]), [0, 1, 2, 3], [4, 5], part)

    def row(c):
        *lead, i, d, j = c
        return e.make("mul", d_scores((*lead, i, j)), e.at(key, [*_shared(lead, query, key), j, d]))

    d_query = lowering.reduce("add", 0, (*shape[:3], query.shape[3], shape[3]), [0, 1, 2, 3], [4], row)
    d_key, d_value = by_columns(key, query, d_scores), by_columns(value, cotangent, weights)
    results = [
        e.result(outs[0], lambda c: e.make("mul", d_query(c), scale)),
        e.result(outs[1], lambda c: e.make("mul", d_key(c), scale)),
        e.result(outs[2], d_value),
    ]
    if len(outs) > 3 and outs[3] is not None:
        results.append(_of_mask(e, outs[3], shape, d_scores))
    return results


def _of_mask(e: Elements, out, shape, d_scores):
    """The cotangent of a mask: sums over the dimensions that it was spread over."""
    own = (*[1] * (4 - len(out.shape)), *out.shape)
    spread = [d for d in range(4) if own[d] != shape[d]]
    kept = [d for d in range(4) if d not in spread]
    total = e.lowering.reduce("add", 0, shape, kept, spread, d_scores) if spread else d_scores

    def at(c):
        whole = (*[0] * (4 - len(out.shape)), *c)
        return total(tuple(whole[d] for d in kept))

    return e.result(out, at)
