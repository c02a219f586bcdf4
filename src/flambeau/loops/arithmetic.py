"""Arithmetic of single numbers: Python's rules for Python's numbers, NumPy's (NEP 50) for NumPy's.

Python's integers are kept in 64 bits; an operation that needs more ends the loop with OverflowError instead of a wrong number. NumPy's
integers wrap around, its divisions by zero give infinities; Python's raise.
"""

from __future__ import annotations

import math
import sys
from types import EllipsisType

import numpy as np

from ..base.records import replace
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand, integer
from . import bounds as between
from . import complexes
from .bounds import LEAST, MOST, Bounds
from .emitter import BOOL, F64, I64, Emitter, constant
from .powers import power, python_power
from .values import Declined, Scalar, known, libm, register_type

__all__ = [
    "MATH",
    "absolute",
    "as_type",
    "binary",
    "cast",
    "choose",
    "compare",
    "invert",
    "negate",
    "stored",
    "to_bool",
    "to_float",
    "to_int",
]

BINARY = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": np.floor_divide, "%": np.remainder, "**": np.power,
    "<<": np.left_shift, ">>": np.right_shift, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
}  # fmt: skip
COMPARE = {
    "<": ("slt", "ult", "olt"), "<=": ("sle", "ule", "ole"), ">": ("sgt", "ugt", "ogt"), ">=": ("sge", "uge", "oge"),
    "==": ("eq", "eq", "oeq"), "!=": ("ne", "ne", "une"),
}  # fmt: skip
COMPARISONS = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
BITS = {np.dtype(f"{k}{n}"): 8 * n for k in "iu" for n in (1, 2, 4, 8)}
INSTEAD = "; run it with torch._dynamo.config.native_loops = False"  # what native loops have no place for
TOO_LONG = f"an integer of a compiled loop needs more than 64 bits{INSTEAD}"
# Flags of numbers, see Scalar; UNKNOWN: it isn't known whether it is Python's.
EXACT = 1 << 53  # integers up to this are floats
HIGHEST = 16  # power of NumPy's integers that is written out
NUMPYS, PYTHONS, KEPT, UNKNOWN = (llvm.constant(llvm.I8, n) for n in range(4))
EITHER = "division by zero in a compiled loop, by a number that may be Python's or NumPy's"


def cast(e: Emitter, s: Scalar, dtype: np.dtype, weak: bool | None | EllipsisType = ...) -> Scalar:
    """The number in another dtype, as C converts it."""
    weak = s.weak if weak is ... else weak
    if s.dtype == dtype:
        return replace(s, weak=weak)
    if "U" in (s.kind, dtype.kind):
        raise Declined("a character where a number is wanted")
    if s.const is not None and (dtype.kind == "c" or (dtype.kind in "fb" and s.kind != "c")):
        return Scalar(dtype, weak, constant(dtype.type(s.const)).v, None, s.const)
    if dtype.kind == "c":
        of = complexes.part(dtype)
        v = complexes.from_float(e, cast(e, s, of).v) if s.kind != "c" else complexes.width(e, s.v, dtype)
        return Scalar(dtype, weak, v)
    if s.kind == "c":
        if dtype.kind != "b":
            raise Declined(f"a complex number as {dtype}")
        return Scalar(dtype, weak, complexes.truth(e, s.v))
    a, b, kind = register_type(s.dtype), register_type(dtype), s.kind + dtype.kind
    if dtype.kind == "b":
        v = e.cmp("une" if s.kind == "f" else "ne", s.v, 0)
    elif kind in ("ff",):
        v = e.to("fpext" if dtype.itemsize > s.dtype.itemsize else "fptrunc", s.v, b)
    elif dtype.kind == "f":
        v = e.to("sitofp" if s.kind == "i" else "uitofp", s.v, b)
    elif s.kind == "f" and dtype == np.uint64:
        v = e.call(b, f"@llvm.fptoui.sat.i64.{a.suffix}", s.v)
    elif s.kind == "f":
        # As x86 does it: to 64 bits, or to 32 for shorter ones; nan and what is out of range become the least number.
        bits = 64 if dtype.itemsize == 8 or dtype == np.uint32 else 32
        end = 2.0 ** (bits - 1)
        low = e.cmp("oge", s.v, -end)
        inside = e.op("and", low, e.cmp("olt", s.v, end))
        v = e.select(inside, e.to("fptosi", s.v, llvm.I64 if bits == 64 else llvm.I32), -(1 << bits - 1))
        v = e.to("trunc", v, b) if 8 * dtype.itemsize < bits else v
    elif s.kind == "b" or dtype.itemsize > s.dtype.itemsize:
        v = e.to("sext" if s.kind == "i" else "zext", s.v, b)
    elif dtype.itemsize < s.dtype.itemsize:
        v = e.to("trunc", s.v, b)
    else:
        v = s.v
    bounds = s.bounds if s.kind in "iu" else (0, 1) if s.kind == "b" else None
    if dtype == I64 and bounds is None and s.kind in "iu" and s.dtype.itemsize < 8:
        bounds = int(np.iinfo(s.dtype).min), int(np.iinfo(s.dtype).max)
    return Scalar(dtype, weak, v, bounds if dtype == I64 else None)


