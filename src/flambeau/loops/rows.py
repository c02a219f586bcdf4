"""Reductions that keep the last dimension, row by row: memory is read in order, and whole rows are combined."""

from __future__ import annotations

from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand, integer
from .arrays import address, count, temporary
from .emitter import I64, Emitter, constant
from .numbers import comparisons
from .numbers.conversions import cast
from .values import ArrayView, Expression, Scalar, Size, known, memory_type

__all__ = ["better", "by_rows", "divided", "joined", "places_by_rows"]

SHORT = 16  # elements of a row that stays in registers, where their number is known


def joined(ndim: int, outer: dict, over, inner) -> tuple[Size, ...]:
    """Indices of an element, of which ``over`` have the values ``inner``."""
    at = dict(zip(over, inner))
    return tuple(at[d] if d in at else outer[d] for d in range(ndim))


def by_rows(combine, dtype_of, start=None, finish=None):
    """A reduction that keeps the last dimension: whole rows are combined, so that memory is read in order. ``combine(e, dtype, a, b)``;
    ``start(dtype)``: the number to begin with, else the first row; ``finish(e, out, count)``."""

    def run(e: Emitter, x: Expression, over, kept, place: str) -> ArrayView:
        dtype = dtype_of(x.dtype)
        out = temporary(e, dtype, tuple(x.sizes[d] for d in kept), place)
        many = count(e, [x.sizes[d] for d in over])

        def element(inner, outer) -> Scalar:
            return cast(e, x.element(joined(x.ndim, dict(zip(kept, outer)), over, inner)), dtype)

        def first(outer) -> Operand:
            return element(tuple(0 for _ in over), outer).v if start is None else constant(dtype.type(start)).v

        def short_rows():
            """Each row by itself, in registers meanwhile."""
            *lead, n = out.sizes
            row = e.slot(e.unique("row"), llvm.aggregate(f"[{n} x {memory_type(dtype).text}]"))
            for outer in e.loop(lead, parallel=True):
                for at in e.loop((n,)):
                    e.write(first((*outer, *at)), e.place(memory_type(dtype), row, *at))
                for inner in e.loop([x.sizes[d] for d in over]):
                    for at in e.loop((n,)):
                        p = e.place(memory_type(dtype), row, *at)
                        v = element(inner, (*outer, *at)).v
                        e.write(combine(e, dtype, e.read(memory_type(dtype), p), v), p)
                for at in e.loop((n,)):
                    v = e.read(memory_type(dtype), e.place(memory_type(dtype), row, *at))
                    e.store(address(e, out, (*outer, *at)), dtype, v)

        def long_rows():
            for outer in e.loop(out.sizes, parallel=True):
                e.store(address(e, out, outer), dtype, first(outer))
            for inner in e.loop([x.sizes[d] for d in over]):
                for outer in e.loop(out.sizes, parallel=True, pieces=False):
                    p = address(e, out, outer)
                    e.store(p, dtype, combine(e, dtype, e.load(p, dtype), element(inner, outer).v))

        def write():
            n = known(out.sizes[-1])
            if n is not None and 0 < n <= SHORT and dtype.kind in "iuf":
                short_rows()
            else:
                long_rows()
            if finish is not None:
                finish(e, out, many)

        if start is None:
            some = e.op("or", e.cmp("ne", many, 0), e.cmp("eq", count(e, out.sizes), 0))
            e.check(some, "ValueError", "zero-size array to reduction operation which has no identity")
        e.versions(x.pairs, write)
        return out

    return run


def divided(e: Emitter, out: ArrayView, many: Size) -> None:
    n = cast(e, Scalar(I64, False, integer(many)), out.dtype).v
    for outer in e.loop(out.sizes, parallel=True):
        p = address(e, out, outer)
        e.store(p, out.dtype, e.op("fdiv", e.load(p, out.dtype), n))


def places_by_rows(greater: bool):
    def run(e: Emitter, x: Expression, over, kept, place: str) -> ArrayView:
        sizes = tuple(x.sizes[d] for d in kept)
        best, out = temporary(e, x.dtype, sizes, f"{place} best"), temporary(e, I64, sizes, place)
        (axis,) = over
        some = e.cmp("ne", x.sizes[axis], 0)
        name = "argmax" if greater else "argmin"
        e.check(some, "ValueError", f"attempt to get {name} of an empty sequence")

        def element(inner, outer) -> Scalar:
            return x.element(joined(x.ndim, dict(zip(kept, outer)), over, inner))

        def write():
            for outer in e.loop(sizes, parallel=True):
                e.store(address(e, best, outer), x.dtype, element((0,), outer).v)
                e.store(address(e, out, outer), I64, integer(0))
            for inner in e.loop((x.sizes[axis],)):
                for outer in e.loop(sizes, parallel=True, pieces=False):
                    p, q = address(e, best, outer), address(e, out, outer)
                    old, v = e.load(p, x.dtype), element(inner, outer)
                    wins = better(e, greater, v, old)
                    e.store(p, x.dtype, e.select(wins, v.v, old))
                    e.store(q, I64, e.select(wins, inner[0], e.load(q, I64)))

        e.versions(x.pairs, write)
        return out

    return run


def better(e: Emitter, greater: bool, v: Scalar, old: Operand) -> Operand:
    """Whether an element takes the place of the best one so far."""
    better = comparisons.compare(e, ">" if greater else "<", v, Scalar(v.dtype, False, old)).v
    if v.dtype.kind != "f":
        return better
    number, nan = e.cmp("ord", old, old), e.cmp("uno", v.v, v.v)
    return e.op("and", number, e.op("or", better, nan))
