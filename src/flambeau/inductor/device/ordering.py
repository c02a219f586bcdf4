"""Sorting, selecting and searching as loops: the rank of an element is how many come before it."""

from __future__ import annotations

from ...base.kernels import Order
from ..ir.nodes import Region
from .elements import Elements

__all__ = ["order", "search"]


def order(lowering, operands, outs, dim, part, k, descending, sorted, element):
    """The rank of an element is how many come before it; a place of the result looks for the element of its rank."""
    (source,) = operands
    e, n, ndim = Elements(lowering), source.shape[dim], len(source.shape)
    if 0 in source.shape or 0 in outs[0].shape:
        return [lowering.full(o.shape, o.dtype, 0, o.device) for o in outs]

    def line(c, i):
        return e.ordered(e.at(source, [*c[:dim], i, *c[dim + 1 :]]))

    def before(c):
        *own, j = c
        a, b = line(own, j), line(own, own[dim])
        first, second = (e.less(a, b), e.less(b, a)) if not descending else (e.less(b, a), e.less(a, b))
        earlier = e.compare("lt", e.values.index(j), e.values.index(own[dim]))
        return e.values.cast(e.either(first, e.both(e.flip(second), earlier)), "i64")

    shape = (*source.shape, n)
    ranks = lowering.reduce("add", 0, shape, list(range(ndim)), [ndim], before)
    wanted = _wanted(lowering, e, source, dim, Order(part), k, line)

    def found(c):
        *own, j = c
        same = e.compare("eq", ranks((*own[:dim], j, *own[dim + 1 :])), wanted(own))
        return e.choose(same, e.values.index(j), 0)

    made = (*outs[0].shape, n)
    place = lowering.reduce("maximum", 0, made, list(range(ndim)), [ndim], found)
    values = e.result(outs[0], lambda c: e.at(source, [*c[:dim], place(c), *c[dim + 1 :]]))
    return [values, e.result(outs[1], place)]


def _wanted(lowering, e: Elements, source: Region, dim: int, part: Order, k, line):
    """The rank that a place of the result looks for."""
    if part in (Order.WHOLE, Order.FIRST):
        return lambda c: e.values.index(c[dim])
    if part == Order.RANK:
        return lambda c: e.values.index(k)
    n = source.shape[dim]

    def is_nan(c):
        nan = e.is_nan(line(list(c), c[dim]))
        return e.values.const(0, "i64") if nan is None else e.values.cast(nan, "i64")

    count = lowering.reduce("add", 0, source.shape, [d for d in range(len(source.shape)) if d != dim], [dim], is_nan)

    def rank(c):
        nans = count(tuple(x for d, x in enumerate(c) if d != dim))
        some = e.compare("gt", nans, 0)
        numbers = e.make("sub", e.values.index(n), nans)
        middle = e.make("floordiv", e.make("maximum", e.make("sub", numbers, 1), 0), 2)
        return middle if part == Order.NANMEDIAN else e.choose(some, numbers, middle)

    return rank


def search(lowering, operands, outs, right, narrow, element):
    (sequence, given), (out,) = operands, outs
    e, n = Elements(lowering), sequence.shape[-1]
    if 0 in out.shape or 0 in sequence.shape:
        return [lowering.full(out.shape, out.dtype, 0, out.device)]
    alone = len(sequence.shape) == 1

    def before(c):
        *own, j = c
        a, b = e.at(sequence, [j] if alone else [*own[:-1], j]), e.at(given, own)
        return e.values.cast(e.flip(e.less(b, a)) if right else e.less(a, b), "i64")

    ndim = len(given.shape)
    count = lowering.reduce("add", 0, (*given.shape, n), list(range(ndim)), [ndim], before)
    return [e.result(out, count)]