def _given(s: Scalar, weak: bool):
    """A number as ufunc.resolve_dtypes wants it: its dtype, or Python's type for a weak one. Python's truth values are NumPy's there."""
    if not weak or s.kind == "b":
        return s.dtype
    return {"i": int, "u": int, "f": float, "c": complex}[s.kind]


def loop_dtypes(uf, *operands: Scalar) -> tuple[np.dtype, np.dtype]:
    """(dtype in which a ufunc computes, dtype of its result) for these numbers. Declined when that depends on which of them are Python's."""
    found = set()
    for choice in range(1 << sum(s.weak is None for s in operands)):
        given, at = [], 0
        for s in operands:
            weak = s.weak
            if weak is None:
                weak = bool(choice >> at & 1)
                at += 1
            given.append(_given(s, weak))
        if all(isinstance(g, type) for g in given):
            given = [np.dtype(g) for g in given]
        try:
            dtypes = uf.resolve_dtypes((*given, None))
        except TypeError as error:
            raise Declined(f"np.{uf.__name__}: {error}") from None
        found.add((dtypes[0], dtypes[-1]))
        if any(d != dtypes[0] for d in dtypes[1:-1]):
            raise Declined(f"np.{uf.__name__} of different dtypes")
    if len(found) > 1:
        raise Declined(f"np.{uf.__name__}: the dtype depends on whether a number is Python's or NumPy's")
    return found.pop()


def fitting(e: Emitter, s: Scalar, dtype: np.dtype) -> Operand:
    """The number in the loop's dtype. A Python integer that doesn't fit is NumPy's OverflowError."""
    if s.weak is True and s.kind == "i" and dtype.kind in "iu" and dtype != I64:
        info = np.iinfo(dtype)
        if s.const is not None and not info.min <= s.const <= info.max:
            raise Declined(f"the integer {s.const} in {dtype}")
        if s.const is None and not (s.bounds and info.min <= s.bounds[0] and s.bounds[1] <= info.max):
            if dtype == np.uint64:
                ok = e.cmp("sge", s.v, 0)
            else:
                ok = e.op("and", e.cmp("sge", s.v, info.min), e.cmp("sle", s.v, info.max))
            e.check(ok, "OverflowError", f"Python integer {{0}} out of bounds for {dtype}", s.v)
    return cast(e, s, dtype).v


def stored(e: Emitter, s: Scalar, dtype: np.dtype) -> Operand:
    """The number as an element of an array of ``dtype``, to which it is assigned by itself. Integers have to hold it: NumPy goes through int()."""
    if dtype.kind not in "iu" or s.kind not in "iuf":
        return cast(e, s, dtype).v
    if s.weak is not False and s.kind == "i":
        return fitting(e, s if s.weak else Scalar(s.dtype, True, s.v, s.bounds, s.const), dtype)
    info, text = np.iinfo(dtype), f"a number out of bounds for {dtype} is stored in a compiled loop"
    if s.kind == "f":
        x = cast(e, s, F64)
        # The next numbers outside that are doubles: what lies between them and the ends is cut off.
        low = e.cmp("oge" if dtype == I64 else "ogt", x.v, float(info.min) - (dtype != I64))
        high = e.cmp("olt", x.v, float(info.max + 1))
        e.check(e.op("and", low, high), "OverflowError", text)
        return e.to(f"fpto{'si' if dtype.kind == 'i' else 'ui'}", x.v, register_type(dtype))
    n, given = cast(e, s, I64), np.iinfo(s.dtype)
    least, most = n.bounds or (int(given.min), int(given.max))
    if s.dtype == np.uint64 and dtype != np.uint64:
        e.check(e.cmp("ule", s.v, info.max), "OverflowError", text)
    elif least < info.min:
        e.check(e.cmp("sge", n.v, info.min), "OverflowError", text)
    if most > info.max and s.dtype != np.uint64:
        e.check(e.cmp("sle", n.v, info.max), "OverflowError", text)
    return cast(e, s, dtype).v


def as_type(e: Emitter, s: Scalar, dtype: np.dtype) -> Scalar:
    """``np.int32(number)`` and the like."""
    v = cast(e, s, dtype).v if s.weak is False and s.kind != "f" else stored(e, s, dtype)
    return Scalar(dtype, False, v)


def both_python(a: Scalar, b: Scalar) -> bool:
    return a.weak is not False and b.weak is not False


def _as_python_takes_it(a: Scalar, b: Scalar) -> Scalar:
    """NumPy's float64 on the right of a complex number of Python's is a float of Python's: it is asked first."""
    first = a.kind == "c" and a.weak is not False and b.dtype == F64 and not b.weak
    return replace(b, weak=True, flag=None) if first else b


def flag_of(e: Emitter, s: Scalar) -> Operand | None:
    """The flag that tells whether a number is Python's, see Scalar; None when it isn't known."""
    return NUMPYS if s.weak is False else PYTHONS if s.weak else s.flag


