"""Complex numbers in a native loop: two floats in one value, with the formulas of NumPy's scalars (and Python's where they are Python's).

A product is ``(ac - bd, ad + bc)`` without the recovery of infinities that C99 describes; a quotient is Smith's (Smith 1962, "Algorithm 116");
NumPy's and Python's differ in the last step. NumPy's products of whole arrays round once less where the processor has fused
multiply-add, so elements of those differ in the last place.
"""

from __future__ import annotations

import math

import numpy as np

from .emitter import BOOL, F64, Emitter, float_literal
from .values import Declined, Scalar, register_type

__all__ = [
    "MATH",
    "absolute",
    "conjugate",
    "equal",
    "from_float",
    "imag",
    "made",
    "operation",
    "part",
    "parts",
    "power",
    "python_power",
    "python_quotient",
    "real",
    "truth",
    "width",
]

C128 = np.dtype(np.complex128)


def part(dtype: np.dtype) -> np.dtype:
    """The dtype of the real and the imaginary part."""
    return np.dtype(f"f{dtype.itemsize // 2}")


def parts(e: Emitter, v: str, dtype: np.dtype) -> tuple[str, str]:
    t = register_type(dtype)
    return tuple(e.op(f"extractelement {t} {v}, i32 {k}") for k in (0, 1))


def made(e: Emitter, re: str, im: str, dtype: np.dtype) -> str:
    t, of = register_type(dtype), register_type(part(dtype))
    half = e.op(f"insertelement {t} undef, {of} {re}, i32 0")
    return e.op(f"insertelement {t} {half}, {of} {im}, i32 1")


def from_float(e: Emitter, v: str, dtype: np.dtype) -> str:
    return made(e, v, float_literal(0.0), dtype)


def width(e: Emitter, v: str, have: np.dtype, want: np.dtype) -> str:
    """A complex number of another precision."""
    op = "fpext" if want.itemsize > have.itemsize else "fptrunc"
    return e.op(f"{op} {register_type(have)} {v} to {register_type(want)}")


def truth(e: Emitter, v: str, dtype: np.dtype) -> str:
    t = register_type(part(dtype))
    re, im = (e.op(f"fcmp une {t} {x}, 0.0") for x in parts(e, v, dtype))
    return e.op(f"or i1 {re}, {im}")


def equal(e: Emitter, op: str, x: str, y: str, dtype: np.dtype) -> str:
    t = register_type(part(dtype))
    (a, b), (c, d) = parts(e, x, dtype), parts(e, y, dtype)
    if op == "==":
        return e.op(f"and i1 {e.op(f'fcmp oeq {t} {a}, {c}')}, {e.op(f'fcmp oeq {t} {b}, {d}')}")
    if op == "!=":
        return e.op(f"or i1 {e.op(f'fcmp une {t} {a}, {c}')}, {e.op(f'fcmp une {t} {b}, {d}')}")
    raise Declined(f"{op} of complex numbers")


def operation(e: Emitter, op: str, dtype: np.dtype, x: str, y: str) -> str:
    """One element of the ufunc's loop."""
    t = register_type(dtype)
    if op in "+-":
        return e.op(f"{'fadd' if op == '+' else 'fsub'} {t} {x}, {y}")
    if op == "*":
        return _product(e, dtype, x, y)
    if op == "/":
        return _quotient(e, dtype, x, y)
    raise Declined(f"{op} of complex numbers")


def _product(e: Emitter, dtype, x: str, y: str) -> str:
    t = register_type(part(dtype))
    (a, b), (c, d) = parts(e, x, dtype), parts(e, y, dtype)
    mul = lambda p, q: e.op(f"fmul {t} {p}, {q}")  # noqa: E731
    return made(e, e.op(f"fsub {t} {mul(a, c)}, {mul(b, d)}"), e.op(f"fadd {t} {mul(a, d)}, {mul(b, c)}"), dtype)


