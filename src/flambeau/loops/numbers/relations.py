"""What is known of an integer of a loop beside variables of the loop: of ``i`` in ``range(n - gap)``, that ``i + gap`` is below ``n``.

Relations are between numbers, without regard to 64 bits. They name the value that a variable has, not the variable: a variable that is assigned
has another value, and what was known beside the old one isn't found any more. At the end of a block only relations to values that variables still
have are kept (variables.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from ...base.records import slotted
from .bounds import LARGEST, LEAST, MOST, NEAR, Below, Bounds, SizeOperand, meet

__all__ = [
    "NONE",
    "Relation",
    "Relations",
    "VariableValue",
    "after",
    "between_ends",
    "both",
    "equal_to",
    "narrowed",
    "of",
    "size_above",
]

MANY = 8  # relations of one number


class VariableValue:
    """The value that the variable ``name`` has, until it is assigned again."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name


class Kind(Enum):
    """``x``, the number, and ``y``, the variable's value."""

    AT_MOST = "x <= y + more"
    AT_LEAST = "x >= y + more"
    SUM_AT_MOST = "x + y <= size + more"  # or without a size


@slotted
class Relation:
    kind: Kind
    value: VariableValue
    more: int
    size: SizeOperand | None = None

    def moved(self, by: tuple[int, int]) -> Relation:
        """Of the number with something between these added."""
        return Relation(self.kind, self.value, self.more + by[self.kind is not Kind.AT_LEAST], self.size)

    def follows(self, other: Relation) -> bool:
        """Whether this is true where ``other`` is."""
        if (self.kind, self.value, self.size) != (other.kind, other.value, other.size):
            return False
        return self.more <= other.more if self.kind is Kind.AT_LEAST else self.more >= other.more


Relations = frozenset[Relation]
NONE: Relations = frozenset()


def equal_to(value: VariableValue) -> Relations:
    return frozenset((Relation(Kind.AT_MOST, value, 0), Relation(Kind.AT_LEAST, value, 0)))


def of(op: str, a: Relations, x: Bounds, b: Relations, y: Bounds, below: Below) -> Relations:
    """Of ``x op y``, of whose operands ``a`` and ``b`` are known, and these bounds; ``below``: what ``x`` is below."""
    out: set[Relation] = set()
    if op == "+":
        for known, by in ((a, y), (b, x)):
            if by is not None:
                out.update(r.moved(by) for r in known)
    elif op == "-":
        if y is not None:
            out.update(r.moved((-y[1], -y[0])) for r in a)
        most = [] if below is None else [below]
        if x is not None and x[1] <= LARGEST:
            most.append((None, x[1]))
        least = [r for r in b if r.kind is Kind.AT_LEAST]
        out.update(Relation(Kind.SUM_AT_MOST, r.value, more - r.more, size) for r in least for size, more in most)
    near = [r for r in out if -NEAR <= r.more <= (NEAR if r.kind is not Kind.SUM_AT_MOST or r.size else LARGEST)]
    return frozenset(near) if len(near) <= MANY else NONE


def size_above(op: str, a: Relations, b: Relations) -> Below:
    """The size that the sum of two numbers is below, see Below."""
    return next((most for most in _most(op, a, b) if most[0] is not None), None)


def _most(op: str, a: Relations, b: Relations) -> Iterator[tuple[SizeOperand | None, int]]:
    """Sizes and numbers whose sum ``x + y`` is at most."""
    for one, other in ((a, b), (b, a)) if op == "+" else ():
        for r in one:
            for s in other if r.kind is Kind.SUM_AT_MOST else ():
                if s.kind is Kind.AT_MOST and s.value is r.value:
                    yield r.size, r.more + s.more


def narrowed(bounds: Bounds, op: str, a: Relations, b: Relations, below: Below) -> Bounds:
    """``bounds`` of ``x op y``, narrowed by their relations, and by the size that it is ``below``."""
    low, high = widest = 2 * LEAST, 2 * MOST
    if below is not None:
        high = LARGEST + max(below[1], 0)
    high = min((more for size, more in _most(op, a, b) if size is None), default=high)
    if op == "-":
        for r in a:
            for s in b:
                if r.value is not s.value or Kind.SUM_AT_MOST in (r.kind, s.kind) or r.kind is s.kind:
                    continue
                if r.kind is Kind.AT_LEAST:
                    low = max(low, r.more - s.more)
                else:
                    high = min(high, r.more - s.more)
    return bounds if (low, high) == widest else meet(bounds or widest, (low, high))


def between_ends(first: Relations, last: Relations, step: int) -> Relations:
    """Of the elements of a range with these ends."""
    least, beyond = (first, last) if step > 0 else (last, first)
    lower = (r for r in least if r.kind is Kind.AT_LEAST)
    upper = (r for r in beyond if r.kind is not Kind.AT_LEAST)
    if step > 0:
        return frozenset((*lower, *(r.moved((-1, -1)) for r in upper)))
    return frozenset((*(r.moved((1, 1)) for r in lower), *upper))


def after(op: str, a: Relations, b: Relations) -> tuple[Relations, Relations]:
    """Of two numbers of which ``a op b`` is known to hold."""
    if op in (">", ">="):
        return after("<" if op == ">" else "<=", b, a)[::-1]
    if op not in ("<", "<="):
        return a, b
    by = op == "<"
    upper = {r.moved((-by, -by)) for r in b if r.kind is not Kind.AT_LEAST}
    lower = {r.moved((by, by)) for r in a if r.kind is Kind.AT_LEAST}
    x, y = a | upper, b | lower
    return (x if len(x) <= MANY else a), (y if len(y) <= MANY else b)


def both(a: Relations, b: Relations) -> Relations:
    """What held before (``a``), where it still does."""
    return a if a == b else frozenset(r for r in a if any(r.follows(s) for s in b))