def met(e: Emitter, s: Scalar, dtype: np.dtype) -> Scalar:
    """A Python number in a variable that elsewhere holds numbers of another dtype (see values.join). It has to be exact there."""
    out = cast(e, s, dtype)
    back = s if s.kind == "c" else cast(e, cast(e, s, complexes.part(dtype)) if dtype.kind == "c" else out, s.dtype)
    if s.kind == "c":
        return replace(out, weak=None, flag=PYTHONS)
    if s.kind == "i":
        same = e.cmp("eq", back.v, s.v)
        if dtype.kind == "u":
            same = e.op("and", same, e.cmp("sge", s.v, 0))
    else:
        same = e.cmp("ueq", back.v, s.v)
    e.check(same, "RuntimeError", f"a Python number that {dtype} doesn't hold, in a compiled loop")
    return replace(out, weak=None, flag=KEPT if s.kind == "i" and dtype.kind in "fc" else PYTHONS)


def binary(e: Emitter, op: str, a: Scalar, b: Scalar) -> Scalar:
    """``a op b``."""
    if op in ("//", "%", "<<", ">>") and b.weak and b.dtype == I64 and b.bounds and b.bounds[0] == b.bounds[1]:
        b = constant(b.bounds[0])  # quotients by a number in the text are products
    out = _binary(e, op, a, b)
    if op in "+-" and out.dtype == I64 and out.weak:
        if a.turn is not None and type(b.const) is int:
            return replace(out, turn=a.turn + (b.const if op == "+" else -b.const))
        if b.turn is not None and type(a.const) is int and op == "+":
            return replace(out, turn=b.turn + a.const)
    if out.weak is None and out.kind in "fc":
        x, y = flag_of(e, a), flag_of(e, _as_python_takes_it(a, b))
        if x is not None and y is not None and "i" not in (a.kind, b.kind):
            return replace(out, flag=_met_flag(e, x, y))
    return out


def _met_flag(e: Emitter, x: Operand, y: Operand) -> Operand:
    """Whose the result of two floats, or complex numbers, is: NumPy's (0) if one is NumPy's, Python's (1) if one is and the other is any of
    Python's; of two integers that are kept as floats it isn't known."""

    def either(v: Operand) -> Operand:
        return e.op("or", e.cmp("eq", x, v), e.cmp("eq", y, v))

    lost = e.op("or", e.flip(either(PYTHONS)), either(UNKNOWN))
    return e.select(either(NUMPYS), NUMPYS, e.select(lost, UNKNOWN, PYTHONS))


def _binary(e: Emitter, op: str, a: Scalar, b: Scalar) -> Scalar:
    b = _as_python_takes_it(a, b)
    weak = True if a.weak and b.weak else None if both_python(a, b) else False
    if both_python(a, b):
        return _python(e, op, a, b, weak)
    compute, result = loop_dtypes(BINARY[op], a, b)
    if op == "**" and b.const is not None and compute.kind == "f":
        return power(e, cast(e, a, compute), b, weak)
    if op == "**" and compute.kind in "iu" and type(b.const) is int and 0 <= b.const <= HIGHEST:
        return Scalar(result, weak, _whole_power(e, fitting(e, a, compute), b.const, compute))
    if op == "**" and compute.kind == "c":
        return Scalar(result, weak, complexes.power(e, cast(e, a, compute).v, b.const))
    x, y = fitting(e, a, compute), fitting(e, b, compute)
    rest = op == "%" and compute == I64 and type(b.const) is int and b.const > 0
    return Scalar(result, weak, numpy_operation(e, op, compute, x, y), (0, b.const - 1) if rest else None)


def _whole_power(e: Emitter, x: Operand, n: int, dtype: np.dtype) -> Operand:
    """A power of NumPy's integer, which wraps around."""
    out: Operand = llvm.constant(register_type(dtype), 1)
    for _ in range(n):
        out = e.op("mul", out, x)
    return out


