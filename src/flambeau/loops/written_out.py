"""Functions of Python's as native loops have them: functions whose bytecode joins that of the loop. Where Python raises, the loop ends and the frame
runs plainly."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..base.records import slotted
from .heaps import WRITTEN_OUT as HEAPS
from .values import Scalar

__all__ = ["CODES", "written_out"]


@slotted
class WrittenOut:
    """``kinds``: of dtypes that its arguments, numbers, may have; any arguments where it is empty. ``pythons``: whether they have to be Python's."""

    function: Callable
    kinds: str = ""
    pythons: bool = False
    counts: tuple[int, ...] = ()


def _gcd(a, b):
    a, b = int(a), int(b)
    while b:
        a, b = b, a % b
    return abs(a)


def _lcm(a, b):
    a, b = int(a), int(b)
    if a == 0 or b == 0:
        return 0
    x, y = a, b
    while y:
        x, y = y, x % y
    return abs(a // x * b)


def _isqrt(n):
    n = int(n)
    if n < 0:
        raise ValueError
    root = int(n**0.5)
    while root * root > n:
        root -= 1
    while (root + 1) * (root + 1) <= n:
        root += 1
    return root


def _factorial(n):
    n = int(n)
    if n < 0:
        raise ValueError
    made = 1
    for k in range(2, n + 1):
        made *= k
    return made


def _comb(n, k):
    n, k = int(n), int(k)
    if n < 0 or k < 0:
        raise ValueError
    if k > n:
        return 0
    k = min(k, n - k)
    made = 1
    for i in range(1, k + 1):
        made = made * (n - k + i) // i
    return made


def _perm(n, k):
    n, k = int(n), int(k)
    if n < 0 or k < 0:
        raise ValueError
    made = 1
    for i in range(k):
        made *= n - i
    return made


def _divmod(a, b):
    return a // b, a % b


def _pow(a, b):
    return a**b


def _modular_pow(a, b, m):
    if b < 0 or m == 0:
        raise ValueError
    made = 1 % m
    a %= m
    while b:
        if b & 1:
            made = made * a % m
        b >>= 1
        if b:
            a = a * a % m
    return made


def _radians(x):
    return float(x) * 0.017453292519943295


def _degrees(x):
    return float(x) * 57.29577951308232


def _isclose(a, b, *, rel_tol=1e-09, abs_tol=0.0):
    a, b = float(a), float(b)
    if rel_tol < 0.0 or abs_tol < 0.0:
        raise ValueError
    if a == b:
        return True
    apart = abs(b - a)
    # Infinity.
    if apart == 1e999:
        return False
    return apart <= abs(rel_tol * b) or apart <= abs(rel_tol * a) or apart <= abs_tol


TABLE = {
    **{f: WrittenOut(g) for f, g in HEAPS.items()},
    math.gcd: WrittenOut(_gcd, "bi", counts=(2,)),
    math.lcm: WrittenOut(_lcm, "bi", counts=(2,)),
    math.isqrt: WrittenOut(_isqrt, "bi"),
    math.factorial: WrittenOut(_factorial, "bi"),
    math.comb: WrittenOut(_comb, "bi"),
    math.perm: WrittenOut(_perm, "bi", counts=(2,)),
    divmod: WrittenOut(_divmod, "if"),
    math.radians: WrittenOut(_radians, "biuf"),
    math.degrees: WrittenOut(_degrees, "biuf"),
    math.isclose: WrittenOut(_isclose, "biuf"),
}
POWERS = {2: WrittenOut(_pow, "iufc"), 3: WrittenOut(_modular_pow, "i", True)}
CODES = {row.function.__code__: row.function for row in (*TABLE.values(), *POWERS.values())}


def written_out(f, args: list, kwargs: dict):
    """The code of a call of a function with these arguments; None for others."""
    row = POWERS.get(len(args)) if f is pow and not kwargs else TABLE.get(f)
    if row is None or (row.counts and len(args) not in row.counts):
        return None
    if row.kinds:
        given = (*args, *kwargs.values())
        if not all(isinstance(a, Scalar) and a.kind in row.kinds and (a.weak or not row.pythons) for a in given):
            return None
    return row.function.__code__
