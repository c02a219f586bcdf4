"""What an integer of a loop is known to lie between.

Bounds are ``(least, most)``; None is all of 64 bits. Where paths meet they widen to the next of the *thresholds* (numbers that the region knows:
constants, sizes, ends), and beyond these to DRIFT or -DRIFT. Such an end means: a number of at most BASE to which at most SMALL was added at a
time. No loop lives long enough to take such a number out of 64 bits (2**48 additions), so counters need no check.
"""

from __future__ import annotations

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import ParameterOperand

__all__ = [
    "ALL",
    "Below",
    "Bounds",
    "DRIFT",
    "GIVEN",
    "LARGEST",
    "LEAST",
    "MOST",
    "SizeOperand",
    "excludes_zero",
    "meet",
    "of",
    "refined",
    "summand",
    "widened",
]

MOST, LEAST = (1 << 63) - 1, -(1 << 63)
ALL = LEAST, MOST
BASE, DRIFT, SMALL = 1 << 60, 1 << 61, 1 << 12
LARGEST = 1 << 58  # of the ends of a range, and of sizes: small multiples of them need no check
GIVEN = 1 << 62  # of numbers that a loop reads

Bounds = tuple[int, int] | None


class SizeOperand(ParameterOperand):
    """A size of an operand. ``place``: a size and the known number by which this one exceeds it; itself and 0 where there is no such size."""

    __slots__ = ("place",)

    def __init__(self, text: str, place: Below = None):
        super().__init__(text, llvm.I64)
        self.place = place or (self, 0)


Below = tuple[SizeOperand, int] | None
"""A size of an operand and a number: what is known of an integer that is at most their sum. Such sizes are the same all the time, so this holds
wherever the integer goes."""
NEAR = 1 << 20  # of what is added to such integers


def _settled(low: int, high: int) -> tuple[int, int]:
    """Results of other operations than small additions don't drift: an end that happens to be DRIFT moves on by one."""
    return low - (low == -DRIFT), high + (high == DRIFT)