def _python(e: Emitter, op: str, a: Scalar, b: Scalar, weak) -> Scalar:
    if a.kind == "b" and b.kind == "b" and op in "&|^":
        return Scalar(BOOL, weak, e.op({"&": "and", "|": "or", "^": "xor"}[op], a.v, b.v))
    if "c" in (a.kind, b.kind):
        return _python_complex(e, op, a, b, weak)
    if any(s.dtype not in (BOOL, I64, F64) for s in (a, b)):
        raise Declined(f"{op} of numbers of which it isn't known whether they are Python's")
    error = ("ZeroDivisionError", None) if weak else ("RuntimeError", EITHER)
    if "f" in (a.kind, b.kind) or op == "/":
        if op in ("<<", ">>", "&", "|", "^"):
            raise Declined(f"{op} of floats")
        x, y = cast(e, a, F64), cast(e, b, F64)
        if op == "**":
            return python_power(e, x, y, weak) if b.const is None else power(e, x, b, weak)
        if op in ("/", "//", "%") and not b.const and not between.excludes_zero(b.bounds):
            text = {
                "/": "division by zero" if a.kind == b.kind == "i" else "float division by zero",
                "//": "float floor division by zero",
                "%": "float modulo",
            }[op]
            e.check(e.cmp("une", y.v, 0.0), error[0], error[1] or text)
        return Scalar(F64, weak, numpy_operation(e, op, F64, x.v, y.v))
    x, y = cast(e, a, I64), cast(e, b, I64)
    if op in ("//", "%"):
        if not b.const and not between.excludes_zero(y.bounds):
            e.check(
                e.cmp("ne", y.v, 0),
                error[0],
                error[1] or "integer division or modulo by zero"
                if op == "//"
                else error[1] or "integer modulo by zero",
            )
        if y.bounds and y.bounds[0] == 0 < y.bounds[1]:
            y = replace(y, bounds=(1, y.bounds[1]))  # as has just been checked
        if x.bounds and x.bounds[0] >= 0 and y.bounds and y.bounds[0] > 0:
            quotient: Operand = e.op("udiv" if op == "//" else "urem", x.v, y.v)
        else:
            quotient = numpy_operation(e, op, I64, x.v, y.v, may_be_zero=False)
        below = between.below(op, x.below, x.bounds, y.below, y.bounds)
        return Scalar(I64, weak, quotient, between.of(op, x.bounds, y.bounds), below=below)
    if op == "**":
        return _integer_power(e, x, b, weak)
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
    name = {"+": "add", "-": "sub", "*": "mul"}[op]
    bounds = between.of(op, x.bounds, y.bounds)
    known = (x.v, b.const) if op == "+" and type(b.const) is int else None
    below = between.below(op, x.below, x.bounds, y.below, y.bounds)
    if bounds and LEAST <= bounds[0] and bounds[1] <= MOST:
        return Scalar(I64, weak, e.op(name, x.v, y.v, "nsw"), bounds, sum_of=known, below=below)
    pair = e.call(llvm.aggregate("{ i64, i1 }"), f"@llvm.s{name}.with.overflow.i64", x.v, y.v)
    e.check(e.flip(e.field(pair, 1, llvm.I1)), "OverflowError", TOO_LONG)
    return Scalar(I64, weak, e.field(pair, 0, llvm.I64), between.clipped(bounds), sum_of=known, below=below)


def _python_complex(e: Emitter, op: str, a: Scalar, b: Scalar, weak) -> Scalar:
    """Python's complex numbers, or those that may be Python's, or integers that are none: then what gives the same for all of them."""
    c128 = complexes.C128
    if any(s.kind == "c" and s.dtype != c128 for s in (a, b)) or (
        sys.version_info >= (3, 14) and weak is True and {a.kind, b.kind} != {"c"}
    ):
        raise Declined(f"{op} of these complex numbers")
    if weak is None and op not in "+*":
        raise Declined(f"{op} of complex numbers of which it isn't known whether they are Python's")
    x, y = cast(e, a, c128).v, cast(e, b, c128).v
    if op == "**":
        return Scalar(c128, weak, complexes.python_power(e, x, b.const))
    if op == "/":
        e.check(complexes.truth(e, y), "ZeroDivisionError", "complex division by zero")
        return Scalar(c128, weak, complexes.python_quotient(e, x, y))
    return Scalar(c128, weak, complexes.operation(e, op, x, y))


def _integer_power(e, x: Scalar, b: Scalar, weak) -> Scalar:
    if not isinstance(b.const, int):
        return _power_by_squares(e, x, cast(e, b, I64), weak)
    if not 0 <= b.const <= 63:
        raise Declined("an integer power whose exponent isn't a small constant")
    out = constant(1)
    for _ in range(b.const):
        out = _python(e, "*", out, x, weak)
    return Scalar(I64, weak, out.v, out.bounds)


def _power_by_squares(e: Emitter, x: Scalar, n: Scalar, weak) -> Scalar:
    """With an exponent that isn't known, which isn't negative: the result would be a float."""
    if weak is not True:
        raise Declined("an integer power of numbers of which it isn't known whether they are Python's")
    if not (n.bounds and n.bounds[0] >= 0):
        e.check(e.cmp("sge", n.v, 0), "RuntimeError", f"a negative power of an integer in a compiled loop{INSTEAD}")
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


def numpy_operation(e: Emitter, op: str, dtype: np.dtype, x: Operand, y: Operand, may_be_zero: bool = True) -> Operand:
    """One element of the ufunc's loop for ``dtype``. ``may_be_zero``: whether NumPy tells of an integer ``y`` that is zero."""
    t = register_type(dtype)
    if dtype.kind == "c":
        return complexes.operation(e, op, x, y)
    if dtype.kind == "f":
        simple = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
        if op in simple:
            return e.op(simple[op], x, y)
        if op == "**":
            return e.external(libm("pow", t), t, x, y)
        return _float_division(e, op, x, y)
    if dtype.kind == "b":
        if op in "&|^+*":
            return e.op({"&": "and", "|": "or", "^": "xor", "+": "or", "*": "and"}[op], x, y)
        raise Declined(f"{op} of bools")
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


