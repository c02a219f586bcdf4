"""Python's ``complex()`` and functions of the module cmath."""

from __future__ import annotations

import cmath

from ..emitter import F64, Emitter
from ..values import Declined, Scalar, Tuple, libm
from . import complexes
from .conversions import cast

__all__ = ["PYTHONS", "python_complex"]


def python_complex(e: Emitter, *given: Scalar) -> Scalar:
    """``complex(re, im)`` of real numbers, ``complex(z)``."""
    if len(given) == 1 and given[0].kind == "c":
        return cast(e, given[0], complexes.C128, True)
    if not 1 <= len(given) <= 2 or any(s.kind == "c" for s in given):
        raise Declined("complex() of these numbers")
    floats = [cast(e, s, F64).v for s in given]
    return Scalar(
        complexes.C128, True, complexes.made(e, *floats) if len(floats) > 1 else complexes.from_float(e, *floats)
    )


def _python_math(name: str):
    """A function of the module cmath: of a finite number, with a finite result; else the loop ends, and Python says what it is."""

    def call(e: Emitter, s: Scalar) -> Scalar:
        z = _finite(e, python_complex(e, s))
        return _finite(e, Scalar(complexes.C128, True, complexes.by_libm(name)(e, z, complexes.C128)))

    return call


def _finite(e: Emitter, z: Scalar) -> Scalar:
    e.check(complexes.is_finite(e, z).v, "ValueError", "math domain error")
    return z


def phase(e: Emitter, s: Scalar) -> Scalar:
    re, im = complexes.parts(e, python_complex(e, s).v)
    return Scalar(F64, True, e.external(libm("atan2", re.type), re.type, im, re))


def polar(e: Emitter, s: Scalar) -> Tuple:
    z = _finite(e, python_complex(e, s))
    return Tuple((Scalar(F64, True, complexes.absolute(e, z)), phase(e, z)))


def rect(e: Emitter, r: Scalar, phi: Scalar) -> Scalar:
    r, phi = cast(e, r, F64, True), cast(e, phi, F64, True)
    turned = [e.op("fmul", r.v, e.external(name, r.v.type, phi.v)) for name in ("cos", "sin")]
    return _finite(e, Scalar(complexes.C128, True, complexes.made(e, *turned)))


PYTHONS = {
    **{getattr(cmath, f): _python_math(f"c{f}") for f in ("exp", "sqrt", "log", "sin", "cos", "sinh", "cosh", "tanh")},
    cmath.phase: phase,
    cmath.polar: polar,
    cmath.rect: rect,
}
"""Function of the module cmath -> function(emitter, numbers)."""
