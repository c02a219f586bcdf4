"""Powers of complex numbers: NumPy's, and Python's."""

from __future__ import annotations

import math

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand
from ..emitter import Emitter
from ..values import Declined
from .complexes import made, number, operation, parts, python_quotient, truth

__all__ = ["power", "python_power"]


def _whole(n) -> int | None:
    """A known exponent, of any type, as an integer; None where it is none."""
    z = complex(n) if n is not None else math.nan
    return int(z.real) if z.imag == 0 and math.isfinite(z.real) and z.real == int(z.real) else None


def _squared(e: Emitter, x: Operand, n: int) -> Operand:
    """One times ``x ** n``, n positive, by squares."""
    out = number(e, x.type, 1)
    while n:
        if n & 1:
            out = operation(e, "*", out, x)
        n >>= 1
        if n:
            x = operation(e, "*", x, x)
    return out


def power(e: Emitter, x: Operand, y: Operand, n) -> Operand:
    """``x ** y`` of NumPy's numbers. ``n``: ``y`` where it is known. NumPy multiplies for whole numbers below 100; to the power of -1 its arrays and
    its numbers differ."""
    n = _whole(n)
    if n == 1:
        return x
    if n == 2:
        return operation(e, "*", x, x)
    if n is None or n == -1 or not -100 < n < 100:
        return _power_of_numbers(e, x, y)
    if n == 0:
        return number(e, x.type, 1)
    out = operation(e, "*", x, operation(e, "*", x, x)) if n == 3 else _squared(e, x, abs(n))
    if n < 0:
        out = operation(e, "/", number(e, x.type, 1), out)
    of_zero = number(e, x.type, 0 if n > 0 else complex(math.nan, math.nan))
    return e.select(truth(e, x), out, of_zero)


_SQUARES = """
define internal { double, double } @flb_complex_power(double %re, double %im, i64 %n) {
entry:
  %negative = icmp slt i64 %n, 0
  %minus = sub i64 0, %n
  %size = select i1 %negative, i64 %minus, i64 %n
  %least = icmp sgt i64 %n, 0
  %most = icmp slt i64 %n, 4
  %short = and i1 %least, %most
  br i1 %short, label %few, label %square
few:
  %again = phi i64 [ %n, %entry ], [ %fewer, %once ]
  %a = phi double [ %re, %entry ], [ %x, %once ]
  %b = phi double [ %im, %entry ], [ %y, %once ]
  %fewer = sub i64 %again, 1
  %last = icmp eq i64 %fewer, 0
  br i1 %last, label %end, label %once
once:
  %ra = fmul double %re, %a
  %ib = fmul double %im, %b
  %x = fsub double %ra, %ib
  %rb = fmul double %re, %b
  %ia = fmul double %im, %a
  %y = fadd double %rb, %ia
  br label %few
square:
  %left = phi i64 [ %size, %entry ], [ %half, %more ]
  %p = phi double [ %re, %entry ], [ %p2, %more ]
  %q = phi double [ %im, %entry ], [ %q2, %more ]
  %u = phi double [ 1.0, %entry ], [ %v, %more ]
  %t = phi double [ 0.0, %entry ], [ %w, %more ]
  %bit = and i64 %left, 1
  %odd = icmp ne i64 %bit, 0
  %up = fmul double %u, %p
  %tq = fmul double %t, %q
  %v1 = fsub double %up, %tq
  %uq = fmul double %u, %q
  %tp = fmul double %t, %p
  %w1 = fadd double %uq, %tp
  %v = select i1 %odd, double %v1, double %u
  %w = select i1 %odd, double %w1, double %t
  %half = lshr i64 %left, 1
  %none = icmp eq i64 %half, 0
  br i1 %none, label %end, label %more
more:
  %pp = fmul double %p, %p
  %qq = fmul double %q, %q
  %p2 = fsub double %pp, %qq
  %pq = fmul double %p, %q
  %q2 = fadd double %pq, %pq
  br label %square
end:
  %f = phi double [ %a, %few ], [ %v, %square ]
  %g = phi double [ %b, %few ], [ %w, %square ]
  %r1 = insertvalue { double, double } undef, double %f, 0
  %r2 = insertvalue { double, double } %r1, double %g, 1
  ret { double, double } %r2
}"""
"""A number to the power of ``n``, or of ``-n`` where that is negative: by products up to 3, by squares otherwise, as :func:`power` has it."""


def _power_of_numbers(e: Emitter, x: Operand, y: Operand) -> Operand:
    """``x ** y`` of two of NumPy's numbers, of which the exponent isn't known: by multiplication where it is whole and below 100, else C's."""
    if e.inside or e.noting or x.type.element is not llvm.DOUBLE:
        raise Declined("a power of complex numbers that isn't a small whole one")
    (a, b), (c, d) = parts(e, x), parts(e, y)
    pair = llvm.aggregate("{ double, double }")
    e.function("@flb_complex_power", _SQUARES)
    whole = e.op("and", e.cmp("oeq", e.intrinsic("trunc", c), c), e.cmp("oeq", d, 0.0))
    small = e.op("and", whole, e.cmp("olt", e.intrinsic("fabs", c), 100.0))
    nonzero = truth(e, x)
    multiplied, other, by_libm, of_zero, on = (e.new_label() for _ in range(5))

    def end(v: Operand) -> None:
        for name, value in zip(("re", "im"), parts(e, v)):
            e.set(f"@power.{name}", llvm.DOUBLE, value)
        e.jump(on)

    def of_pair(v: Operand) -> Operand:
        return made(e, *(e.field(v, k, llvm.DOUBLE) for k in (0, 1)))

    e.branch(e.op("and", small, e.op("or", nonzero, e.cmp("oeq", c, 0.0))), multiplied, other)
    e.label(multiplied)
    out = of_pair(e.call(pair, "@flb_complex_power", a, b, e.to("fptosi", c, llvm.I64)))
    end(e.select(e.cmp("olt", c, 0.0), operation(e, "/", number(e, x.type, 1), out), out))
    e.label(other)
    e.branch(nonzero, by_libm, of_zero)
    e.label(by_libm)
    end(of_pair(e.external("cpow", pair, a, b, c, d)))
    e.label(of_zero)
    # 0 for exponents with a positive real part, else no number: 0 / 0 raises the processor's flag.
    zero = e.op("fmul", a, a)
    rest = e.op("fdiv", zero, e.select(e.cmp("ogt", c, 0.0), 1.0, zero))
    end(made(e, rest, rest))
    e.label(on)
    return made(e, *(e.get(f"@power.{name}", llvm.DOUBLE) for name in ("re", "im")))


def python_power(e: Emitter, x: Operand, n) -> Operand:
    """``x ** n`` of Python's, for small whole exponents; where Python raises the loop ends."""
    n = _whole(n)
    if n is None or not -100 <= n <= 100:
        raise Declined("a power of a complex number that isn't a small whole one")
    out = _squared(e, x, abs(n))
    if n < 1:
        e.check(truth(e, out), "ZeroDivisionError", "0.0 to a negative or complex power")
        out = python_quotient(e, number(e, x.type, 1), out)
    for v in parts(e, out):
        size = e.intrinsic("fabs", v)
        e.check(e.cmp("une", size, math.inf), "OverflowError", "complex exponentiation")
    return out