def _float_division(e: Emitter, op: str, x: Operand, y: Operand) -> Operand:
    """``//`` and ``%`` of floats as npy_divmod and Python's float_divmod have them."""
    mod = e.op("frem", x, y)
    nonzero = e.cmp("une", mod, 0.0)
    apart = e.op("xor", e.cmp("olt", y, 0.0), e.cmp("olt", mod, 0.0))
    apart = e.op("and", nonzero, apart)
    moved = e.select(apart, e.op("fadd", mod, y), mod)
    if op == "%":
        return e.select(nonzero, moved, e.intrinsic("copysign", 0.0, y))
    div = e.op("fdiv", e.op("fsub", x, mod), y)
    div = e.select(apart, e.op("fsub", div, 1.0), div)
    down = e.intrinsic("floor", div)
    more = e.cmp("ogt", e.op("fsub", div, down), 0.5)
    down = e.select(more, e.op("fadd", down, 1.0), down)
    quotient = e.op("fdiv", x, y)
    v = e.select(e.cmp("une", div, 0.0), down, e.intrinsic("copysign", 0.0, quotient))
    return e.select(e.cmp("oeq", y, 0.0), quotient, v)


def compare(e: Emitter, op: str, a: Scalar, b: Scalar) -> Scalar:
    """``a op b``; integers of all types are compared as the numbers they are."""
    if "U" in (a.kind, b.kind):
        if a.kind != b.kind:
            raise Declined("a comparison of a character with a number")
        return Scalar(BOOL, True, e.cmp(COMPARE[op][1], a.v, b.v))
    b = _as_python_takes_it(a, b)
    weak = True if a.weak and b.weak else None if both_python(a, b) else False
    if "c" in (a.kind, b.kind):
        dtype = complexes.C128 if both_python(a, b) else loop_dtypes(np.equal, a, b)[0]
        return Scalar(BOOL, weak, complexes.equal(e, op, cast(e, a, dtype).v, cast(e, b, dtype).v))
    if "f" in (a.kind, b.kind):
        if both_python(a, b):
            dtype = F64
        else:
            dtype, _ = loop_dtypes(np.less, a, b)
        x, y = cast(e, a, dtype).v, cast(e, b, dtype).v
        return Scalar(BOOL, weak, e.cmp(COMPARE[op][2], x, y))
    if np.uint64 in (a.dtype, b.dtype):
        if a.dtype != b.dtype:
            raise Declined("a comparison of unsigned and signed 64-bit integers")
        return Scalar(BOOL, weak, e.cmp(COMPARE[op][1], a.v, b.v))
    x, y = cast(e, a, I64).v, cast(e, b, I64).v
    return Scalar(BOOL, weak, e.cmp(COMPARE[op][0], x, y))


def negate(e: Emitter, s: Scalar) -> Scalar:
    if s.const is not None:
        return constant(-s.const, s.weak)
    if s.kind == "c" and s.weak is None:
        raise Declined("the negative of a complex number of which it isn't known whether it is Python's")
    if s.kind in "fc":
        return Scalar(s.dtype, s.weak, e.neg(s.v))
    if s.weak is not False:
        return binary(e, "-", constant(0), s)
    if s.kind == "b":
        raise Declined("the negative of a NumPy bool")
    return Scalar(s.dtype, False, e.op("sub", 0, s.v))


def invert(e: Emitter, s: Scalar) -> Scalar:
    if s.kind in "fc" or (s.kind == "b" and s.weak is not False):
        raise Declined("~ of this number")
    return Scalar(s.dtype, s.weak, e.op("xor", s.v, -1))


def absolute(e: Emitter, s: Scalar) -> Scalar:
    if s.kind == "c":
        out = Scalar(complexes.part(s.dtype), s.weak, complexes.absolute(e, s), None, None, s.flag)
        if s.weak is not False:
            whole = e.cmp("olt", out.v, math.inf)
            e.check(whole, "OverflowError", "absolute value too large")
        return out
    if s.kind == "f":
        return Scalar(s.dtype, s.weak, e.intrinsic("fabs", s.v))
    if s.kind == "u" or (s.kind == "b" and s.weak is False):
        return s
    s = cast(e, s, I64) if s.kind == "b" else s
    minus = negate(e, s)
    return Scalar(s.dtype, s.weak, e.select(e.cmp("slt", s.v, 0), minus.v, s.v))


def to_bool(e: Emitter, s: Scalar) -> Operand:
    """What ``if`` asks: an i1."""
    return cast(e, s, BOOL).v


def to_int(e: Emitter, s: Scalar) -> Scalar:
    """int(x)"""
    if s.kind == "c":
        raise Declined("int() of a complex number")
    if s.kind == "f":
        x = cast(e, s, F64)
        e.check(e.cmp("ord", x.v, 0.0), "ValueError", "cannot convert float NaN to integer")
        inside = e.cmp("olt", absolute(e, x).v, 2.0**63)
        e.check(
            inside,
            "OverflowError",
            "cannot convert float infinity to integer, or one of more than 64 bits in a compiled loop",
        )
        return Scalar(I64, True, e.to("fptosi", x.v, llvm.I64))
    if s.dtype == np.uint64:
        raise Declined("int() of an unsigned 64-bit integer")
    small = s.kind == "u" or s.dtype.itemsize < 8
    bounds = s.bounds
    if bounds is None and small and s.kind in "iu":
        bounds = (int(np.iinfo(s.dtype).min), int(np.iinfo(s.dtype).max))
    bounds = (0, 1) if s.kind == "b" else bounds
    return Scalar(I64, True, cast(e, s, I64).v, bounds, s.const and int(s.const), below=s.below)


