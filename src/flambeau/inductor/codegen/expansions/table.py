"""The table of expansions, and what families of them share.

An expansion takes a :class:`~..builder.Builder`, a dtype and operands, and returns the result; it works on any number of lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from ...assembly.instructions import Operand

__all__ = [
    "EXPANSIONS",
    "called",
    "chebyshev",
    "expansion",
    "fabs",
    "narrow",
    "powers",
    "signed",
    "sqrt",
    "usually",
    "wide",
]

EXPANSIONS: dict[str, Callable[..., Operand]] = {}
"""Name after the ``@`` in the scalar table -> function(builder, dtype, *operands)."""


def expansion(fn):
    """Put a function into the table, under its name."""
    EXPANSIONS[fn.__name__.rstrip("_")] = fn
    return fn


def wide(fn):
    """The expansion ``fn`` of float64 for float32 too."""
    return narrow(fn.__name__.rstrip("_"), fn, fn)


def narrow(name, of_singles, of_doubles):
    """An expansion that computes float32 in float64, by ``of_singles``, which needn't be right to the last digits."""

    def through(b, t, *args):
        if t == "f64":
            return of_doubles(b, t, *args)
        out = of_singles(b, "f64", *(b.convert("fpext", a, "f64") for a in args))
        return b.convert("fptrunc", out, t)

    through.__name__, through.of_singles, through.of_doubles = name, of_singles, of_doubles
    return expansion(through)


def usually(name, whole, usual, rare):
    """The expansion ``whole``, of which ``usual`` is a shorter form that has its bits where ``rare`` is false."""

    def chosen(b, t, *args):
        return b.rarely(lambda: rare(b, t, *args), lambda: usual(b, t, *args), lambda: whole(b, t, *args))

    chosen.__name__ = name
    return chosen


def sqrt(b, x):
    return b.intrinsic("sqrt", x)


def fabs(b, x):
    return b.intrinsic("fabs", x)


def signed(b, out, x):
    return b.intrinsic("copysign", out, x)


def called(b, name, x):
    """The C library's function of doubles for every lane."""
    return b.by_lane(x, b.const("bool", True), name, x)


def chebyshev(b, t, coefficients, x):
    """A sum of Chebyshev polynomials (Clenshaw), the highest first."""
    twice = b.add(x, x)
    one = two = b.const(t, 0.0)
    for c in coefficients[:-1]:
        one, two = b.add(b.sub(b.mul(twice, one), two), c), one
    return b.add(b.sub(b.mul(x, one), two), coefficients[-1])


def powers(coefficients, least: float = 0.0) -> tuple[float, ...]:
    """The sum of Chebyshev polynomials, the highest first, as coefficients of powers, the highest first. Those up to the first one of at least
    ``least`` are left out. For sums whose coefficients fall fast: the powers' would cancel else."""
    kept = list(coefficients)
    while abs(kept[0]) < least:
        del kept[0]
    before, here, out = [0.0] * len(kept), [1.0, *[0.0] * (len(kept) - 1)], [0.0] * len(kept)
    for k, c in enumerate(reversed(kept)):
        out = [o + c * h for o, h in zip(out, here)]
        shifted = [0.0, *here[:-1]]
        before, here = here, [(2.0 if k else 1.0) * s - q for s, q in zip(shifted, before)]
    return tuple(reversed(out))