def _smith(e: Emitter, dtype, x: str, y: str):
    """(whether the real part of the divisor is the larger, numerators of both parts, denominator, divisor's parts)."""
    t = register_type(part(dtype))
    (a, b), (c, d) = parts(e, x, dtype), parts(e, y, dtype)
    do = lambda op, p, q: e.op(f"{op} {t} {p}, {q}")  # noqa: E731
    size = [e.call(f"llvm.fabs.{'f32' if t == 'float' else 'f64'}", t, (t, v)) for v in (c, d)]
    first = e.op(f"fcmp oge {t} {size[0]}, {size[1]}")
    pick = lambda p, q: e.op(f"select i1 {first}, {t} {p}, {t} {q}")  # noqa: E731
    big, small = pick(c, d), pick(d, c)
    ratio = do("fdiv", small, big)
    below = do("fadd", big, do("fmul", small, ratio))
    along = pick(do("fadd", a, do("fmul", b, ratio)), do("fadd", do("fmul", a, ratio), b))
    across = pick(do("fsub", b, do("fmul", a, ratio)), do("fsub", do("fmul", b, ratio), a))
    return first, along, across, below, (a, b), size


def _quotient(e: Emitter, dtype, x: str, y: str) -> str:
    t = register_type(part(dtype))
    _, along, across, below, (a, b), size = _smith(e, dtype, x, y)
    scale = e.op(f"fdiv {t} {float_literal(1.0)}, {below}")
    zero = e.op(f"and i1 {e.op(f'fcmp oeq {t} {size[0]}, 0.0')}, {e.op(f'fcmp oeq {t} {size[1]}, 0.0')}")
    out = []
    for numerator, alone in ((along, a), (across, b)):
        by_zero = e.op(f"fdiv {t} {alone}, {size[0]}")
        out.append(e.op(f"select i1 {zero}, {t} {by_zero}, {t} {e.op(f'fmul {t} {numerator}, {scale}')}"))
    return made(e, *out, dtype)


def python_quotient(e: Emitter, x: str, y: str) -> str:
    """Of Python's numbers; the divisor isn't zero. With a nan in the divisor both parts are nan."""
    _, along, across, below, _, size = _smith(e, C128, x, y)
    ordered = e.op(f"fcmp ord double {size[0]}, {size[1]}")
    nan = float_literal(math.nan)
    out = [
        e.op(f"select i1 {ordered}, double {e.op(f'fdiv double {n}, {below}')}, double {nan}") for n in (along, across)
    ]
    return made(e, *out, C128)


def _whole(n) -> int | None:
    """A known exponent, of any type, as an integer; None where it is none."""
    z = complex(n) if n is not None else math.nan
    return int(z.real) if z.imag == 0 and math.isfinite(z.real) and z.real == int(z.real) else None


def _number(e: Emitter, dtype, value: complex) -> str:
    real = part(dtype)
    return made(e, float_literal(value.real, real), float_literal(value.imag, real), dtype)


def _squared(e: Emitter, x: str, n: int, dtype) -> str:
    """One times ``x ** n``, n positive, by squares."""
    out = _number(e, dtype, 1)
    while n:
        if n & 1:
            out = _product(e, dtype, out, x)
        n >>= 1
        if n:
            x = _product(e, dtype, x, x)
    return out


def power(e: Emitter, x: str, n, dtype) -> str:
    """``x ** n`` of NumPy's numbers, for the exponents that it multiplies for: whole numbers below 100. To the power of -1 its arrays and its
    numbers differ."""
    n = _whole(n)
    if n == 1:
        return x
    if n == 2:
        return _product(e, dtype, x, x)
    if n is None or n == -1 or not -100 < n < 100:
        raise Declined("a power of a complex number that isn't a small whole one")
    if n == 0:
        return _number(e, dtype, 1)
    out = _product(e, dtype, x, _product(e, dtype, x, x)) if n == 3 else _squared(e, x, abs(n), dtype)
    if n < 0:
        out = _quotient(e, dtype, _number(e, dtype, 1), out)
    of_zero = _number(e, dtype, 0 if n > 0 else complex(math.nan, math.nan))
    t = register_type(dtype)
    return e.op(f"select i1 {truth(e, x, dtype)}, {t} {out}, {t} {of_zero}")


