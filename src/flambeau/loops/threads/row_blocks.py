"""Loops whose turns have to be taken in order, and whose statements are element-wise: all turns for some rows at a time.

In ``for k in range(1, n): t = a[:, :, k] * t; b[:, :, k] = t - b[:, :, k - 1]`` a row of an array is written and read by what computes that row in
later turns, and by nothing else. Such a loop is run by blocks of rows, each of which takes all turns: what a turn has read and written is still
in the cache in the next, cache lines that hold elements of several turns are read once, and blocks are given to threads as those of turns are
(:mod:`.spreading`), without waiting for each other between turns.

The condition: all element loops run over the same number of rows in no order, and each element that is read or written of memory that the loop
writes, its own buffers among them, is in the row that the outermost element loop has come to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...inductor.assembly.instructions import ParameterOperand
from .spreading import Spread, Turns

if TYPE_CHECKING:
    from ..emitter import Emitter
    from ..interpreter import Interpreter
    from ..interpreter.results import Results
    from ..values import Size

__all__ = ["found"]

# Elements of a block at least, by an element loop. Few are enough where those of a turn are cache lines of their own, which are read again in the
# next turns; others have to be worth what a block costs that computes the numbers of all turns and makes their buffers again.
APART, TOGETHER = 512, 4096
BLOCKS = 4  # that are worth it


def found(run: Interpreter, left_behind: Results) -> Spread | None:
    """How the rows are cut into blocks; None where that is wrong, or not known to be right. The text has been written once."""
    e, operands = run.e, run.operands
    undone = run.inputs.rerunnable or all(fault.kind == "MemoryError" for fault in e.errors)
    if (
        left_behind.anything
        or not undone
        or run.region.exit is None
        or operands.drawn
        or e.leaves_to_python
        or run.own_cells
    ):
        return None
    if run.containers.sites or run.inlining.recursion.frames:
        return None
    written = {o for o in e.foreign if not isinstance(o, int) or o in operands.written}
    if written or not operands.written or not e.nests:
        return None
    size = e.nests[0][0] if e.nests[0] else None
    if not isinstance(size, ParameterOperand) or any(not sizes or sizes[0] is not size for sizes in e.nests):
        return None
    rows, row = _fewest(e, [size]), max(_fewest(e, sizes[1:]) for sizes in e.nests)
    least = -(-(APART if e.apart else TOGETHER) // max(row, 1))
    if rows < BLOCKS * least:
        return None
    for k, array in enumerate(operands.arrays):
        if size in array.sizes:
            place = sum(2 * a.ndim for a in operands.arrays[:k]) + array.sizes.index(size)
            return Spread(Turns(lengths=[place]), least, False, 0, [], 0, 0)
    return None


def _fewest(e: Emitter, sizes: Sequence[Size]) -> int:
    """Elements of these sizes, at least."""
    bounds = [e.bounds_of(n) for n in sizes]
    return math.prod(b[0] if b else 0 for b in bounds)
