"""Exponentials, logarithms and powers.

Argument reductions of Cody & Waite, Software Manual for the Elementary Functions; log with fdlibm's coefficients, log10 as FreeBSD has it; the
polynomials of exp are Chebyshev fits made in 40-digit arithmetic on the intervals named here. Where NumPy tells of a floating-point error, the
expansion raises the processor's flag of it (overflow of exp, a pole of log): see dynamo/numpy/floating_errors.py.
"""

from __future__ import annotations

import math
import struct

from ...assembly.instructions import I8, I16, I32, constant
from ...machine import processor
from .floats import maximum
from .table import expansion, fabs, usually

__all__ = [
    "FORMATS",
    "clamp",
    "exp",
    "exp_m1_reduced",
    "exp_parts",
    "exp_reduce",
    "exp_scaled",
    "expm1",
    "log",
    "log1p",
    "log_usual",
    "round_shift",
    "split_log",
]


class _Float:
    """Layout of a floating type: mantissa bits, the integer type of its width, the shift trick's magic number."""

    def __init__(self, mantissa, ints, fmt, ifmt):
        self.m, self.ints, self._fmt, self._ifmt = mantissa, ints, fmt, ifmt
        self.magic = 1.5 * 2.0**mantissa
        self.bias = 127 if mantissa == 23 else 1023
        self.size = struct.calcsize(fmt)

    def bits(self, value: float) -> int:
        return struct.unpack(self._ifmt, struct.pack(self._fmt, value))[0]


FORMATS = {"f32": _Float(23, "i32", "<f", "<i"), "f64": _Float(52, "i64", "<d", "<q")}
# (hi, lo) with hi + lo == ln 2 and n * hi exact for the n that occur
_LN2 = {
    "f32": (0.693145751953125, 1.428606765330187e-06),
    "f64": (6.93147180369123816490e-01, 1.90821492927058770002e-10),
}
# (e^r - 1 - r) / r^2 on |r| <= 0.35
_EXP = {
    "f32": (0.001392691805594798, 0.008363767023287037, 0.0416665501627203, 0.1666657342385974, 0.5),
    "f64": (
        2.0915433598076003e-09,
        2.5106262550887078e-08,
        2.755727183153613e-07,
        2.755725286336732e-06,
        2.480158732699005e-05,
        0.00019841269876840357,
        0.0013888888888883332,
        0.008333333333325551,
        0.04166666666666667,
        0.1666666666666667,
        0.5,
    ),
}
# log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)), s = f / (2 + f), 1 + f in [sqrt(1/2), sqrt(2)]
_LOG = {
    "f32": (0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693),
    "f64": (
        1.479819860511658591e-01,
        1.531383769920937332e-01,
        1.818357216161805012e-01,
        2.222219843214978396e-01,
        2.857142874366239149e-01,
        3.999999999940941908e-01,
        6.666666666666735130e-01,
    ),
}
_LOG10 = {
    "f32": (4.3432617188e-01, -3.1689971365e-05, 3.0102920532e-01, 7.9034151668e-07),
    "f64": (
        4.34294481878168880939e-01,
        2.50829467116452752298e-11,
        3.01029995663611771306e-01,
        3.69423907715893078616e-13,
    ),
}


def round_shift(b, t, x, scale):
    """(n as a float, n as an integer) for n = round(x * scale), |n| small: adding the magic number leaves n in the low bits."""
    fmt = FORMATS[t]
    shifted = b.fma(x, scale, fmt.magic)
    n = b.sub(b.convert("bitcast", shifted, fmt.ints), fmt.bits(fmt.magic))
    return b.sub(shifted, fmt.magic), n


def exp_parts(b, t, x):
    """(n as a float, n, r): x = n ln 2 + r."""
    hi, lo = _LN2[t]
    nf, n = round_shift(b, t, x, math.log2(math.e))
    r = b.fma(nf, -hi, x)
    return nf, n, b.fma(nf, -lo, r)


