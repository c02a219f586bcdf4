"""Launches of one kernel on many rows of buffers as one launch over a table of pointers and sizes.

The kernels are those of ``sized.py``, which share their code. A table stands where the first of its rows stood; a row joins where no launch between
touches what it writes, or writes what it reads, the memory of inputs that are overwritten included. The threads share the pieces of all rows
(csrc/runtime/launch_step.c), so neither how many rows there are nor how long each is matters. Each row computes what it would alone.
"""

from __future__ import annotations

import math

from ..codegen.kernel import Kernel
from ..ir.nodes import ExternCall
from .effects import NamedMemory, effects

__all__ = ["Table", "tabulate"]

PIECE = 12.0  # microseconds of a piece that a thread takes, at least
MOST_PIECES = 64  # long ones keep streams from memory running


class Table:
    """Kernels of one name, in any order. ``grain``: the least iterations of a piece."""

    __slots__ = ("steps", "locals", "name", "grain")

    def __init__(self, steps: list[Kernel]):
        self.steps, self.locals, self.name = steps, {}, steps[0].name
        total = sum(s.total for s in steps)
        piece = max(PIECE, self.cost / MOST_PIECES)
        self.grain = max(1, min(total, math.ceil(piece * total / max(self.cost, 1e-9))))

    @property
    def cost(self) -> float:
        return sum(s.cost for s in self.steps)


def _may_join(step) -> bool:
    return isinstance(step, Kernel) and step.in_table


def tabulate(launches: list, inplace: dict[str, str]) -> list:
    """``inplace``: output buffer -> the input whose memory it takes."""
    wanted = [_may_join(s) for s in launches]
    if sum(wanted) < 2:
        return launches
    bits = NamedMemory(inplace)
    touched = []
    for s in launches:
        reads, writes = effects(s)
        touched.append((bits.of(reads), bits.of(writes)))
    out = []
    gone = [False] * len(launches)
    for i, s in enumerate(launches):
        if gone[i]:
            continue
        rows = [s]
        if wanted[i]:
            # Of the rows, and of what a later row would overtake.
            read, written = touched[i]
            for j in range(i + 1, len(launches)):
                other = launches[j]
                if gone[j]:
                    continue
                if isinstance(other, ExternCall) and (other.effect or other.what not in ("gemm", "native")):
                    break
                r, w = touched[j]
                if wanted[j] and other.name == s.name and not (w & (read | written) or r & written):
                    rows.append(other)
                    gone[j] = True
                read |= r
                written |= w
        out.append(Table(rows) if len(rows) > 1 else s)
    return out
