"""Arithmetic of single numbers: Python's rules for Python's numbers, NumPy's (NEP 50) for NumPy's.

NumPy's divisions by zero give infinities; Python's raise.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from ...base.records import replace
from ...inductor.assembly.instructions import Operand
from ..emitter import BOOL, F64, I64, Emitter, constant
from ..turns.divisors import quotient
from ..values import Declined, Scalar, libm, register_type
from . import bounds as between
from . import complex_powers, complexes, integers
from .conversions import (
    KEPT,
    NUMPYS,
    PYTHONS,
    UNKNOWN,
    as_python_takes_it,
    both_python,
    cast,
    fitting,
    flag_of,
    loop_dtypes,
)
from .powers import power, python_power

__all__ = ["BINARY", "absolute", "binary", "invert", "negate", "numpy_operation"]

BINARY = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": np.floor_divide, "%": np.remainder, "**": np.power,
    "<<": np.left_shift, ">>": np.right_shift, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
}  # fmt: skip  # fmt: skip
EITHER = "division by zero in a compiled loop, by a number that may be Python's or NumPy's"


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
        x, y = flag_of(e, a), flag_of(e, as_python_takes_it(a, b))
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
    b = as_python_takes_it(a, b)
    weak = True if a.weak and b.weak else None if both_python(a, b) else False
    if both_python(a, b):
        return _python(e, op, a, b, weak)
    compute, result = loop_dtypes(BINARY[op], a, b)
    if op == "**" and b.const is not None and compute.kind == "f":
        return power(e, cast(e, a, compute), b, weak)
    if op == "**" and compute.kind in "iu" and type(b.const) is int and 0 <= b.const <= integers.HIGHEST:
        return Scalar(result, weak, integers.numpy_power(e, fitting(e, a, compute), b.const, compute))
    if op == "**" and compute.kind == "c":
        return Scalar(result, weak, complex_powers.power(e, cast(e, a, compute).v, cast(e, b, compute).v, b.const))
    x, y = fitting(e, a, compute), fitting(e, b, compute)
    rest = op == "%" and compute == I64 and type(b.const) is int and b.const > 0
    return Scalar(result, weak, numpy_operation(e, op, compute, x, y), (0, b.const - 1) if rest else None)


def _python(e: Emitter, op: str, a: Scalar, b: Scalar, weak) -> Scalar:
    if a.kind == "b" and b.kind == "b" and op in "&|^":
        return Scalar(BOOL, weak, e.op({"&": "and", "|": "or", "^": "xor"}[op], a.v, b.v))
    if "c" in (a.kind, b.kind):
        return _python_complex(e, op, a, b, weak)
    if any(s.dtype not in (BOOL, I64, F64) for s in (a, b)):
        raise Declined(f"{op} of numbers of which it isn't known whether they are Python's")

    def by_zero(text: str) -> tuple[str, str]:
        return ("ZeroDivisionError", text) if weak else ("RuntimeError", EITHER)

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
            e.check(e.cmp("une", y.v, 0.0), *by_zero(text))
        return Scalar(F64, weak, numpy_operation(e, op, F64, x.v, y.v))
    text = "integer division or modulo by zero" if op == "//" else "integer modulo by zero"
    return integers.python_operation(e, op, cast(e, a, I64), cast(e, b, I64), weak, by_zero(text))


def _python_complex(e: Emitter, op: str, a: Scalar, b: Scalar, weak) -> Scalar:
    """Python's complex numbers, or those that may be Python's, or integers that are none: then what gives the same for all of them."""
    c128 = complexes.C128
    if any(s.kind == "c" and s.dtype != c128 for s in (a, b)) or (
        sys.version_info >= (3, 14) and weak is True and {a.kind, b.kind} != {"c"}
    ):
        raise Declined(f"{op} of these complex numbers")
    if weak is None and op == "/":
        return _quotient_of_either(e, a, b)
    if weak is None and op not in "+*":
        raise Declined(f"{op} of complex numbers of which it isn't known whether they are Python's")
    x, y = cast(e, a, c128).v, cast(e, b, c128).v
    if op == "**":
        return Scalar(c128, weak, complex_powers.python_power(e, x, b.const))
    if op == "/":
        e.check(complexes.truth(e, y), "ZeroDivisionError", "complex division by zero")
        return Scalar(c128, weak, complexes.python_quotient(e, x, y))
    return Scalar(c128, weak, complexes.operation(e, op, x, y))


def _quotient_of_either(e: Emitter, a: Scalar, b: Scalar) -> Scalar:
    """Of complex numbers whose flags tell, when the loop runs, whether they are Python's: NumPy's quotient or Python's."""
    flags = flag_of(e, a), flag_of(e, b)
    mixed = sys.version_info >= (3, 14) and {a.kind, b.kind} != {"c"}
    if mixed or flags[0] is None or flags[1] is None:
        raise Declined("/ of complex numbers of which it isn't known whether they are Python's")
    flag = _met_flag(e, flags[0], flags[1])
    python = e.cmp("eq", flag, PYTHONS)
    sound = e.op("or", python, e.cmp("eq", flag, NUMPYS))
    if {a.kind, b.kind} != {"c"}:  # what is kept as a complex number may be an integer, whose quotient is real
        of_complex = flags[0] if a.kind == "c" else flags[1]
        sound = e.op("and", sound, e.cmp("ne", of_complex, KEPT))
    e.check(sound, "RuntimeError", EITHER)
    x, y = cast(e, a, complexes.C128).v, cast(e, b, complexes.C128).v
    e.check(e.op("or", e.flip(python), complexes.truth(e, y)), "ZeroDivisionError", "complex division by zero")
    out = e.select(python, complexes.python_quotient(e, x, y), complexes.operation(e, "/", x, y))
    return Scalar(complexes.C128, None, out, None, None, flag)


def numpy_operation(e: Emitter, op: str, dtype: np.dtype, x: Operand, y: Operand, may_be_zero: bool = True) -> Operand:
    """One element of the ufunc's loop for ``dtype``. ``may_be_zero``: whether NumPy tells of an integer ``y`` that is zero."""
    t = register_type(dtype)
    if dtype.kind == "c":
        return complexes.operation(e, op, x, y)
    if dtype.kind == "f":
        simple = {"+": "fadd", "-": "fsub", "*": "fmul"}
        if op == "/":
            return quotient(e, x, y)
        if op in simple:
            return e.op(simple[op], x, y)
        if op == "**":
            return e.external(libm("pow", t), t, x, y)
        return _float_division(e, op, x, y)
    if dtype.kind == "b":
        if op in "&|^+*":
            return e.op({"&": "and", "|": "or", "^": "xor", "+": "or", "*": "and"}[op], x, y)
        raise Declined(f"{op} of bools")
    return integers.numpy_operation(e, op, dtype, x, y, may_be_zero)


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
