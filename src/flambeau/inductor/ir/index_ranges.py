"""Which places an index of a loop nest may take: what two accesses of a buffer have in common."""

from __future__ import annotations

import math
from typing import Any

from ...base.expr import Symbol, Var, coefficient, const, terms
from ...base.records import slotted
from .values import loaded_atoms

__all__ = ["apart", "lies_inside", "once_each"]


@slotted
class _Range:
    """What an index of a loop nest may be: ``invariant`` plus a number from ``least`` to ``greatest``."""

    least: int
    greatest: int
    spacing: int
    """All its numbers differ by a multiple of this; 0: there is one."""
    invariant: tuple
    """Summands (symbol, coefficient) that are the same for all iterations."""


@slotted
class _Travel:
    """How an index goes along one loop."""

    stride: Any
    extent: Any


def apart(a, b) -> bool:
    """Whether two indices have no value in common, whatever the values of loop variables are. False for one that isn't known (None)."""
    first, second = _range(a), _range(b)
    if first is None or second is None or first.invariant != second.invariant:
        return False
    if first.greatest < second.least or second.greatest < first.least:
        return True
    common = math.gcd(first.spacing, second.spacing)
    return common > 1 and (first.least - second.least) % common != 0


def lies_inside(index, extent: int) -> bool:
    """Whether an index is known to be from 0 on and below ``extent`` in all iterations."""
    found = _range(index)
    return found is not None and not found.invariant and 0 <= found.least and found.greatest < extent


def _range(index) -> _Range | None:
    """None where the index has parts that are loaded, or loop variables of unknown extent."""
    if index is None or type(const(index)) is not int:
        return None
    least = greatest = const(index)
    spacing = 0
    invariant = []
    for atom, c in terms(index):
        if isinstance(atom, Symbol):
            invariant.append((atom, c))
            continue
        if not isinstance(atom, Var) or type(atom.extent) is not int or type(c) is not int:
            return None
        reach = c * (atom.extent - 1)
        least, greatest, spacing = least + min(reach, 0), greatest + max(reach, 0), math.gcd(spacing, c)
    return _Range(least, greatest, spacing, tuple(invariant))


def once_each(loops, index) -> bool:
    """Whether no two iterations of a nest of loops have the same index."""
    travels = [_Travel(coefficient(index, v), v.extent) for v in loops if v.extent != 1]
    if any(type(t.stride) is not int for t in travels) or loaded_atoms(index):
        return False
    if len(travels) == 1:
        return travels[0].stride != 0
    if any(type(t.extent) is not int for t in travels):
        return False
    reach = 0
    for t in sorted(travels, key=lambda t: (abs(t.stride), t.extent)):
        if abs(t.stride) <= reach:
            return False
        reach += abs(t.stride) * (t.extent - 1)
    return True