def _cut(e: Emitter, s: Scalar) -> Scalar:
    """math.trunc(x): of NumPy's scalars, only float64 has the method."""
    if s.weak is not True and s.dtype != F64:
        raise Declined(f"math.trunc of a {s.dtype}")
    return to_int(e, s)


def to_float(e: Emitter, s: Scalar) -> Scalar:
    """float(x)"""
    return cast(e, s, F64, True)


def choose(e: Emitter, greater: bool, values: list[Scalar]) -> Scalar:
    """Python's max() and min() of several numbers: the first unless a later one is better."""
    if any(v.kind == "c" for v in values):
        raise Declined("max or min of complex numbers")
    out = values[0]
    for v in values[1:]:
        better = compare(e, ">" if greater else "<", v, out).v
        if v.dtype != out.dtype:
            if {v.dtype, out.dtype} != {I64, F64} or not (v if v.dtype == I64 else out).weak:
                raise Declined("max or min of numbers of different types")
            v, out = (_exact(e, s) if s.dtype == I64 else cast(e, s, F64, None) for s in (v, out))
        flag = None
        if v.weak is not out.weak or v.weak is None:
            x, y = flag_of(e, v), flag_of(e, out)
            flag = e.select(better, x, y) if x is not None and y is not None else None
        bounds = None
        if v.dtype == I64 and (v.bounds or out.bounds):
            ends = [s.bounds or between.ALL for s in (v, out)]
            best = max if greater else min
            bounds = best(x[0] for x in ends), best(x[1] for x in ends)
        weak = v.weak if v.weak is out.weak else None
        below = (between.either_below if greater else between.both_below)(out.below, v.below)
        out = Scalar(v.dtype, weak, e.select(better, v.v, out.v), bounds, None, flag, below=below)
    return out


def _exact(e: Emitter, s: Scalar) -> Scalar:
    """Python's int as a float of the same value."""
    if s.bounds and -EXACT <= s.bounds[0] and s.bounds[1] <= EXACT:
        return cast(e, s, F64, None)
    out = met(e, s, F64)
    return replace(out, weak=None, flag=None)


def extreme(e: Emitter, greater: bool, a: Scalar, b: Scalar) -> Scalar:
    """np.maximum and np.minimum: nan when either is."""
    compute, result = loop_dtypes(np.maximum, a, b)
    if compute.kind == "c":
        raise Declined("the larger of complex numbers")
    x, y = fitting(e, a, compute), fitting(e, b, compute)
    if compute.kind == "f":
        keep = e.cmp("oge" if greater else "ole", x, y)
        keep = e.op("or", keep, e.cmp("uno", x, x))
    elif compute.kind == "b":
        return Scalar(result, False, e.op("or" if greater else "and", x, y))
    else:
        keep = e.cmp(f"{'s' if compute.kind == 'i' else 'u'}{'ge' if greater else 'le'}", x, y)
    return Scalar(result, False, e.select(keep, x, y))


_LIBM = {
    np.sin: "sin", np.cos: "cos", np.tan: "tan", np.exp: "exp", np.log: "log", np.log2: "log2", np.log10: "log10", np.exp2: "exp2",
    np.expm1: "expm1", np.log1p: "log1p", np.sinh: "sinh", np.cosh: "cosh", np.tanh: "tanh", np.arcsin: "asin", np.arccos: "acos",
    np.arctan: "atan",
}  # fmt: skip
_EXPANDED = ("exp", "exp2", "expm1", "log", "log2", "log1p", "tanh")  # straight-line code, which LLVM vectorises
_INTRINSIC = {np.sqrt: "sqrt", np.floor: "floor", np.ceil: "ceil", np.trunc: "trunc", np.rint: "rint", np.fabs: "fabs"}


def _one(uf, external: str | None, intrinsic: str = ""):
    def call(e: Emitter, x: Scalar) -> Scalar:
        compute, result = loop_dtypes(uf, x)
        if compute.kind == "c" and uf in complexes.MATH:
            return Scalar(result, False, complexes.MATH[uf](e, cast(e, x, compute), result))
        if compute.kind != "f" or compute.itemsize < 4:
            if compute.kind in "iu" and uf in (np.floor, np.ceil, np.trunc):
                return Scalar(compute, False, fitting(e, x, compute))
            raise Declined(f"np.{uf.__name__} of {x.dtype}")
        t, v = register_type(compute), fitting(e, x, compute)
        if external in _EXPANDED:
            return Scalar(result, False, e.expanded(external, t.suffix, v))
        made = e.intrinsic(intrinsic, v) if external is None else e.external(libm(external, t), t, v)
        return Scalar(result, False, made)

    return call


def _two(uf, name: str):
    def call(e: Emitter, x: Scalar, y: Scalar) -> Scalar:
        compute, result = loop_dtypes(uf, x, y)
        if compute.kind != "f" or compute.itemsize < 4:
            raise Declined(f"np.{uf.__name__} of {x.dtype} and {y.dtype}")
        t = register_type(compute)
        v = e.external(libm(name, t), t, fitting(e, x, compute), fitting(e, y, compute))
        return Scalar(result, False, v)

    return call


