"""Arithmetic of floats with special cases: quotients and remainders, extremes, signs, neighbours."""

from __future__ import annotations

from ...assembly.dtypes import bits_of, is_float, is_unsigned
from ...assembly.instructions import ConstantOperand
from .table import expansion, signed

__all__ = ["maximum"]


@expansion
def rsqrt(b, t, x):
    return b.div(1.0, b.intrinsic("sqrt", x))


@expansion
def reciprocal(b, t, x):
    return b.div(1.0, x)


def _is_number(x) -> bool:
    """Whether an operand is known to be neither NaN nor a zero, which may have another sign than the zero that it is compared with."""
    return isinstance(x, ConstantOperand) and x.value != 0 and x.value == x.value


def _extreme(b, beyond: str, x, y):
    """The operand that is beyond the other one, NaN where either is."""
    if _is_number(y):
        return b.select(
            b.cmp(beyond, y, x), y, x
        )  # one instruction of x86's, which gives the second operand where one is NaN
    m = b.select(b.cmp(beyond, x, y), x, y)
    return m if _is_number(x) else b.select(b.cmp("uno", x, x), x, m)


@expansion
def maximum(b, t, x, y):
    return _extreme(b, "ogt", x, y)


@expansion
def minimum(b, t, x, y):
    return _extreme(b, "olt", x, y)


@expansion
def fmax(b, t, x, y):
    out = b.select(b.cmp("oge", x, y), x, y)
    return b.select(b.cmp("uno", y, y), x, out)


@expansion
def fmin(b, t, x, y):
    out = b.select(b.cmp("ole", x, y), x, y)
    return b.select(b.cmp("uno", y, y), x, out)


@expansion
def sign(b, t, x):
    neg = b.select(b.cmp("olt", x, 0.0), b.const(t, -1.0), b.const(t, 0.0))
    return b.select(b.cmp("ogt", x, 0.0), 1.0, neg)


def _remains(b, t, x, y):
    """C's fmod, exact. Of a quotient below 2^22 (2^51) the product with the nearest whole number is subtracted without rounding; it is one too great
    where what remains has the other sign."""
    quotient, magic = b.div(x, y), 1.5 * 2.0 ** (23 if t == "f32" else 52)
    whole = b.sub(b.add(quotient, magic), magic)
    rest = b.fma(b.neg(whole), y, x)
    size = b.intrinsic("copysign", y, x)
    over = b.cmp("olt", b.mul(rest, b.intrinsic("copysign", b.const(t, 1.0), x)), 0.0)
    rest = b.select(over, b.add(rest, size), rest)
    rest = b.select(b.cmp("oeq", whole, 0.0), x, rest)
    out = b.intrinsic("copysign", rest, x)
    rare = b.flip(b.cmp("olt", b.intrinsic("fabs", quotient), 2.0**22 if t == "f32" else 2.0**51))
    return b.by_lane(out, rare, "fmodf" if t == "f32" else "fmod", x, y)


@expansion
def fmod(b, t, x, y):
    return _remains(b, t, x, y)


@expansion
def floordiv(b, t, x, y):
    """Python's //: the quotient from the exact remainder, then rounded down."""
    plain = b.div(x, y)
    mod = _remains(b, t, x, y)
    zero, one = b.const(t, 0.0), b.const(t, 1.0)
    quotient = b.div(b.sub(x, mod), y)
    differ = b.op("xor", b.cmp("olt", y, zero), b.cmp("olt", mod, zero))
    differ = b.op("and", differ, b.cmp("one", mod, zero))
    quotient = b.select(differ, b.sub(quotient, one), quotient)
    floor = b.intrinsic("floor", quotient)
    above = b.cmp("ogt", b.sub(quotient, floor), 0.5)
    floor = b.select(above, b.add(floor, one), floor)
    floor = b.select(b.cmp("oeq", quotient, zero), b.intrinsic("copysign", zero, plain), floor)
    return b.select(b.cmp("oeq", y, zero), plain, floor)


@expansion
def remainder(b, t, x, y):
    zero = b.const(t, 0.0)
    mod = _remains(b, t, x, y)
    differ = b.op("xor", b.cmp("olt", y, zero), b.cmp("olt", mod, zero))
    out = b.select(differ, b.add(mod, y), mod)
    return b.select(b.cmp("oeq", mod, zero), b.intrinsic("copysign", zero, y), out)


@expansion
def truncdiv(b, t, x, y):
    return b.intrinsic("trunc", b.div(x, y))


@expansion
def isnan(b, t, x):
    return b.cmp("uno", x, x)


@expansion
def signbit(b, t, x):
    if not is_float(t):
        return b.const("bool", False) if is_unsigned(t) else b.cmp("slt", x, 0)
    ints = "i32" if bits_of(t) == 32 else "i64"
    return b.cmp("slt", b.convert("bitcast", x, ints), 0)


@expansion
def heaviside(b, t, x, y):
    zero, one = b.const(t, 0), b.const(t, 1)
    if is_float(t):
        positive, none = b.cmp("ogt", x, zero), b.cmp("oeq", x, zero)
    else:
        positive, none = b.cmp("ugt" if is_unsigned(t) else "sgt", x, zero), b.cmp("eq", x, zero)
    return b.select(none, y, b.select(positive, one, zero))


@expansion
def nextafter(b, t, x, y):
    """The bits of a number, as an integer, one on or one back."""
    i = "i32" if t == "f32" else "i64"
    bits, zero = b.convert("bitcast", x, i), b.const(t, 0.0)
    away = b.op("xor", b.cmp("olt", x, y), b.cmp("olt", x, zero))
    moved = b.add(bits, b.select(away, b.const(i, 1), b.const(i, -1)))
    out = b.convert("bitcast", moved, t)
    least = b.convert("bitcast", b.const(i, 1), t)
    out = b.select(b.cmp("oeq", x, zero), signed(b, least, y), out)
    out = b.select(b.cmp("oeq", x, y), y, out)
    return b.select(b.cmp("uno", x, y), b.add(x, y), out)


@expansion
def copy(b, t, x):
    return x
