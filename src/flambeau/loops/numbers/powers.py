"""Powers of floats: NumPy's, and Python's, which raise errors and are libm's to the last bit."""

from __future__ import annotations

import math

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand
from ..emitter import F64, Emitter
from ..values import Scalar, libm, register_type

__all__ = ["power", "python_power"]

_BY_ROOTS = (-1.5, -1.0, -0.5, 0.5, 1.5)


def _by_root(e: Emitter, x: Operand, n: float) -> Operand:
    """A power by a square root and divisions: within 2 ulp, where pow takes ten times as long."""
    out = x if n in (1.5, 0.5) else e.op("fdiv", 1.0, x)
    if n == -1.0:
        return out
    root = e.intrinsic("sqrt", x)
    if n == 0.5:
        return root  # as NumPy has it
    if n == -0.5:
        out = e.op("fdiv", 1.0, root)
        zero = e.cmp("oeq", x, 0.0)
        out = e.select(zero, math.inf, out)
    else:
        out = e.op("fmul" if n > 0 else "fdiv", out, root)
    beyond = e.cmp("oeq", x, -math.inf)  # as for inf
    return e.select(beyond, math.inf if n > 0 else 0.0, out)


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
  %limit = fmul double %most, {llvm.constant(llvm.DOUBLE, 0.9 * 2.0**-52).text}
  %clear = fcmp olt double %size, %limit
  %normal = fcmp ogt double %x, {llvm.constant(llvm.DOUBLE, 1e-250).text}
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


def _fabs(e: Emitter, v: Operand) -> Operand:
    return e.intrinsic("fabs", v)


def _infinite(e: Emitter, v: Operand) -> Operand:
    return e.cmp("oeq", _fabs(e, v), math.inf)


def _not_too_large(e: Emitter, out: Operand, *given: Operand) -> None:
    """Python's OverflowError, where the result is infinite and nothing that was given is."""
    fine = e.cmp("ult", _fabs(e, out), math.inf)
    for v in given:
        fine = e.op("or", fine, _infinite(e, v))
    e.check(fine, "OverflowError", "(34, 'Numerical result out of range')")


def power(e: Emitter, x: Scalar, b: Scalar, weak) -> Scalar:
    """``x`` to a known power. ``weak``: see Scalar; where the number may be Python's, the loop ends if Python raises or gives a complex number."""
    n = b.const
    t = register_type(x.dtype)
    if n == 1:
        return Scalar(x.dtype, weak, x.v)
    if weak is False and n == 2:
        return Scalar(x.dtype, weak, e.op("fmul", x.v, x.v))
    if weak is False and n in _BY_ROOTS:
        return Scalar(x.dtype, weak, _by_root(e, x.v, n))
    if weak is not False and n != int(n):
        complex_one = "a power of a negative number in a compiled loop would be complex"
        e.check(e.cmp("uge", x.v, 0.0), "RuntimeError", complex_one)
    if weak is not False and n < 0:
        e.check(e.cmp("une", x.v, 0.0), "ZeroDivisionError", "0.0 cannot be raised to a negative power")
    if weak is not False and n == 0.5 and t is llvm.DOUBLE and not e.noting:
        e.function("flb_power_half", _HALF)
        return Scalar(x.dtype, weak, e.call(llvm.DOUBLE, "@flb_power_half", x.v))
    if n == 2:
        out: Operand = e.op("fmul", x.v, x.v)
    else:
        out = e.external(libm("pow", t), t, x.v, llvm.constant(t, n))
    if weak is not False and t is llvm.DOUBLE and abs(n) > 1:
        _not_too_large(e, out, x.v)
    return Scalar(x.dtype, weak, out)


def python_power(e: Emitter, x: Scalar, y: Scalar, weak) -> Scalar:
    """``x ** y`` of Python's floats; where Python raises or gives a complex number the loop ends."""
    whole = e.cmp("oeq", e.intrinsic("rint", y.v), y.v)
    real = e.op("or", whole, e.cmp("uge", x.v, 0.0))
    e.check(real, "RuntimeError", "a power of a negative number in a compiled loop would be complex")
    nonzero = e.op("or", e.cmp("une", x.v, 0.0), e.cmp("uge", y.v, 0.0))
    e.check(nonzero, "ZeroDivisionError", "0.0 cannot be raised to a negative power")
    out = e.external("pow", llvm.DOUBLE, x.v, y.v)
    _not_too_large(e, out, x.v, y.v)
    return Scalar(F64, weak, out)
