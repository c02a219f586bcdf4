"""Integers: Python's, kept in 64 bits, and NumPy's, which wrap around.

An operation of Python's that needs more bits ends the loop with OverflowError instead of a wrong number. NumPy's divisions by zero give zero,
Python's raise.
"""

from __future__ import annotations

import math

import numpy as np

from ...base.records import replace
from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand, integer
from ..emitter import I64, Emitter, constant
from ..faults import TOO_LONG, Limit
from ..values import Declined, Scalar, known, register_type
from . import bounds as between
from . import relations
from .bounds import LEAST, MOST, Bounds

__all__ = ["HIGHEST", "bit_count", "bit_length", "numpy_operation", "numpy_power", "python_operation"]

BITS = {np.dtype(f"{k}{n}"): 8 * n for k in "iu" for n in (1, 2, 4, 8)}
HIGHEST = 16  # power of NumPy's integers that is written out


def python_operation(e: Emitter, op: str, x: Scalar, y: Scalar, weak: bool | None, by_zero: tuple[str, str]) -> Scalar:
    """``x op y`` of Python's integers. ``by_zero``: the error of a division by zero, a type's name and its text."""
    if op in ("//", "%"):
        if not y.const and not between.excludes_zero(y.bounds):
            e.check(e.cmp("ne", y.v, 0), *by_zero)
        if y.bounds and y.bounds[0] == 0 < y.bounds[1]:
            y = replace(y, bounds=(1, y.bounds[1]))  # as has just been checked
        near = op == "%" and _is_near(x, y)
        if near:
            quotient = _near_remainder(e, x, y)
        elif x.bounds and x.bounds[0] >= 0 and y.bounds and y.bounds[0] > 0:
            quotient = e.op("udiv" if op == "//" else "urem", x.v, y.v)
        else:
            quotient = numpy_operation(e, op, I64, x.v, y.v, may_be_zero=False)
        below = between.below(op, x.below, x.bounds, y.below, y.bounds)
        return Scalar(I64, weak, quotient, between.of(op, x.bounds, y.bounds), below=below)
    if op == "**":
        return _power(e, x, y, weak)
    if op == "<<":
        bounds = between.of(op, x.bounds, y.bounds)
        if bounds and LEAST <= bounds[0] and bounds[1] <= MOST and y.bounds and y.bounds[1] < 63:
            return Scalar(I64, weak, e.op("shl", x.v, y.v), bounds)
        ok = e.cmp("ult", y.v, 63)
        e.check(ok, "OverflowError", TOO_LONG)
        v = e.op("shl", x.v, y.v)
        e.check(e.cmp("eq", e.op("ashr", v, y.v), x.v), "OverflowError", TOO_LONG)
        return Scalar(I64, weak, v, between.clipped(bounds))
    if op == ">>":
        if not (y.bounds and y.bounds[0] >= 0):
            e.check(e.cmp("sge", y.v, 0), "ValueError", "negative shift count")
        by = y.v if y.bounds and y.bounds[1] <= 63 else e.smaller(y.v, 63)
        return Scalar(I64, weak, e.op("ashr", x.v, by), between.of(op, x.bounds, y.bounds))
    if op in "&|^":
        v = e.op({"&": "and", "|": "or", "^": "xor"}[op], x.v, y.v)
        return Scalar(I64, weak, v, between.of(op, x.bounds, y.bounds))
    return _sum_or_product(e, op, x, y, weak)


def _is_near(x: Scalar, y: Scalar) -> bool:
    """Whether ``x`` is in ``[-y, 2 y)``, as in ``(i - 1) % n`` and ``(i + 1) % n``."""
    if not (x.bounds and y.bounds and y.bounds[0] > 0 and x.bounds[0] >= -y.bounds[0]):
        return False
    return x.bounds[1] < 2 * y.bounds[0] or _exceeds(x, y) < y.bounds[0]


def _exceeds(x: Scalar, y: Scalar) -> float:
    """The most by which ``x`` exceeds ``y``, which is a size."""
    return x.below[1] if x.below is not None and x.below[0] is y.v else math.inf


