"""Questions about numbers that may be symbolic, for code that takes plain ones too."""

from __future__ import annotations

from . import relations as R
from .shape_env import GuardOnDataDependentSymNode
from .symint import SymBool, SymFloat, SymInt

__all__ = [
    "free_symbols",
    "guard_int",
    "guard_or_false",
    "guard_or_true",
    "guard_size_oblivious",
    "has_static_value",
    "hint_int",
    "is_one",
    "sizes_of",
    "statically_known_true",
]


def guard_int(x) -> int:
    """The value of an integer, a constant from here on."""
    return int(x)


def hint_int(x, fallback: int | None = None) -> int:
    """The example value, without a guard; ``fallback`` (else an error) for what depends on data."""
    hint = x.hint if isinstance(x, SymInt) else x
    if hint is None and fallback is None:
        raise GuardOnDataDependentSymNode(x.expr, f"{x} depends on data and has no example value")
    return fallback if hint is None else hint


def free_symbols(x) -> set:
    """Symbols of a number, or of the sizes and strides of a tensor."""
    if hasattr(x, "_shape"):
        return {s for n in (*x._shape, *x._strides) for s in free_symbols(n)}
    return set(R.symbols(x.expr)) if isinstance(x, (SymInt, SymFloat, SymBool)) else set()


def statically_known_true(x) -> bool:
    """Whether ``x`` is known to be true; never a guard."""
    return x.env.known(x.expr) is True if type(x) is SymBool else bool(x)


def guard_or_false(x) -> bool:
    """``x``, with a guard; False when it depends on data."""
    return x.env.guess(x.expr, False) if type(x) is SymBool else bool(x)


def guard_or_true(x) -> bool:
    """``x``, with a guard; True when it depends on data."""
    return x.env.guess(x.expr, True) if type(x) is SymBool else bool(x)


def guard_size_oblivious(x) -> bool:
    """``x``, with a guard; sizes that depend on data are taken to be at least 2."""
    if type(x) is not SymBool:
        return bool(x)
    env = x.env
    env.oblivious += 1
    try:
        return env.evaluate(x.expr)
    finally:
        env.oblivious -= 1


def is_one(n) -> bool:
    """Whether a size is 1, with a guard even in shape rules: for those whose result has another rank then."""
    if not isinstance(n, SymInt) or n.env.is_unbacked(n.expr):
        return bool(n == 1)
    before, n.env.oblivious = n.env.oblivious, 0
    try:
        return bool(n == 1)
    finally:
        n.env.oblivious = before


def has_static_value(x) -> bool:
    """Whether ``x`` is a number that is known."""
    return not isinstance(x, (SymInt, SymFloat, SymBool)) or isinstance(x.env.simplify(x.expr), (int, float))


def sizes_of(values):
    """A shape as ints and expressions: it compares by structure, without a guard, and is hashable."""
    return tuple(v.expr if isinstance(v, SymInt) else v for v in values)