def _operator(op: str):
    def call(e, x, y):
        compute, result = loop_dtypes(BINARY[op], x, y)
        return Scalar(result, False, numpy_operation(e, op, compute, fitting(e, x, compute), fitting(e, y, compute)))

    return call


def _python_math(name: str, external: str | None, valid=None, integer: bool = False, magnitude: bool = False):
    """A function of the module math: the C library's, or LLVM's of the same name. ``valid``: (comparison, number) that its argument, or
    ``magnitude`` of it, has to meet."""

    def call(e: Emitter, x: Scalar) -> Scalar:
        v = cast(e, x, F64, True).v
        if valid is not None:
            tested = e.intrinsic("fabs", v) if magnitude else v
            e.check(e.cmp(valid[0], tested, valid[1]), "ValueError", "math domain error")
        out = e.external(external, llvm.DOUBLE, v) if external else e.intrinsic(name, v)
        if name in ("exp", "sinh", "cosh", "expm1"):
            finite = e.cmp("olt", e.intrinsic("fabs", out), math.inf)
            given = e.cmp("olt", e.intrinsic("fabs", v), math.inf)
            e.check(e.op("or", finite, e.flip(given)), "OverflowError", "math range error")
        s = Scalar(F64, True, out)
        return to_int(e, s) if integer else s

    return call


def _python_math_of_two(external: str):
    def call(e: Emitter, x: Scalar, y: Scalar) -> Scalar:
        x, y = cast(e, x, F64, True), cast(e, y, F64, True)
        return Scalar(F64, True, e.external(external, llvm.DOUBLE, x.v, y.v))

    return call


def _finite_python_math(external: str):
    """A function of two finite numbers, whose result is finite where Python doesn't raise."""

    def call(e: Emitter, x: Scalar, y: Scalar) -> Scalar:
        x, y = cast(e, x, F64, True), cast(e, y, F64, True)
        out = e.external(external, llvm.DOUBLE, x.v, y.v)
        for v in (x.v, y.v, out):
            e.check(e.cmp("olt", e.intrinsic("fabs", v), math.inf), "ValueError", "math domain error")
        return Scalar(F64, True, out)

    return call


def _of_floats(test):
    """A test of floats that is the same for all integers."""

    def call(e: Emitter, x: Scalar) -> Scalar:
        if x.kind == "c":
            of = {_nan: complexes.is_nan, _finite: complexes.is_finite}.get(test)
            if of is None:
                raise Declined("np.isinf of a complex number")
            return of(e, x)
        if x.kind != "f":
            return constant(np.bool_(test is _finite))
        return Scalar(BOOL, False, test(e, x))

    return call


def _nan(e: Emitter, x: Scalar) -> Operand:
    return e.cmp("uno", x.v, 0.0)


def _infinite(e: Emitter, x: Scalar) -> Operand:
    return e.cmp("oeq", absolute(e, x).v, math.inf)


def _finite(e: Emitter, x: Scalar) -> Operand:
    return e.cmp("olt", absolute(e, x).v, math.inf)


def sign(e: Emitter, x: Scalar) -> Scalar:
    x = Scalar(np.dtype(np.int64) if x.kind == "i" and x.weak else x.dtype, False, x.v)
    if x.kind in "bc":
        raise Declined("np.sign of bools or complex numbers")
    if x.kind == "f":
        up, down = e.cmp("ogt", x.v, 0.0), e.cmp("olt", x.v, 0.0)
        v = e.select(up, 1.0, x.v)
        v = e.select(down, -1.0, v)
        zero = e.cmp("oeq", x.v, 0.0)
        return Scalar(x.dtype, False, e.select(zero, 0.0, v))
    nonzero = e.to("zext", e.cmp("ne", x.v, 0), register_type(x.dtype))
    if x.kind == "u":
        return Scalar(x.dtype, False, nonzero)
    below = e.cmp("slt", x.v, 0)
    return Scalar(x.dtype, False, e.select(below, -1, nonzero))


def rounded(e: Emitter, x: Scalar) -> Scalar:
    """np.round(x)"""
    if x.kind in "iu":
        return Scalar(x.dtype, False, x.v, x.bounds)
    return _one(np.rint, None, "rint")(e, x)


def rounded_to(e: Emitter, x: Scalar, digits: Scalar) -> Scalar:
    """round(x, digits) and np.round(x, digits) of NumPy's floats."""
    if x.dtype != F64 or x.weak is not False or type(digits.const) is not int or abs(digits.const) > 15:
        raise Declined("round() to digits, of other numbers than NumPy's floats")
    factor = 10.0 ** abs(digits.const)
    up, down = ("fmul", "fdiv") if digits.const >= 0 else ("fdiv", "fmul")
    return Scalar(F64, False, e.op(down, e.intrinsic("rint", e.op(up, x.v, factor)), factor))


def item(e: Emitter, x: Scalar) -> Scalar:
    """``x.item()`` of a number of NumPy's."""
    if x.weak is not False or x.kind not in "bif" or x.dtype.itemsize not in (1, 2, 4, 8):
        raise Declined("item() of this number")
    return cast(e, x, {"b": BOOL, "i": I64, "f": F64}[x.kind], True)