def _near_remainder(e: Emitter, x: Scalar, y: Scalar) -> Operand:
    """``x % y`` without a division."""
    v = x.v
    if x.bounds[1] >= y.bounds[0] and _exceeds(x, y) >= 0:
        v = e.select(e.cmp("sge", v, y.v), e.op("sub", v, y.v, "nsw"), v)
    if x.bounds[0] < 0:
        v = e.select(e.cmp("slt", x.v, 0), e.op("add", x.v, y.v, "nsw"), v)
    return v


def _sum_or_product(e: Emitter, op: str, x: Scalar, y: Scalar, weak: bool | None) -> Scalar:
    name = {"+": "add", "-": "sub", "*": "mul"}[op]
    bounds = between.of(op, x.bounds, y.bounds)
    known = (replace(x, sum_of=None), replace(y, sum_of=None)) if op == "+" else None
    below = between.below(op, x.below, x.bounds, y.below, y.bounds)
    near = relations.NONE
    if x.relations or y.relations:
        below = between.both_below(below, relations.size_above(op, x.relations, y.relations))
        bounds = relations.narrowed(bounds, op, x.relations, y.relations, below)
        near = relations.of(op, x.relations, x.bounds, y.relations, y.bounds, x.below)
    if bounds and LEAST <= bounds[0] and bounds[1] <= MOST:
        return Scalar(I64, weak, e.op(name, x.v, y.v, "nsw"), bounds, sum_of=known, below=below, relations=near)
    pair = e.call(llvm.aggregate("{ i64, i1 }"), f"@llvm.s{name}.with.overflow.i64", x.v, y.v)
    e.check(e.flip(e.field(pair, 1, llvm.I1)), "OverflowError", TOO_LONG)
    fitting = between.clipped(bounds)
    return Scalar(I64, weak, e.field(pair, 0, llvm.I64), fitting, sum_of=known, below=below, relations=near)


def _power(e: Emitter, x: Scalar, n: Scalar, weak) -> Scalar:
    if not isinstance(n.const, int):
        return _power_by_squares(e, x, n, weak)
    if not 0 <= n.const <= 63:
        raise Declined("an integer power whose exponent isn't a small constant")
    out = constant(1)
    for _ in range(n.const):
        out = _sum_or_product(e, "*", out, x, weak)
    return Scalar(I64, weak, out.v, out.bounds)


