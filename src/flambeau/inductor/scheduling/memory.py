"""Where intermediate buffers lie.

Small ones lie in the arena of a graph, which is there during a whole call: two share memory when their lifetimes don't overlap. Large ones have
memory of their own (kind "own"), taken from the allocator before the first launch that touches them and given back after the last: so those of a
backward lie where saved values were."""

from __future__ import annotations

import bisect
import heapq

from ...base.expr import Expr, at_least, floordiv
from ..assembly.dtypes import itemsize
from ..ir.nodes import Buffer, BufferKind
from ..settings import config
from .effects import effects

__all__ = ["apart", "plan"]

ALIGN = 64
MOST_BY_SIZE = 500
"""The most buffers that are placed by size, which compares each with each."""


def apart(buffers: dict[str, Buffer], steps: list, hint=int) -> list[str]:
    """Let large temporary buffers of the launches have memory of their own; a line for each. ``hint``: as for :func:`plan`."""
    notes = []
    for name in dict.fromkeys(n for s in steps for n in sorted(effects(s)[1])):
        b = buffers[name]
        if b.kind != BufferKind.TEMP:
            continue
        size = hint(b.size * b.width * itemsize(b.dtype))
        if size is not None and size >= config.own_bytes:
            b.kind = BufferKind.OWN
            notes.append(f"{name}: {size} bytes of its own")
    return notes


def plan(
    buffers: dict[str, Buffer], steps: list[tuple[set[str], set[str]]], hint=int
) -> tuple[dict[str, int], int, list[str]]:
    """Offsets of the temporary buffers, size of the arena, and a line for each reuse. ``steps``: (reads, writes) of each step in order.

    Where sizes are expressions, so are offsets and the whole; ``hint`` gives examples of them, and None for a size that is known late (such a
    buffer has no place in the arena).

    Greedy by size (Pisarchyk & Lee, arXiv:2001.03288): the largest buffer first, at the lowest place free during its whole life. Where there are
    very many, they are placed in the order of the steps.
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for i, (reads, writes) in enumerate(steps):
        for name in writes:
            first.setdefault(name, i)
            last[name] = i
        for name in reads:
            last[name] = i
    temps = [n for n in first if buffers[n].kind == BufferKind.TEMP]
    if any(type(buffers[n].size) is Expr for n in temps):
        return _plan_symbolic(buffers, temps, first, last, hint)
    size = {
        n: -(-max(buffers[n].size * buffers[n].width * itemsize(buffers[n].dtype), 1) // ALIGN) * ALIGN for n in temps
    }
    return (_plan_by_size if len(temps) <= MOST_BY_SIZE else _plan_by_time)(temps, size, first, last)


def _plan_by_size(temps, size, first, last) -> tuple[dict[str, int], int, list[str]]:
    offsets: dict[str, int] = {}
    total = 0
    for name in sorted(temps, key=lambda n: (-size[n], first[n], n)):
        taken = sorted(
            (offsets[o], offsets[o] + size[o]) for o in offsets if first[o] <= last[name] and first[name] <= last[o]
        )
        at = 0
        for begin, end in taken:
            if at + size[name] <= begin:
                break
            at = max(at, end)
        offsets[name] = at
        total = max(total, at + size[name])
    notes = []
    for name in sorted(temps, key=lambda n: first[n]):
        before = [
            o
            for o in temps
            if last[o] < first[name]
            and offsets[o] < offsets[name] + size[name]
            and offsets[name] < offsets[o] + size[o]
        ]
        if before:
            notes.append(f"{name} reuses the memory of {before[-1]}")
    return offsets, total, notes


def _plan_by_time(temps, size, first, last) -> tuple[dict[str, int], int, list[str]]:
    """In the order of the steps, each at the lowest free place: for programs of thousands of buffers, such as loops that were unrolled."""
    offsets: dict[str, int] = {}
    total, notes = 0, []
    free: list[
        tuple[int, int, str]
    ] = []  # (begin, end, the buffer that lay there last) by place; neighbours are put together
    ending: list[tuple[int, str]] = []
    for name in sorted(temps, key=lambda n: (first[n], -size[n], n)):
        while ending and ending[0][0] < first[name]:
            _, done = heapq.heappop(ending)
            _release(free, offsets[done], offsets[done] + size[done], done)
        k = next((k for k, (begin, end, _) in enumerate(free) if end - begin >= size[name]), None)
        if k is not None:
            begin, end, before = free[k]
            free[k : k + 1] = [(begin + size[name], end, before)] if end - begin > size[name] else []
            notes.append(f"{name} reuses the memory of {before}")
            offsets[name] = begin
        else:
            offsets[name] = total
            total += size[name]
        heapq.heappush(ending, (last[name], name))
    return offsets, total, notes


def _release(free: list[tuple[int, int, str]], begin: int, end: int, name: str) -> None:
    k = bisect.bisect(free, (begin,))
    if k < len(free) and free[k][0] == end:
        end = free.pop(k)[1]
    if k and free[k - 1][1] == begin:
        begin, k = free[k - 1][0], k - 1
        free.pop(k)
    free.insert(k, (begin, end, name))


def _plan_symbolic(buffers, temps, first, last, hint):
    """Places in a row, each as long as the first buffer in it; a buffer goes where it fits for certain and nobody lives at the same time."""
    size = {
        n: floordiv(buffers[n].size * buffers[n].width * itemsize(buffers[n].dtype) + (ALIGN - 1), ALIGN) * ALIGN
        for n in temps
    }
    example = {n: hint(size[n]) for n in temps}
    places: list[tuple] = []  # (offset, size, buffers in it)
    offsets, total, notes = {}, 0, []
    for name in sorted((n for n in temps if example[n] is not None), key=lambda n: (-example[n], first[n], n)):
        for place in places:
            at, room, inside = place
            if all(last[o] < first[name] or last[name] < first[o] for o in inside) and at_least(room - size[name], 0):
                notes.append(f"{name} reuses the memory of {inside[-1]}")
                break
        else:
            at, inside = total, []
            places.append((at, size[name], inside))
            total = total + size[name]
        inside.append(name)
        offsets[name] = at
    return offsets, total, notes
