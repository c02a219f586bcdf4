"""Which places an index of a loop nest may take: what two accesses of a buffer have in common."""

from __future__ import annotations

import math

from ...base.expr import Symbol, Var, coefficient, const, terms
from .values import loaded_atoms

__all__ = ["apart", "once_each"]


def apart(a, b) -> bool:
    """Whether two indices have no value in common, whatever the values of loop variables are. False for one that isn't known (None)."""
    first, second = _range(a), _range(b)
    if first is None or second is None or first[3] != second[3]:
        return False
    (lo, hi, step, _), (low, high, other, _) = first, second
    if hi < low or high < lo:
        return True
    common = math.gcd(step, other)
    return common > 1 and (lo - low) % common != 0


def _range(index) -> tuple[int, int, int, tuple] | None:
    """(least value, greatest, what all differ by a multiple of; 0 for a single value, summands that are the same for all iterations) of an index,
    None where it has parts that are loaded, or loop variables of unknown extent."""
    if index is None or type(const(index)) is not int:
        return None
    lo = hi = const(index)
    step = 0
    same = []
    for atom, c in terms(index):
        if isinstance(atom, Symbol):
            same.append((atom, c))
            continue
        if not isinstance(atom, Var) or type(atom.extent) is not int or type(c) is not int:
            return None
        reach = c * (atom.extent - 1)
        lo, hi, step = lo + min(reach, 0), hi + max(reach, 0), math.gcd(step, c)
    return lo, hi, step, tuple(same)


def once_each(loops, index) -> bool:
    """Whether no two iterations of a nest of loops have the same index."""
    apart_by = [(coefficient(index, v), v.extent) for v in loops if v.extent != 1]
    if any(type(c) is not int for c, _ in apart_by) or loaded_atoms(index):
        return False
    if len(apart_by) == 1:
        return apart_by[0][0] != 0
    if any(type(n) is not int for _, n in apart_by):
        return False
    reach = 0
    for c, n in sorted((abs(c), n) for c, n in apart_by):
        if c <= reach:
            return False
        reach += c * (n - 1)
    return True