def _power_by_squares(e: Emitter, x: Scalar, n: Scalar, weak) -> Scalar:
    """With an exponent that isn't known, which isn't negative: the result would be a float."""
    if weak is not True:
        raise Declined("an integer power of numbers of which it isn't known whether they are Python's")
    if not (n.bounds and n.bounds[0] >= 0):
        e.check(e.cmp("sge", n.v, 0), "RuntimeError", Limit("a negative power of an integer in a compiled loop"))
    bounds = _power_bounds(x.bounds, n.bounds)
    if bounds is not None and bounds[0] == bounds[1]:
        return Scalar(I64, weak, integer(bounds[0]), bounds)
    if type(x.const) is int and x.const > 1 and x.const & (x.const - 1) == 0:
        step = x.const.bit_length() - 1
        if not (n.bounds and n.bounds[1] <= 62 // step):
            e.check(e.cmp("ult", n.v, 62 // step + 1), "OverflowError", TOO_LONG)
        return Scalar(I64, weak, e.op("shl", llvm.constant(llvm.I64, 1), e.op("mul", n.v, step)), bounds)
    e.function("@flb_power", _POWER)
    pair = e.call(llvm.aggregate("{ i64, i1 }"), "@flb_power", x.v, n.v)
    e.check(e.flip(e.field(pair, 1, llvm.I1)), "OverflowError", TOO_LONG)
    return Scalar(I64, weak, e.field(pair, 0, llvm.I64), bounds)


def _power_bounds(x: Bounds, n: Bounds) -> Bounds:
    """Of a power that fits in 64 bits."""
    if x is None or x[0] < 0:
        return None
    least, most = (max(n[0], 0), n[1]) if n is not None else (0, 64)
    low = x[0] ** min(least, 64) if x[0] > 0 else 0
    if low > MOST:
        return None
    return low, min(x[1] ** min(most, 64) if x[1] > 0 else 1, MOST)


# The power, and whether it needs more than 64 bits: the base is squared once more than it is used.
_POWER = """
define internal { i64, i1 } @flb_power(i64 %x, i64 %n) {
entry:
  br label %turn
turn:
  %k = phi i64 [ %n, %entry ], [ %k2, %on ]
  %b = phi i64 [ %x, %entry ], [ %b2, %on ]
  %r = phi i64 [ 1, %entry ], [ %r2, %on ]
  %long = phi i1 [ false, %entry ], [ %long2, %on ]
  %blong = phi i1 [ false, %entry ], [ %blong2, %on ]
  %more = icmp ne i64 %k, 0
  br i1 %more, label %on, label %end
on:
  %odd = trunc i64 %k to i1
  %f = select i1 %odd, i64 %b, i64 1
  %p = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %r, i64 %f)
  %r2 = extractvalue { i64, i1 } %p, 0
  %plong = extractvalue { i64, i1 } %p, 1
  %used = and i1 %odd, %blong
  %either = or i1 %long, %plong
  %long2 = or i1 %either, %used
  %s = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %b, i64 %b)
  %b2 = extractvalue { i64, i1 } %s, 0
  %slong = extractvalue { i64, i1 } %s, 1
  %blong2 = or i1 %blong, %slong
  %k2 = lshr i64 %k, 1
  br label %turn
end:
  %half = insertvalue { i64, i1 } undef, i64 %r, 0
  %out = insertvalue { i64, i1 } %half, i1 %long, 1
  ret { i64, i1 } %out
}
"""


def numpy_power(e: Emitter, x: Operand, n: int, dtype: np.dtype) -> Operand:
    """A power of NumPy's integer, which wraps around."""
    out: Operand = llvm.constant(register_type(dtype), 1)
    for _ in range(n):
        out = e.op("mul", out, x)
    return out


def numpy_operation(e: Emitter, op: str, dtype: np.dtype, x: Operand, y: Operand, may_be_zero: bool = True) -> Operand:
    """One element of the ufunc's loop for integers of ``dtype``. ``may_be_zero``: whether NumPy tells of a ``y`` that is zero."""
    signed = dtype.kind == "i"
    simple = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
    if op in simple:
        return e.op(simple[op], x, y)
    if op in ("<<", ">>"):
        within = e.cmp("ult", y, BITS[dtype])
        safe = e.select(within, y, 0)
        v = e.op("shl" if op == "<<" else "ashr" if signed else "lshr", x, safe)
        beyond = e.op("ashr", x, BITS[dtype] - 1) if op == ">>" and signed else 0
        return e.select(within, v, beyond)
    if op not in ("//", "%"):
        raise Declined(f"{op} of {dtype}")
    zero = e.cmp("eq", y, 0)
    if may_be_zero and not known(y):
        e.tell_of_division(zero)
    if not signed:
        v = e.op("udiv" if op == "//" else "urem", x, e.select(zero, 1, y))
        return e.select(zero, 0, v)
    minus = e.cmp("eq", y, -1)  # the least number divided by -1 traps
    safe = e.select(e.op("or", zero, minus), 1, y)
    q, r = e.op("sdiv", x, safe), e.op("srem", x, safe)
    differs = e.cmp("slt", e.op("xor", r, safe), 0)
    apart = e.op("and", e.cmp("ne", r, 0), differs)
    if op == "//":
        v = e.select(apart, e.op("sub", q, 1), q)
        v = e.select(minus, e.op("sub", 0, x), v)
    else:
        v = e.select(apart, e.op("add", r, safe), r)
        v = e.select(minus, 0, v)
    return e.select(zero, 0, v)


def _of_python(x: Scalar, what: str) -> None:
    if x.dtype != I64 or x.weak is not True:
        raise Declined(f"{what} of other numbers than Python's integers")


def bit_length(e: Emitter, x: Scalar) -> Scalar:
    _of_python(x, "bit_length()")
    size = e.abs(x.v)
    return Scalar(
        I64, True, e.op("sub", 64, e.external("llvm.ctlz.i64", llvm.I64, size, llvm.constant(llvm.I1, False))), (0, 64)
    )


def bit_count(e: Emitter, x: Scalar) -> Scalar:
    _of_python(x, "bit_count()")
    return Scalar(I64, True, e.intrinsic("ctpop", e.abs(x.v)), (0, 64))