def python_power(e: Emitter, x: str, n) -> str:
    """``x ** n`` of Python's, for small whole exponents; where Python raises the loop ends."""
    n = _whole(n)
    if n is None or not -100 <= n <= 100:
        raise Declined("a power of a complex number that isn't a small whole one")
    out = _squared(e, x, abs(n), C128)
    if n < 1:
        e.check(truth(e, out, C128), "ZeroDivisionError", "0.0 to a negative or complex power")
        out = python_quotient(e, _number(e, C128, 1), out)
    for v in parts(e, out, C128):
        size = e.call("llvm.fabs.f64", "double", ("double", v))
        e.check(e.op(f"fcmp une double {size}, {float_literal(math.inf)}"), "OverflowError", "complex exponentiation")
    return out


def absolute(e: Emitter, s: Scalar) -> str:
    t = register_type(part(s.dtype))
    re, im = parts(e, s.v, s.dtype)
    return e.call("hypot" if t == "double" else "hypotf", t, (t, re), (t, im))


def conjugate(e: Emitter, s: Scalar) -> Scalar:
    """np.conjugate, and the method; of real numbers, the number."""
    if s.kind != "c":
        if s.kind == "b":
            raise Declined("the conjugate of a bool")
        return s
    re, im = parts(e, s.v, s.dtype)
    t = register_type(part(s.dtype))
    return Scalar(s.dtype, s.weak, made(e, re, e.op(f"fneg {t} {im}"), s.dtype))


def _part(k: int):
    def of(e: Emitter, s: Scalar) -> Scalar:
        if s.kind != "c":
            if k or s.kind == "b":
                raise Declined("a part of a number that isn't complex")
            return s
        if s.weak is None:
            raise Declined("a part of a number of which it isn't known whether it is complex")
        return Scalar(part(s.dtype), s.weak, parts(e, s.v, s.dtype)[k])

    return of


real, imag = _part(0), _part(1)


def _by_libm(name: str):
    """A function of C's complex numbers, by whose name NumPy calls it too."""

    def call(e: Emitter, s: Scalar, result: np.dtype) -> str:
        v = s.v if s.dtype == C128 else width(e, s.v, s.dtype, C128)
        re, im = parts(e, v, C128)
        pair = e.call(name, "{ double, double }", ("double", re), ("double", im))
        out = made(e, *(e.op(f"extractvalue {{ double, double }} {pair}, {k}") for k in (0, 1)), C128)
        return out if result == C128 else width(e, out, C128, result)

    return call


MATH = {
    uf: _by_libm(name)
    for uf, name in ((np.exp, "cexp"), (np.sqrt, "csqrt"), (np.log, "clog"), (np.sin, "csin"), (np.cos, "ccos"))
}
"""ufunc -> function(emitter, complex number, dtype of the result)"""


def angle(e: Emitter, s: Scalar) -> Scalar:
    if s.kind != "c":
        raise Declined("np.angle of a real number")
    re, im = parts(e, s.v, s.dtype)
    t = register_type(part(s.dtype))
    return Scalar(part(s.dtype), False, e.call("atan2" if t == "double" else "atan2f", t, (t, im), (t, re)))


def python_complex(e: Emitter, *given: Scalar) -> Scalar:
    """``complex(re, im)`` of real numbers, ``complex(z)``."""
    from .arithmetic import cast

    if len(given) == 1 and given[0].kind == "c":
        return cast(e, given[0], C128, True)
    if not 1 <= len(given) <= 2 or any(s.kind == "c" for s in given):
        raise Declined("complex() of these numbers")
    floats = [cast(e, s, F64).v for s in given]
    return Scalar(C128, True, made(e, floats[0], floats[1] if len(floats) > 1 else float_literal(0.0), C128))


def is_nan(e: Emitter, s: Scalar) -> Scalar:
    t = register_type(part(s.dtype))
    re, im = parts(e, s.v, s.dtype)
    return Scalar(BOOL, False, e.op(f"fcmp uno {t} {re}, {im}"))


def is_finite(e: Emitter, s: Scalar) -> Scalar:
    t = register_type(part(s.dtype))
    inf, out = float_literal(math.inf), []
    for v in parts(e, s.v, s.dtype):
        size = e.call(f"llvm.fabs.{'f32' if t == 'float' else 'f64'}", t, (t, v))
        out.append(e.op(f"fcmp olt {t} {size}, {inf}"))
    return Scalar(BOOL, False, e.op(f"and i1 {out[0]}, {out[1]}"))
