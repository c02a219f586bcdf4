"""Powers of floats: NumPy's, and Python's, which raise errors and are libm's to the last bit."""

from __future__ import annotations

import math

from .emitter import F64, float_literal
from .values import Scalar, register_type

__all__ = ["power", "python_power"]

_BY_ROOTS = (-1.5, -1.0, -0.5, 0.5, 1.5)


def _by_root(e, x: str, n: float, t: str) -> str:
    """A power by a square root and divisions: within 2 ulp, where pow takes ten times as long."""
    one, name = float_literal(1.0), f"llvm.sqrt.{'f32' if t == 'float' else 'f64'}"
    out = x if n in (1.5, 0.5) else e.op(f"fdiv {t} {one}, {x}")
    if n == -1.0:
        return out
    root = e.call(name, t, (t, x))
    if n == 0.5:
        return root  # as NumPy has it
    if n == -0.5:
        out = e.op(f"fdiv {t} {one}, {root}")
        zero = e.op(f"fcmp oeq {t} {x}, {float_literal(0.0)}")
        out = e.op(f"select i1 {zero}, {t} {float_literal(math.inf)}, {t} {out}")
    else:
        out = e.op(f"{'fmul' if n > 0 else 'fdiv'} {t} {out}, {root}")
    beyond = e.op(f"fcmp oeq {t} {x}, {float_literal(-math.inf)}")  # as for inf
    return e.op(f"select i1 {beyond}, {t} {float_literal(math.inf if n > 0 else 0.0)}, {t} {out}")


_HALF = f"""
declare double @pow(double, double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.fabs.f64(double)
define internal double @flb_power_half(double %x) {{
  %root = call double @llvm.sqrt.f64(double %x)
  %minus = fneg double %root
  %rest = call double @llvm.fma.f64(double %minus, double %root, double %x)
  %size = call double @llvm.fabs.f64(double %rest)
  %bits = bitcast double %root to i64
  %exponent = and i64 %bits, {0x7FF << 52}
  %binade = bitcast i64 %exponent to double
  %most = fmul double %root, %binade
  %limit = fmul double %most, {float_literal(0.9 * 2.0**-52)}
  %clear = fcmp olt double %size, %limit
  %normal = fcmp ogt double %x, {float_literal(1e-250)}
  %known = and i1 %clear, %normal
  br i1 %known, label %quick, label %slow
quick:
  ret double %root
slow:
  %power = call double @pow(double %x, double 0.5)
  ret double %power
}}"""
"""``pow(x, 0.5)`` to the last bit. The root is the nearest number to the exact one; where that lies 0.05 units of the last place away from the
middle of two numbers, any pow that is off by less than 0.55 (glibc's: 0.52) gives the same, which is so nine times in ten."""


def _fabs(e, v: str) -> str:
    return e.call("llvm.fabs.f64", "double", ("double", v))


def _infinite(e, v: str) -> str:
    return e.op(f"fcmp oeq double {_fabs(e, v)}, {float_literal(math.inf)}")


def _not_too_large(e, out: str, *given: str) -> None:
    """Python's OverflowError, where the result is infinite and nothing that was given is."""
    fine = e.op(f"fcmp ult double {_fabs(e, out)}, {float_literal(math.inf)}")
    for v in given:
        fine = e.op(f"or i1 {fine}, {_infinite(e, v)}")
    e.check(fine, "OverflowError", "(34, 'Numerical result out of range')")


def power(e, x: Scalar, b: Scalar, weak) -> Scalar:
    """``x`` to a known power. ``weak``: see Scalar; where the number may be Python's, the loop ends if Python raises or gives a complex number."""
    n = b.const
    t = register_type(x.dtype)
    if n == 1:
        return Scalar(x.dtype, weak, x.v)
    if weak is False and n == 2:
        return Scalar(x.dtype, weak, e.op(f"fmul {t} {x.v}, {x.v}"))
    if weak is False and n in _BY_ROOTS:
        return Scalar(x.dtype, weak, _by_root(e, x.v, n, t))
    if weak is not False and n != int(n):
        complex_one = "a power of a negative number in a compiled loop would be complex"
        e.check(e.op(f"fcmp uge {t} {x.v}, 0.0"), "RuntimeError", complex_one)
    if weak is not False and n < 0:
        e.check(e.op(f"fcmp une {t} {x.v}, 0.0"), "ZeroDivisionError", "0.0 cannot be raised to a negative power")
    if weak is not False and n == 0.5 and t == "double" and not e.noting:
        e.function("flb_power_half", _HALF)
        return Scalar(x.dtype, weak, e.op(f"call double @flb_power_half(double {x.v})"))
    if n == 2:
        out = e.op(f"fmul {t} {x.v}, {x.v}")
    else:
        out = e.call("pow" if t == "double" else "powf", t, (t, x.v), (t, float_literal(n, x.dtype)))
    if weak is not False and t == "double" and abs(n) > 1:
        _not_too_large(e, out, x.v)
    return Scalar(x.dtype, weak, out)


def python_power(e, x: Scalar, y: Scalar, weak) -> Scalar:
    """``x ** y`` of Python's floats; where Python raises or gives a complex number the loop ends."""
    whole = e.op(f"fcmp oeq double {e.call('llvm.rint.f64', 'double', ('double', y.v))}, {y.v}")
    real = e.op(f"or i1 {whole}, {e.op(f'fcmp uge double {x.v}, 0.0')}")
    e.check(real, "RuntimeError", "a power of a negative number in a compiled loop would be complex")
    nonzero = e.op(f"or i1 {e.op(f'fcmp une double {x.v}, 0.0')}, {e.op(f'fcmp uge double {y.v}, 0.0')}")
    e.check(nonzero, "ZeroDivisionError", "0.0 cannot be raised to a negative power")
    out = e.call("pow", "double", ("double", x.v), ("double", y.v))
    _not_too_large(e, out, x.v, y.v)
    return Scalar(F64, weak, out)