def exp_reduce(b, t, x):
    """(n, r): x = n ln 2 + r."""
    return exp_parts(b, t, x)[1:]


def exp_m1_reduced(b, t, r):
    """e^r - 1 for a reduced argument."""
    return b.fma(b.poly(r, _EXP[t]), b.mul(r, r), r)


def clamp(b, t, x, lo, hi):
    """NaN stays NaN: an ordered comparison with it is false."""
    if hi is not None:
        x = b.select(b.cmp("ogt", x, hi), hi, x)
    return b.select(b.cmp("olt", x, lo), lo, x)


def _beyond(b, t, x, top, out):
    """``out``, above ``top`` infinity by an overflow; NaN stays NaN."""
    # Two comparisons that differ in NaN only: selects by one condition would be folded, and every x multiplied by the largest number.
    largest = math.ldexp(1 - 2.0 ** -(FORMATS[t].m + 1), FORMATS[t].bias + 1)
    factor = b.select(b.cmp("ogt", x, top), b.const(t, largest), b.const(t, 1.0))
    return b.select(b.cmp("ugt", x, top), b.mul(x, factor), out)


def exp_scaled(b, t, x, top, low, reduce):
    """2^n e^r with (n as a float, n, r) = ``reduce(x)``; infinity above ``top``, 0 below ``low``."""
    fmt = FORMATS[t]
    if processor.holds_lines() and b.lanes * fmt.size >= 64:
        return _scaled_at_once(b, t, x, top, low, reduce)
    # Above `top` the result overflows; below it n = 2^emax only comes with a mantissa under 1, so the exponent field can't overflow.
    tiny, lift = (-125, 64) if t == "f32" else (-1021, 128)
    # What comes out as 0 (masked scores: -inf) is computed as e^0 and replaced: an underflow would take a hundred times as long.
    gone = b.cmp("olt", x, low)
    y = b.select(b.cmp("ogt", x, top), top, x)
    _, n, r = reduce(b, t, b.select(gone, 0.0, y))
    p = b.add(exp_m1_reduced(b, t, r), 1.0)
    denormal = b.cmp("slt", n, tiny)
    n = b.select(denormal, b.add(n, lift), n)
    p = b.convert("bitcast", p, fmt.ints)
    p = b.add(p, b.op("shl", n, fmt.m))
    p = b.convert("bitcast", p, t)
    p = b.mul(p, b.select(denormal, b.const(t, 2.0**-lift), b.const(t, 1.0)))
    p = b.select(gone, 0.0, p)
    return _beyond(b, t, x, top, p)


def _by_power(b, t, p, n):
    """p 2^n, rounded once, in the lanes of whole registers of AVX-512."""
    letter, lanes = ("s", 16) if t == "f32" else ("d", 8)
    type = p.type.element.vector(lanes)
    mask = constant(I16 if lanes == 16 else I8, -1)
    parts = []
    for first in range(0, b.lanes, lanes):
        x, y = (b.shuffle(v, range(first, first + lanes)) if b.lanes > lanes else v for v in (p, n))
        rounding = constant(I32, 4)  # as the processor is set
        parts.append(b.call(type, f"@llvm.x86.avx512.mask.scalef.p{letter}.512", x, y, x, mask, rounding))
    while len(parts) > 1:
        width = parts[0].type.lanes * 2
        parts = [b.shuffle(x, range(width), y) for x, y in zip(parts[::2], parts[1::2])]
    return parts[0]


def _scaled_at_once(b, t, x, top, low, reduce):
    """The same bits by an instruction that multiplies by a power of two, whatever comes out."""
    gone = b.cmp("olt", x, low)
    y = b.select(b.cmp("ogt", x, top + 1.0), top + 1.0, x)
    n, _, r = reduce(b, t, b.select(gone, 0.0, y))
    p = b.add(exp_m1_reduced(b, t, r), 1.0)
    # Infinity stays as it is: what overflows raises the processor's flag.
    p = b.select(b.cmp("oeq", x, math.inf), math.inf, p)
    return b.select(gone, 0.0, _by_power(b, t, p, n))


