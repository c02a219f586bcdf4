"""Launches that don't depend on one another, side by side: each is too small to be split over the threads, so one thread makes it while the
others make its neighbours.

What members of a batch make lives at the same time, which may take a larger arena. If that is more than a little, the memory plan stays the one of
the launches in turn, and its reuse of places counts as a dependence like any other. What is small, and what goes together, follows from sizes only
and not from the number of threads; each launch computes what it would alone, so no bit changes.
"""

from __future__ import annotations

import math

from ...base.expr import Expr
from ..assembly.dtypes import itemsize
from ..ir.nodes import ExternCall
from ..ir.values import loaded_atoms, walk
from . import memory
from .chains import MOST_ARGS
from .effects import NamedMemory, effects
from .tables import Table

__all__ = ["arrange", "side_by_side"]

WINDOW = 64  # launches that one may overtake
MOST = 16  # of a batch
MORE = 1 << 18  # bytes that the arena may grow by for the sake of batches
WORTH = 4.0  # microseconds that a batch must save with threads enough: what it costs to call them
SMALL_PRODUCT = 2e6  # operations from which gemm.c cuts a product,
SMALL_MATRIX = 1 << 17  # elements from which gemv.c cuts a matrix
SPLIT, START, RATE = 4e4, 2.0, 2.5e3  # of a native kernel that doesn't declare them (csrc/runtime/kernels.def)


def _alone(step) -> float | None:
    """Microseconds, about, of a launch that one thread makes; None for one that is split, or must stay where it is."""
    if getattr(step, "steps", None) is not None:
        return None
    if not isinstance(step, ExternCall):
        if type(step.total) is Expr or step.params or len(step.args) > MOST_ARGS:
            return None
        return step.cost if step.total < 2 * step.grain else None
    if step.effect or step.what not in ("gemm", "native"):
        return None
    if step.what == "native":
        kernel, flops = step.data.kernel, step.data.flops
        if type(flops) is Expr or flops >= (kernel.split or SPLIT):
            return None
        return (kernel.start or START) + flops / (kernel.rate or RATE)
    g = step.data
    flops = g.flops()
    if type(flops) is Expr or g.choice:
        return None
    vector = 1 in (g.m, g.n) and math.prod(b[0] for b in g.batch) == 1
    small = max(g.m, g.n) * g.k < SMALL_MATRIX if vector else flops < SMALL_PRODUCT
    return flops / 3e4 if small else None


class _Memory(NamedMemory):
    """Buffers as sets of bits, with a bit for each piece of the arena between two ends of buffers that lie there."""

    def __init__(self, buffers, offsets: dict[str, int], inplace: dict[str, str]):
        super().__init__(inplace)
        size = {n: buffers[n].size * buffers[n].width * itemsize(buffers[n].dtype) for n in offsets}
        ends = sorted({e for n, at in offsets.items() for e in (at, at + size[n])})
        place = {e: i for i, e in enumerate(ends)}
        self.bits = {n: (1 << place[at + size[n]]) - (1 << place[at]) for n, at in offsets.items()}
        self.used = len(ends)


def _may_fail(step, known: dict[str, bool]) -> bool:
    """Whether it may report more than a lack of memory. ``known``: of kernels by name."""
    if isinstance(step, Table):
        return False
    if getattr(step, "steps", None) is not None:
        return any(_may_fail(s, known) for s in step.steps)
    if isinstance(step, ExternCall):
        return step.what == "native" and not step.data.kernel.quiet
    if step.name not in known:
        values = (v for n in step.nodes for v in walk(n.value, *loaded_atoms(n.index)))
        known[step.name] = any(v.op == "checked" for v in values)
    return known[step.name]


def arrange(steps: list, buffers: dict, inplace: dict[str, str], hint, wanted: bool = True):
    """(``steps`` in their order, batches as :func:`side_by_side` has them, and memory.plan's offsets, size of the arena and notes). Without batches
    unless ``wanted``."""
    plan = memory.plan(buffers, [effects(s) for s in steps], hint)
    order, together = side_by_side(steps, buffers, {}, inplace) if wanted else (steps, [])
    if together:
        parts, done = [], 0
        for begin, count in together:
            parts += [[s] for s in order[done:begin]]
            done = begin + count
            parts.append(order[begin:done])
        parts += [[s] for s in order[done:]]
        other = memory.plan(buffers, [tuple(set().union(*e) for e in zip(*map(effects, p))) for p in parts], hint)
        if type(other[1]) is not Expr and type(plan[1]) is not Expr and other[1] <= plan[1] + MORE:
            plan = other
        else:
            order, together = side_by_side(steps, buffers, plan[0], inplace)
    return order, together, *plan


def side_by_side(
    steps: list, buffers: dict, offsets: dict, inplace: dict[str, str]
) -> tuple[list, list[tuple[int, int]]]:
    """(``steps`` in an order in which batches are in one piece, (begin, count) of each batch). ``offsets``: of the buffers in the arena.
    ``inplace``: output buffer -> the input whose memory it takes. Nothing changes where offsets are symbolic."""
    cost = list(map(_alone, steps))
    if sum(c is not None for c in cost) < 2 or any(type(at) is Expr for at in offsets.values()):
        return steps, []
    bits = _Memory(buffers, offsets, inplace)
    failing = bits.bit("what is reported")  # the first of two launches that fail stays the first
    reads, writes = [], []
    known: dict[str, bool] = {}
    for s in steps:
        r, w = effects(s)
        reads.append(bits.of(r))
        writes.append(bits.of(w) | (failing if _may_fail(s, known) else 0))
    fixed = [isinstance(s, ExternCall) and (s.effect or s.what not in ("gemm", "native")) for s in steps]
    out: list = []
    batches = []
    gone = [False] * len(steps)
    for i in range(len(steps)):
        if gone[i]:
            continue
        members = [i]
        if cost[i] is not None:
            r, w = reads[i], writes[i]  # of what a later launch would run beside or overtake
            for j in range(i + 1, min(i + 1 + WINDOW, len(steps))):
                if fixed[j] or len(members) == MOST:
                    break
                if gone[j]:
                    continue
                if cost[j] is not None and not (writes[j] & (r | w) or reads[j] & w):
                    members.append(j)
                r |= reads[j]
                w |= writes[j]
            saved = sum(cost[k] for k in members) - max(cost[k] for k in members)
            if len(members) > 1 and saved >= WORTH:
                batches.append((len(out), len(members)))
                members.sort(key=lambda k: -cost[k])  # the longest first
            else:
                members = [i]
        for k in members:
            gone[k] = True
            out.append(steps[k])
    return out, batches