def is_integer(e: Emitter, x: Scalar) -> Scalar:
    if x.kind != "f":
        raise Declined("is_integer() of an integer")
    whole = e.cmp("oeq", e.intrinsic("floor", x.v), x.v)
    return Scalar(BOOL, True, e.op("and", whole, e.cmp("olt", e.intrinsic("fabs", x.v), math.inf)))


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


def clip(e: Emitter, x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    return extreme(e, False, extreme(e, True, Scalar(x.dtype, False, x.v), low), high)


def _logical(op: str):
    def call(e, x, y):
        return Scalar(BOOL, False, e.op(op, to_bool(e, x), to_bool(e, y)))

    return call


def _comparison(op: str):
    def call(e: Emitter, x: Scalar, y: Scalar) -> Scalar:
        return replace(compare(e, op, x, y), weak=False)

    return call


# Python callable -> function of the emitter and numbers.
MATH = {
    **{uf: _one(uf, name) for uf, name in _LIBM.items()},
    **{uf: _one(uf, None, name) for uf, name in _INTRINSIC.items()},
    np.arctan2: _two(np.arctan2, "atan2"),
    np.hypot: _two(np.hypot, "hypot"),
    np.add: _operator("+"), np.subtract: _operator("-"), np.multiply: _operator("*"), np.divide: _operator("/"),
    np.floor_divide: _operator("//"), np.remainder: _operator("%"),
    np.bitwise_and: _operator("&"), np.bitwise_or: _operator("|"), np.bitwise_xor: _operator("^"),
    np.left_shift: _operator("<<"), np.right_shift: _operator(">>"),
    np.isnan: _of_floats(_nan), np.isinf: _of_floats(_infinite), np.isfinite: _of_floats(_finite), np.sign: sign, np.clip: clip,
    **{uf: _comparison(op) for op, uf in COMPARISONS.items()},
    np.logical_and: _logical("and"), np.logical_or: _logical("or"), np.logical_xor: _logical("xor"),
    np.logical_not: lambda e, x: Scalar(BOOL, False, e.flip(to_bool(e, x))),
    np.negative: lambda e, x: negate(e, Scalar(x.dtype, False, x.v)),
    np.cbrt: _one(np.cbrt, "cbrt"), np.arcsinh: _one(np.arcsinh, "asinh"), np.arccosh: _one(np.arccosh, "acosh"),
    np.arctanh: _one(np.arctanh, "atanh"), np.copysign: _two(np.copysign, "copysign"),
    math.isnan: lambda e, x: Scalar(BOOL, True, _of_floats(_nan)(e, cast(e, x, F64)).v),
    math.isfinite: lambda e, x: Scalar(BOOL, True, _of_floats(_finite)(e, cast(e, x, F64)).v),
    math.isinf: lambda e, x: Scalar(BOOL, True, _of_floats(_infinite)(e, cast(e, x, F64)).v),
    np.power: lambda e, x, y: binary(e, "**", Scalar(x.dtype, False, x.v), y),
    np.square: lambda e, x: Scalar(x.dtype, False, binary(e, "*", Scalar(x.dtype, False, x.v), Scalar(x.dtype, False, x.v)).v),
    np.conjugate: complexes.conjugate, np.real: complexes.real, np.imag: complexes.imag, np.angle: complexes.angle,
    np.absolute: lambda e, x: absolute(e, Scalar(x.dtype, False, x.v)),
    np.maximum: lambda e, x, y: extreme(e, True, x, y),
    np.minimum: lambda e, x, y: extreme(e, False, x, y),
    math.sqrt: _python_math("sqrt", None, ("uge", 0.0)),
    math.exp: _python_math("exp", "exp"),
    math.log: _python_math("log", "log", ("ugt", 0.0)),
    **{getattr(math, f): _python_math(f, f, ("une", math.inf), magnitude=True) for f in ("sin", "cos", "tan")},
    **{getattr(math, f): _python_math(f, f, ("ule", 1.0), magnitude=True) for f in ("asin", "acos")},
    **{getattr(math, f): _python_math(f, f) for f in ("tanh", "sinh", "cosh", "expm1", "erf", "erfc", "asinh")},
    **{getattr(math, f): _python_math(f, f, ("ugt", 0.0)) for f in ("log2", "log10")},
    math.log1p: _python_math("log1p", "log1p", ("ugt", -1.0)),
    math.trunc: _cut,
    math.atan2: _python_math_of_two("atan2"), math.copysign: _python_math_of_two("copysign"),
    math.hypot: _python_math_of_two("hypot"),
    np.round: rounded, np.around: rounded,
    math.atan: _python_math("atan", "atan"),
    math.atanh: _python_math("atanh", "atanh", ("olt", 1.0), magnitude=True),
    math.acosh: _python_math("acosh", "acosh", ("uge", 1.0)),
    math.pow: _finite_python_math("pow"), math.fmod: _finite_python_math("fmod"),
    **complexes.PYTHONS,
    math.fabs: _python_math("fabs", None),
    math.floor: _python_math("floor", None, integer=True),
    math.ceil: _python_math("ceil", None, integer=True),
}  # fmt: skip
