"""Which turn of the outermost loop an element of an operand belongs to.

Turns that write and read elements of their own of each array that is written may be run in any order. What is known of a view are facts of the form
"an index of each element is the turn's plus a number". The index is that of one dimension (``a[i]``, ``a[:, i + 1]``), or the smallest or the largest
of two (``a[i, i:]`` and ``a[i:, i]`` are elements whose smaller index is ``i``: both halves of a symmetric matrix that is filled row by row). Two
accesses of which the same fact is known touch the same element in the same turn only.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...base.records import slotted

if TYPE_CHECKING:
    from ..values import Scalar, Slice

__all__ = ["Extreme", "TurnIndex", "facts"]


class Extreme(enum.Enum):
    """Of the indices of several dimensions."""

    SMALLEST = enum.auto()
    LARGEST = enum.auto()


@slotted
class TurnIndex:
    """The index of the operand's elements in ``dimensions`` (``extreme`` of the indices where they are several) exceeds the turn's by ``more``."""

    dimensions: tuple[int, ...]
    more: int
    extreme: Extreme | None = None


def facts(indices: Mapping[int, Scalar], slices: Mapping[int, Slice]) -> frozenset[TurnIndex]:
    """What a subscript of a whole operand tells: ``indices`` and ``slices`` (of positive steps) by dimension. Negative ones count from the end and
    tell nothing."""
    at = {d: k.turn for d, k in indices.items() if _is_counted(k)}
    out = {TurnIndex((d,), more) for d, more in at.items()}
    for d, other in itertools.combinations(sorted(at), 2):
        out.add(TurnIndex((d, other), min(at[d], at[other]), Extreme.SMALLEST))
        out.add(TurnIndex((d, other), max(at[d], at[other]), Extreme.LARGEST))
    for other, s in slices.items():
        for d, more in at.items():
            both = (min(d, other), max(d, other))
            if _is_counted(s.start) and s.start.turn >= more:
                out.add(TurnIndex(both, more, Extreme.SMALLEST))
            if _is_counted(s.stop) and s.stop.turn <= more + 1:
                out.add(TurnIndex(both, more, Extreme.LARGEST))
    return frozenset(out)


def _is_counted(k) -> bool:
    """Whether it is known by how much the number exceeds the turn's, and that it isn't negative."""
    return getattr(k, "turn", None) is not None and k.bounds is not None and k.bounds[0] >= 0