@expansion
def exp(b, t, x):
    top, low = (88.72283172607422, -104.0) if t == "f32" else (709.782712893384, -745.2)
    return exp_scaled(b, t, x, top, low, exp_parts)


def _exp2_parts(b, t, x):
    """(n as a float, n, r): x = n + r / ln 2; the difference is exact."""
    nf, n = round_shift(b, t, x, 1.0)
    return nf, n, b.mul(b.sub(x, nf), math.log(2))


@expansion
def exp2(b, t, x):
    top, low = (127.99999237060547, -150.0) if t == "f32" else (1023.9999999999999, -1075.0)
    return exp_scaled(b, t, x, top, low, _exp2_parts)


@expansion
def sigmoid(b, t, x):
    return b.div(1.0, b.add(exp(b, t, b.neg(x)), 1.0))


_EXPM1 = {"f32": (88.72283172607422, -18.0), "f64": (709.782712893384, -38.0)}


def _expm1_within(b, t, x, y):
    """expm1(y) of y within the limits; 0 keeps the sign that x has."""
    fmt = FORMATS[t]
    n, r = exp_reduce(b, t, y)
    # 2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)): halved because 2^n itself may overflow
    scale = b.add(n, fmt.bias - 1)
    scale = b.convert("bitcast", b.op("shl", scale, fmt.m), t)
    em = exp_m1_reduced(b, t, r)
    out = b.fma(scale, em, b.sub(scale, 0.5))
    out = b.add(out, out)
    out = b.select(b.cmp("eq", n, 0), em, out)
    return b.select(b.cmp("oeq", x, 0.0), x, out)


def expm1(b, t, x):
    top, low = _EXPM1[t]
    return _beyond(b, t, x, top, _expm1_within(b, t, x, clamp(b, t, x, low, top)))


def _outside(b, t, x):
    top, low = _EXPM1[t]
    return b.op("or", b.cmp("uge", x, top), b.cmp("ole", x, low))


expansion(usually("expm1", expm1, lambda b, t, x: _expm1_within(b, t, x, x), _outside))


def split_log(b, t, x):
    """(k as a float, f): x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)). For normal positive x."""
    fmt, ints = FORMATS[t], FORMATS[t].ints
    one = fmt.bits(1.0)
    moved = b.add(b.convert("bitcast", x, ints), one - fmt.bits(math.sqrt(0.5)))
    biased = b.op("lshr", moved, fmt.m)
    # exponent to float without an integer conversion, which AVX2 lacks for 64 bits: put it in the mantissa of 2^m
    k = b.convert("bitcast", b.op("or", biased, fmt.bits(2.0**fmt.m)), t)
    k = b.sub(k, 2.0**fmt.m + fmt.bias)
    fraction = b.op("and", moved, (1 << fmt.m) - 1)
    mantissa = b.convert("bitcast", b.add(fraction, fmt.bits(math.sqrt(0.5))), t)
    return k, b.sub(mantissa, 1.0)


def _log_parts(b, t, f, x, zero):
    """(hfsq, s (hfsq + R), the result for x <= zero): log(1 + f) = f - hfsq + s (hfsq + R).

    -inf at ``zero`` and NaN below come of divisions, which raise the flags."""
    hfsq = b.mul(b.mul(f, f), 0.5)
    pole, none = b.const(t, -1.0), b.const(t, 0.0)
    special = b.select(b.cmp("oeq", x, zero), pole, none)
    outside = b.cmp("ole", x, zero)
    s = b.div(b.select(outside, special, f), b.select(outside, none, b.add(f, 2.0)))
    z = b.mul(s, s)
    r = b.mul(z, b.poly(z, _LOG[t]))
    return hfsq, b.mul(s, b.add(hfsq, r)), s