def of(op: str, a: Bounds, b: Bounds) -> Bounds:
    """Of ``a op b``, which may leave 64 bits; None when nothing is known."""
    if op in ("+", "-"):
        if a is None or b is None:
            return None
        if op == "-":
            b = (-b[1], -b[0])
        if b[0] < -SMALL or b[1] > SMALL:
            a, b = b, a
        small = -SMALL <= b[0] and b[1] <= SMALL
        low, high = a[0] + b[0], a[1] + b[1]
        if not small:
            return _settled(low, high)
        return (-DRIFT if a[0] == -DRIFT else low), (DRIFT if a[1] == DRIFT else high)
    if op == "&":
        tops = [s[1] for s in (a, b) if s is not None and s[0] >= 0]
        return _settled(0, min(tops)) if tops else None
    if a is None or b is None:
        return (0, b[1] - 1) if op == "%" and b is not None and b[0] > 0 else None
    if op == "*":
        corners = [x * y for x in a for y in b]
        return _settled(min(corners), max(corners))
    if op == "%" and b[0] > 0:
        return (0, min(a[1], b[1] - 1)) if a[0] >= 0 else (0, b[1] - 1)
    if op == "//" and b[0] > 0:
        corners = [x // y for x in a for y in b]
        return _settled(min(corners), max(corners))
    if op == ">>" and 0 <= b[0]:
        corners = [x >> min(y, 64) for x in a for y in b]
        return _settled(min(corners), max(corners))
    if op == "<<" and 0 <= b[0] and b[1] < 64:
        corners = [x << y for x in a for y in b]
        return _settled(min(corners), max(corners))
    if op in "|^" and a[0] >= 0 and b[0] >= 0:
        return _settled(0, (1 << max(a[1], b[1]).bit_length()) - 1)
    return None


def below(op: str, a: Below, x: Bounds, b: Below, y: Bounds) -> Below:
    """Of ``x op y``, which stays within 64 bits: ``a`` and ``b`` are what the operands are below, ``x`` and ``y`` their bounds."""
    if op == "+":
        for of, more in ((a, y), (b, x)):
            if of is not None and more is not None and -NEAR <= more[1] <= NEAR:
                return of[0], of[1] + more[1]
    if op == "-" and a is not None and y is not None and -NEAR <= y[0] <= NEAR:
        return a[0], a[1] - y[0]
    if op == "%" and b is not None and y is not None and y[0] >= 0:
        return b[0], b[1] - 1
    if op in ("//", "%") and a is not None and x is not None and x[0] >= 0 and y is not None and y[0] >= 0:
        return a
    return None


def either_below(a: Below, b: Below) -> Below:
    """Of a number that may be either."""
    return (a[0], max(a[1], b[1])) if a is not None and b is not None and a[0] is b[0] else None


def both_below(a: Below, b: Below) -> Below:
    """Of a number of which both are known; the first where they can't be compared."""
    return b if a is None or (b is not None and a[0] is b[0] and b[1] < a[1]) else a


def below_after(op: str, a: Below, b: Below) -> tuple[Below, Below]:
    """Of two numbers of which ``a op b`` is known to hold."""
    if op in ("<", "<="):
        return both_below(a, b and (b[0], b[1] - (op == "<"))), b
    if op in (">", ">="):
        return below_after("<" if op == ">" else "<=", b, a)[::-1]
    if op == "==":
        return both_below(a, b), both_below(b, a)
    return a, b


def clipped(bounds: Bounds) -> Bounds:
    """Of a result that has been checked to fit in 64 bits."""
    if bounds is None:
        return None
    out = max(bounds[0], LEAST), min(bounds[1], MOST)
    return None if out == ALL else out


def meet(a: Bounds, b: Bounds) -> Bounds:
    """Of a number of which both are known."""
    if a is None or b is None:
        return a or b
    low, high = max(a[0], b[0]), min(a[1], b[1])
    if low > high:  # what can't be isn't reached: bounds that widen least those of ways that are
        low = high = b[1] if a[0] > b[1] else b[0]
    return low, high


def widened(old: Bounds, new: Bounds, thresholds: tuple[int, ...]) -> Bounds:
    """Bounds where a path with ``new`` meets what was known before. Few steps lead to an end."""
    if old is None or new is None:
        return None
    low, high = old
    if new[0] < low:
        low = max((t for t in thresholds if t <= new[0]), default=None)
        if low is None:
            low = -DRIFT if new[0] >= -BASE or new[0] == -DRIFT else LEAST
    if new[1] > high:
        high = min((t for t in thresholds if t >= new[1]), default=None)
        if high is None:
            high = DRIFT if new[1] <= BASE or new[1] == DRIFT else MOST
    return None if (low, high) == ALL else (low, high)


def refined(op: str, a: Bounds, b: Bounds) -> tuple[Bounds, Bounds]:
    """Of two numbers of which ``a op b`` is known to hold."""
    x, y = a or ALL, b or ALL
    if op in ("<", "<="):
        by = op == "<"
        return meet(x, (LEAST, y[1] - by)), meet(y, (x[0] + by, MOST))
    if op in (">", ">="):
        q, p = refined("<" if op == ">" else "<=", b, a)
        return p, q
    if op == "==":
        return meet(x, y), meet(y, x)
    if op == "!=":
        return _without(x, y), _without(y, x)
    return a, b


def summand(whole: Bounds, n: int, known: Bounds) -> Bounds:
    """Of ``x``, which lies in ``known``, where ``x + n`` lies in ``whole``."""
    if whole is None or not -NEAR <= n <= NEAR:
        return known
    low, high = (end - n if -BASE <= end <= BASE else far for end, far in zip(whole, ALL))
    return meet(known, (low, high))


def _without(x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
    """A number that isn't ``y``, where that is one number."""
    if y[0] != y[1] or x[0] == x[1]:
        return x
    return x[0] + (x[0] == y[0]), x[1] - (x[1] == y[0])


OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def excludes_zero(bounds) -> bool:
    return bounds is not None and (bounds[0] > 0 or bounds[1] < 0)
