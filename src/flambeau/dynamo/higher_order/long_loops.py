"""Loops that would be unrolled for too long: one turn is captured instead, and the graph breaks between turns.

A loop's first turns say how many nodes a turn makes. Where the whole loop would make too many, the frame is traced again, with a break in front of
the loop; what continues behind it is one turn, whose captured code serves all turns. A loop in a function that the frame calls breaks the graph at
the call, and that function is captured by itself. Nothing is left where one graph is wanted: under ``fullgraph`` and under transforms.
"""

from __future__ import annotations

from ...base.records import slotted
from ..exc import TraceAgain, unsupported
from ..variables.base import Variable
from ..variables.containers.ranges import RangeVariable
from ..variables.iterators.builtin_iterators import EnumerateVariable, ZipVariable
from ..variables.iterators.container_iterators import ElementsVariable

__all__ = ["Turns", "break_long_loop", "look_at_turns"]

LOOK = 8  # turns
OF_ARRAYS = 3_000
"""Nodes of a loop over NumPy arrays that are compiled at most: a second or two."""
OF_TENSORS = 20_000
"""The same for tensors: PyTorch unrolls such loops, and a recurrence in one graph gains by it."""


@slotted
class Turns:
    """Of a for loop."""

    it: Variable
    """What it takes its elements of."""
    turns: int
    """How many it has had."""
    nodes: int
    """Of the graph, behind the first turn."""


def look_at_turns(tx, header: int) -> None:
    """At the jump back to ``header``, a FOR_ITER: have the loop broken where what is left of it would make too many nodes."""
    it = tx.stack[-1].unwrap() if tx.stack else None
    left = _left(it)
    if left is None:
        return
    nodes = len(tx.output.recorder.graph.nodes)
    seen = tx.for_loops.get(header)
    if seen is None or seen.it is not it:
        tx.for_loops[header] = Turns(it, 1, nodes)
        return
    tx.for_loops[header] = Turns(it, seen.turns + 1, seen.nodes)
    if seen.turns != LOOK or _one_graph(tx):
        return
    arrays = tx.output.recorder.graph.holds_arrays
    if not arrays and not _over_range(it):
        return
    if (nodes - seen.nodes) * left > LOOK * (OF_ARRAYS if arrays else OF_TENSORS):
        if tx.parent is not None:
            _break(tx, header)
        tx.output.resumes.long_loops.add(_place(tx, header))
        raise TraceAgain("a long loop is captured turn by turn")


def break_long_loop(tx, header: int) -> None:
    """At FOR_ITER: the graph breaks in front of it, where the loop has turned out to be too long."""
    if tx.parent is None and tx.output.resumes.long_loops and _place(tx, header) in tx.output.resumes.long_loops:
        _break(tx, header)


def _break(tx, header: int) -> None:
    unsupported(
        "long-loop",
        f"a loop in line {tx.insts[header].line} that would be unrolled for long",
        "Each turn would be part of one graph.",
        "One turn is captured, and called for each.",
    )


def _place(tx, header: int) -> tuple:
    """The loop, in the code that a resume function continues."""
    code, shift = tx.output.resumes.origins.get(tx.code, (tx.code, 0))
    return code, header - shift


def _one_graph(tx) -> bool:
    root = tx.root
    output = tx.output
    return bool(
        output.compiler.fullgraph or root.suspends or output.modes.transforms or output.blocks.breaks_are_errors()
    )


def _left(it: Variable | None) -> int | None:
    """How many elements an iterator still has; None where that isn't known."""
    if isinstance(it, EnumerateVariable):
        return _left(it.it.unwrap())
    if isinstance(it, ZipVariable):
        left = [_left(x.unwrap()) for x in it.its]
        return None if None in left else min(left, default=0)
    if isinstance(it, ElementsVariable) and it.elements is not None:
        return len(it.elements) - it.position
    return None


def _over_range(it: Variable) -> bool:
    return isinstance(it, ElementsVariable) and isinstance(it.over, RangeVariable)