def _normal(b, t, x):
    """(x scaled up if subnormal, correction of k)."""
    small = b.cmp("olt", x, 2.0 ** (-126 if t == "f32" else -1022))
    k = FORMATS[t].m + 1
    x = b.select(small, b.mul(x, 2.0**k), x)
    return x, b.select(small, b.const(t, -k), b.const(t, 0.0))


def _log_specials(b, t, x, out, zero, special):
    out = b.select(b.cmp("uge", x, math.inf), x, out)
    return b.select(b.cmp("ole", x, zero), special, out)


def _log_of_sum(b, t, f):
    """(hfsq, s (hfsq + R)) as :func:`_log_parts` gives them, of a number that is neither 0 nor negative."""
    hfsq = b.mul(b.mul(f, f), 0.5)
    s = b.div(f, b.add(f, 2.0))
    z = b.mul(s, s)
    return hfsq, b.mul(s, b.add(hfsq, b.mul(z, b.poly(z, _LOG[t]))))


def _not_normal(b, t, x):
    """Whether x isn't positive, normal and finite."""
    bits, least = b.convert("bitcast", x, FORMATS[t].ints), FORMATS[t].bits(2.0 ** (-126 if t == "f32" else -1022))
    return b.cmp("uge", b.sub(bits, least), FORMATS[t].bits(math.inf) - least)


def _logarithm(name, finish):
    """The expansion of a logarithm, and its form for normal positive numbers. ``finish(b, t, k, f, hfsq, tail)``: what it is of 2^k (1 + f)."""

    def usual(b, t, x):
        k, f = split_log(b, t, x)
        return finish(b, t, k, f, *_log_of_sum(b, t, f))

    def whole(b, t, x):
        y, correction = _normal(b, t, x)
        k, f = split_log(b, t, y)
        k = b.add(k, correction)
        hfsq, tail, special = _log_parts(b, t, f, x, 0.0)
        return _log_specials(b, t, x, finish(b, t, k, f, hfsq, tail), 0.0, special)

    expansion(usually(name, whole, usual, _not_normal))
    return whole, usual


def _in_two(b, t, f, hfsq, tail):
    """log(1 + f) and what its rounding lost."""
    ln = b.sub(f, b.sub(hfsq, tail))
    return ln, b.sub(b.sub(b.sub(f, ln), hfsq), b.sub(0.0, tail))


def _natural(b, t, k, f, hfsq, tail):
    hi, lo = _LN2[t]
    return b.fma(k, hi, b.sub(f, b.sub(hfsq, b.fma(k, lo, tail))))


def _binary(b, t, k, f, hfsq, tail):
    """log2(e) in two parts, so that log2 of a power of two is exact and the product keeps its low half."""
    ln, rest = _in_two(b, t, f, hfsq, tail)
    hi = struct.unpack("<f", struct.pack("<f", math.log2(math.e)))[0] if t == "f32" else math.log2(math.e)
    lo = 1.925963033500011e-08 if t == "f32" else 2.0355273740931033e-17
    low = b.fma(ln, lo, b.mul(rest, hi))
    return b.add(k, b.fma(ln, hi, low))


def _decimal(b, t, k, f, hfsq, tail):
    """1 / log(10) and log10(2) in two parts each (FreeBSD's e_log10.c), so that log10 of a power of ten is exact."""
    hi, lo, two_hi, two_lo = (b.const(t, c) for c in _LOG10[t])
    ln, rest = _in_two(b, t, f, hfsq, tail)
    product, whole = b.mul(ln, hi), b.mul(k, two_hi)
    low = b.fma(ln, hi, b.sub(0.0, product))
    low = b.fma(rest, hi, b.fma(ln, lo, b.fma(k, two_lo, low)))
    top = b.add(whole, product)
    return b.add(top, b.add(low, b.add(b.sub(whole, top), product)))


log, log_usual = _logarithm("log", _natural)
_logarithm("log2", _binary)
_logarithm("log10", _decimal)


@expansion
def log1p(b, t, x):
    hi, lo = _LN2[t]
    one = b.const(t, 1.0)
    u = b.add(one, x)
    k, f = split_log(b, t, u)
    # what the rounding of 1 + x lost, relative to u (fdlibm); for k = 0 the fraction is x itself
    big = b.cmp("oge", u, 2.0)
    lost = b.select(big, b.sub(one, b.sub(u, x)), b.sub(x, b.sub(u, one)))
    lost = b.div(lost, u)
    near = b.cmp("oeq", k, 0.0)
    f = b.select(near, x, f)
    lost = b.select(near, 0.0, lost)
    hfsq, tail, special = _log_parts(b, t, f, x, -1.0)
    tail = b.add(tail, b.fma(k, lo, lost))
    out = b.sub(f, b.sub(hfsq, tail))
    out = b.fma(k, hi, out)
    out = b.select(b.cmp("oeq", x, 0.0), x, out)
    return _log_specials(b, t, x, out, -1.0, special)


@expansion
def pow_(b, t, x, y):
    if t == "f64":
        return b.intrinsic("pow", x, y)
    # float32 through float64: 2^(y log2 |x|), the sign and the special cases put right afterwards
    a = b.convert("fpext", b.intrinsic("fabs", x), "f64")
    zero = b.cmp("oeq", a, 0.0)  # a pole of log, but of the power only if y < 0
    logarithm = log(b, "f64", b.select(zero, 1.0, a))
    logarithm = b.select(zero, -math.inf, logarithm)
    e = b.mul(b.convert("fpext", y, "f64"), logarithm)
    out = b.convert("fptrunc", exp(b, "f64", e), t)
    pole = b.op("and", b.cmp("oeq", x, 0.0), b.cmp("olt", y, 0.0))
    above = b.select(pole, b.intrinsic("fabs", y), out)
    out = b.div(above, b.select(pole, b.intrinsic("fabs", x), 1.0))
    whole = b.cmp("oeq", b.intrinsic("trunc", y), y)
    half = b.mul(y, 0.5)
    odd = b.op("and", whole, b.cmp("one", b.intrinsic("trunc", half), half))
    out = b.select(odd, b.intrinsic("copysign", out, x), out)
    negative = b.op("and", b.cmp("olt", x, 0.0), b.cmp("one", x, -math.inf))
    invalid = b.op("and", negative, b.flip(whole))
    out = b.select(invalid, b.intrinsic("sqrt", b.select(invalid, x, 1.0)), out)
    minus_one = b.op(
        "and",
        b.cmp("oeq", x, -1.0),
        b.cmp("oeq", b.intrinsic("fabs", y), math.inf),
    )
    one = b.op("or", b.cmp("oeq", x, 1.0), b.cmp("oeq", y, 0.0))
    return b.select(b.op("or", one, minus_one), 1.0, out)


def _summed(b, t, x, y, power, of_one_more, equal):
    """log(base ** x + base ** y)."""
    most = maximum(b, t, x, y)
    apart = b.neg(fabs(b, b.sub(x, y)))
    out = b.add(most, of_one_more(power(b, t, apart)))
    return b.select(b.cmp("oeq", x, y), b.add(x, equal), out)


def _log_of_one_more(b, t, e):
    """log(1 + e) for 0 <= e <= 1: in float32 twice the area tangent of e / (2 + e), by its series."""
    if t == "f64":
        return log1p(b, t, e)
    s = b.div(e, b.add(e, 2.0))
    z = b.mul(s, s)
    return b.fma(b.mul(s, z), b.poly(z, [2 / k for k in (13, 11, 9, 7, 5, 3)]), b.add(s, s))


@expansion
def logaddexp(b, t, x, y):
    return _summed(b, t, x, y, exp, lambda e: _log_of_one_more(b, t, e), math.log(2))


@expansion
def logaddexp2(b, t, x, y):
    return _summed(b, t, x, y, exp2, lambda e: b.mul(_log_of_one_more(b, t, e), math.log2(math.e)), 1.0)
