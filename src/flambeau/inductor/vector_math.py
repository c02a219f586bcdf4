"""Elementary functions as straight-line expansions that work on any number of lanes.

Each function takes a :class:`~.builder.Builder`, a type and operand names, and returns the name of the result. Within 2 ulp of the true
value, NaN, infinities and signed zeros as NumPy has them; ``tests/inductor/test_vector_math.py`` measures. Sources: argument
reductions of Cody & Waite, Software Manual for the Elementary Functions; log, sin and cos kernels with fdlibm's coefficients; tanh with
those of the Cephes library; the polynomials of exp and erf are Chebyshev fits made in 40-digit arithmetic on the intervals named here.

Where NumPy tells of a floating-point error, the expansion raises the processor's flag of it (overflow of exp, a pole of log): see dynamo/floating.py.
"""

import math
import struct

from .builder import is_unsigned

__all__ = ["EXPANSIONS"]

EXPANSIONS = {}
"""Name after the ``@`` in the scalar table -> function(builder, type, *operands)."""


def expansion(fn):
    EXPANSIONS[fn.__name__.rstrip("_")] = fn
    return fn


class _Float:
    """Layout of a floating type: mantissa bits, the integer type of its width, the shift trick's magic number."""

    def __init__(self, mantissa, ints, fmt, ifmt):
        self.m, self.ints, self._fmt, self._ifmt = mantissa, ints, fmt, ifmt
        self.magic = 1.5 * 2.0**mantissa
        self.bias = 127 if mantissa == 23 else 1023

    def bits(self, value: float) -> int:
        return struct.unpack(self._ifmt, struct.pack(self._fmt, value))[0]


_FORMAT = {"f32": _Float(23, "i32", "<f", "<i"), "f64": _Float(52, "i64", "<d", "<q")}

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


def _round_shift(b, t, x, scale):
    """(n as a float, n as an integer) for n = round(x * scale), |n| small: adding the magic number leaves n in the low bits."""
    fmt = _FORMAT[t]
    shifted = b.fma(t, x, b.const(t, scale), b.const(t, fmt.magic))
    n = b.sub(fmt.ints, b.convert("bitcast", t, shifted, fmt.ints), b.const(fmt.ints, fmt.bits(fmt.magic)))
    return b.sub(t, shifted, b.const(t, fmt.magic)), n


def _exp_reduce(b, t, x):
    """(n, r): x = n ln 2 + r."""
    hi, lo = _LN2[t]
    nf, n = _round_shift(b, t, x, math.log2(math.e))
    r = b.fma(t, nf, b.const(t, -hi), x)
    return n, b.fma(t, nf, b.const(t, -lo), r)


def _exp_m1_reduced(b, t, r):
    """e^r - 1 for a reduced argument."""
    return b.fma(t, b.poly(t, r, _EXP[t]), b.mul(t, r, r), r)


def _clamp(b, t, x, lo, hi):
    """NaN stays NaN: an ordered comparison with it is false."""
    if hi is not None:
        x = b.select(t, b.cmp("ogt", t, x, b.const(t, hi)), b.const(t, hi), x)
    return b.select(t, b.cmp("olt", t, x, b.const(t, lo)), b.const(t, lo), x)


def _beyond(b, t, x, top, out):
    """``out``, above ``top`` infinity by an overflow; NaN stays NaN."""
    # Two comparisons that differ in NaN only: selects by one condition would be folded, and every x multiplied by the largest number.
    largest = math.ldexp(1 - 2.0 ** -(_FORMAT[t].m + 1), _FORMAT[t].bias + 1)
    factor = b.select(t, b.cmp("ogt", t, x, b.const(t, top)), b.const(t, largest), b.const(t, 1.0))
    return b.select(t, b.cmp("ugt", t, x, b.const(t, top)), b.mul(t, x, factor), out)


def _scaled(b, t, x, top, low, reduce):
    """2^n e^r with (n, r) = ``reduce(x)``; infinity above ``top``, 0 below ``low``."""
    fmt = _FORMAT[t]
    # Above `top` the result overflows; below it n = 2^emax only comes with a mantissa under 1, so the exponent field can't overflow.
    tiny, lift = (-125, 64) if t == "f32" else (-1021, 128)
    # What comes out as 0 (masked scores: -inf) is computed as e^0 and replaced: an underflow would take a hundred times as long.
    gone = b.cmp("olt", t, x, b.const(t, low))
    y = b.select(t, b.cmp("ogt", t, x, b.const(t, top)), b.const(t, top), x)
    n, r = reduce(b, t, b.select(t, gone, b.const(t, 0.0), y))
    p = b.add(t, _exp_m1_reduced(b, t, r), b.const(t, 1.0))
    denormal = b.cmp("slt", fmt.ints, n, b.const(fmt.ints, tiny))
    n = b.select(fmt.ints, denormal, b.add(fmt.ints, n, b.const(fmt.ints, lift)), n)
    p = b.convert("bitcast", t, p, fmt.ints)
    p = b.add(fmt.ints, p, b.op("shl", fmt.ints, n, b.const(fmt.ints, fmt.m)))
    p = b.convert("bitcast", fmt.ints, p, t)
    p = b.mul(t, p, b.select(t, denormal, b.const(t, 2.0**-lift), b.const(t, 1.0)))
    p = b.select(t, gone, b.const(t, 0.0), p)
    return _beyond(b, t, x, top, p)


@expansion
def exp(b, t, x):
    top, low = (88.72283172607422, -104.0) if t == "f32" else (709.782712893384, -745.2)
    return _scaled(b, t, x, top, low, _exp_reduce)


def _exp2_reduce(b, t, x):
    """(n, r): x = n + r / ln 2; the difference is exact."""
    nf, n = _round_shift(b, t, x, 1.0)
    return n, b.mul(t, b.sub(t, x, nf), b.const(t, math.log(2)))


@expansion
def exp2(b, t, x):
    top, low = (127.99999237060547, -150.0) if t == "f32" else (1023.9999999999999, -1075.0)
    return _scaled(b, t, x, top, low, _exp2_reduce)


@expansion
def sigmoid(b, t, x):
    return b.div(t, b.const(t, 1.0), b.add(t, exp(b, t, b.emit(f"fneg {b.ty(t)} {x}")), b.const(t, 1.0)))


@expansion
def expm1(b, t, x):
    fmt = _FORMAT[t]
    top, low = (88.72283172607422, -18.0) if t == "f32" else (709.782712893384, -38.0)
    n, r = _exp_reduce(b, t, _clamp(b, t, x, low, top))
    # 2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)): halved because 2^n itself may overflow
    scale = b.add(fmt.ints, n, b.const(fmt.ints, fmt.bias - 1))
    scale = b.convert("bitcast", fmt.ints, b.op("shl", fmt.ints, scale, b.const(fmt.ints, fmt.m)), t)
    em = _exp_m1_reduced(b, t, r)
    out = b.fma(t, scale, em, b.sub(t, scale, b.const(t, 0.5)))
    out = b.add(t, out, out)
    out = b.select(t, b.cmp("eq", fmt.ints, n, b.const(fmt.ints, 0)), em, out)
    out = _beyond(b, t, x, top, out)
    return b.select(t, b.cmp("oeq", t, x, b.const(t, 0.0)), x, out)


def _split_log(b, t, x):
    """(k as a float, f): x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)). For normal positive x."""
    fmt, ints = _FORMAT[t], _FORMAT[t].ints
    one = fmt.bits(1.0)
    moved = b.add(ints, b.convert("bitcast", t, x, ints), b.const(ints, one - fmt.bits(math.sqrt(0.5))))
    biased = b.op("lshr", ints, moved, b.const(ints, fmt.m))
    # exponent to float without an integer conversion, which AVX2 lacks for 64 bits: put it in the mantissa of 2^m
    k = b.convert("bitcast", ints, b.op("or", ints, biased, b.const(ints, fmt.bits(2.0**fmt.m))), t)
    k = b.sub(t, k, b.const(t, 2.0**fmt.m + fmt.bias))
    fraction = b.op("and", ints, moved, b.const(ints, (1 << fmt.m) - 1))
    mantissa = b.convert("bitcast", ints, b.add(ints, fraction, b.const(ints, fmt.bits(math.sqrt(0.5)))), t)
    return k, b.sub(t, mantissa, b.const(t, 1.0))


def _log_parts(b, t, f, x, zero):
    """(hfsq, s (hfsq + R), the result for x <= zero): log(1 + f) = f - hfsq + s (hfsq + R).

    -inf at ``zero`` and NaN below come of divisions, which raise the flags."""
    hfsq = b.mul(t, b.mul(t, f, f), b.const(t, 0.5))
    pole, none = b.const(t, -1.0), b.const(t, 0.0)
    special = b.select(t, b.cmp("oeq", t, x, b.const(t, zero)), pole, none)
    outside = b.cmp("ole", t, x, b.const(t, zero))
    s = b.div(t, b.select(t, outside, special, f), b.select(t, outside, none, b.add(t, f, b.const(t, 2.0))))
    z = b.mul(t, s, s)
    r = b.mul(t, z, b.poly(t, z, _LOG[t]))
    return hfsq, b.mul(t, s, b.add(t, hfsq, r)), s


def _normal(b, t, x):
    """(x scaled up if subnormal, correction of k)."""
    small = b.cmp("olt", t, x, b.const(t, 2.0 ** (-126 if t == "f32" else -1022)))
    k = _FORMAT[t].m + 1
    x = b.select(t, small, b.mul(t, x, b.const(t, 2.0**k)), x)
    return x, b.select(t, small, b.const(t, -k), b.const(t, 0.0))


def _log_specials(b, t, x, out, zero, special):
    out = b.select(t, b.cmp("uge", t, x, b.const(t, math.inf)), x, out)
    return b.select(t, b.cmp("ole", t, x, b.const(t, zero)), special, out)


@expansion
def log(b, t, x):
    hi, lo = _LN2[t]
    y, correction = _normal(b, t, x)
    k, f = _split_log(b, t, y)
    k = b.add(t, k, correction)
    hfsq, tail, special = _log_parts(b, t, f, x, 0.0)
    tail = b.fma(t, k, b.const(t, lo), tail)
    out = b.sub(t, f, b.sub(t, hfsq, tail))
    out = b.fma(t, k, b.const(t, hi), out)
    return _log_specials(b, t, x, out, 0.0, special)


def _in_two(b, t, f, hfsq, tail):
    """log(1 + f) and what its rounding lost."""
    ln = b.sub(t, f, b.sub(t, hfsq, tail))
    return ln, b.sub(t, b.sub(t, b.sub(t, f, ln), hfsq), b.sub(t, b.const(t, 0.0), tail))


@expansion
def log2(b, t, x):
    y, correction = _normal(b, t, x)
    k, f = _split_log(b, t, y)
    k = b.add(t, k, correction)
    hfsq, tail, special = _log_parts(b, t, f, x, 0.0)
    # log2(e) in two parts, so that log2 of a power of two is exact and the product keeps its low half
    ln, rest = _in_two(b, t, f, hfsq, tail)
    hi = struct.unpack("<f", struct.pack("<f", math.log2(math.e)))[0] if t == "f32" else math.log2(math.e)
    lo = 1.925963033500011e-08 if t == "f32" else 2.0355273740931033e-17
    low = b.fma(t, ln, b.const(t, lo), b.mul(t, rest, b.const(t, hi)))
    whole = b.fma(t, ln, b.const(t, hi), low)
    return _log_specials(b, t, x, b.add(t, k, whole), 0.0, special)


@expansion
def log10(b, t, x):
    """1 / log(10) and log10(2) in two parts each (FreeBSD's e_log10.c), so that log10 of a power of ten is exact."""
    hi, lo, two_hi, two_lo = (b.const(t, c) for c in _LOG10[t])
    y, correction = _normal(b, t, x)
    k, f = _split_log(b, t, y)
    k = b.add(t, k, correction)
    hfsq, tail, special = _log_parts(b, t, f, x, 0.0)
    ln, rest = _in_two(b, t, f, hfsq, tail)
    product, whole = b.mul(t, ln, hi), b.mul(t, k, two_hi)
    low = b.fma(t, ln, hi, b.sub(t, b.const(t, 0.0), product))
    low = b.fma(t, rest, hi, b.fma(t, ln, lo, b.fma(t, k, two_lo, low)))
    top = b.add(t, whole, product)
    low = b.add(t, low, b.add(t, b.sub(t, whole, top), product))
    return _log_specials(b, t, x, b.add(t, top, low), 0.0, special)


@expansion
def log1p(b, t, x):
    hi, lo = _LN2[t]
    one = b.const(t, 1.0)
    u = b.add(t, one, x)
    k, f = _split_log(b, t, u)
    # what the rounding of 1 + x lost, relative to u (fdlibm); for k = 0 the fraction is x itself
    big = b.cmp("oge", t, u, b.const(t, 2.0))
    lost = b.select(t, big, b.sub(t, one, b.sub(t, u, x)), b.sub(t, x, b.sub(t, u, one)))
    lost = b.div(t, lost, u)
    near = b.cmp("oeq", t, k, b.const(t, 0.0))
    f = b.select(t, near, x, f)
    lost = b.select(t, near, b.const(t, 0.0), lost)
    hfsq, tail, special = _log_parts(b, t, f, x, -1.0)
    tail = b.add(t, tail, b.fma(t, k, b.const(t, lo), lost))
    out = b.sub(t, f, b.sub(t, hfsq, tail))
    out = b.fma(t, k, b.const(t, hi), out)
    out = b.select(t, b.cmp("oeq", t, x, b.const(t, 0.0)), x, out)
    return _log_specials(b, t, x, out, -1.0, special)


@expansion
def rsqrt(b, t, x):
    return b.div(t, b.const(t, 1.0), b.intrinsic("sqrt", t, x))


@expansion
def reciprocal(b, t, x):
    return b.div(t, b.const(t, 1.0), x)


# tanh x = x + x z P(z) on |x| < 0.625, z = x^2; float64 uses the quotient P/Q
_TANH = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
_TANH_P = (-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3)
_TANH_Q = (1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3)


@expansion
def tanh(b, t, x):
    a = b.intrinsic("fabs", t, x)
    z = b.mul(t, x, x)
    if t == "f32":
        ratio = b.poly(t, z, _TANH)
    else:
        ratio = b.div(t, b.poly(t, z, _TANH_P), b.poly(t, z, _TANH_Q))
    small = b.fma(t, b.mul(t, x, z), ratio, x)
    n, r = _exp_reduce(b, t, _clamp(b, t, b.add(t, a, a), 0.0, 40.0))
    fmt = _FORMAT[t]
    scale = b.op("shl", fmt.ints, b.add(fmt.ints, n, b.const(fmt.ints, fmt.bias)), b.const(fmt.ints, fmt.m))
    scale = b.convert("bitcast", fmt.ints, scale, t)
    e = b.fma(t, scale, _exp_m1_reduced(b, t, r), scale)
    large = b.sub(t, b.const(t, 1.0), b.div(t, b.const(t, 2.0), b.add(t, e, b.const(t, 1.0))))
    large = b.intrinsic("copysign", t, large, x)
    out = b.select(t, b.cmp("olt", t, a, b.const(t, 0.625)), small, large)
    return b.select(t, b.cmp("oeq", t, x, b.const(t, 0.0)), x, out)


# erf(x) / x - 1 as a polynomial in x^2 on |x| <= 1
_ERF = {
    "f32": (
        7.875875062685488e-05,
        -0.000801686428716587,
        0.005189087423433974,
        -0.026854212010626412,
        0.11283594715160218,
        -0.37612626666720334,
        0.1283791658483509,
    ),
    "f64": (
        5.957176147748911e-11,
        -1.1372848856791674e-09,
        1.4659775274047436e-08,
        -1.6350312701054695e-07,
        1.6461000484121368e-06,
        -1.4925595266831182e-05,
        0.0001205533111164271,
        -0.000854832698083379,
        0.0052239776248180145,
        -0.026866170645076792,
        0.11283791670954879,
        -0.3761263890318375,
        0.12837916709551256,
    ),
}
# log erfc(x) on [1, 4]
_ERFC_LOG = (
    1.6371514145936436e-06,
    -4.605804268918978e-05,
    0.0005968056256607798,
    -0.004759596293266265,
    0.026421136005663898,
    -0.11008008294882024,
    -0.631826051559163,
    -1.130233434841994,
    0.00032013804967769883,
)
# erfc(x) e^(x^2) in u = (x - 3) / (x + 3), x on [1, 6]
_ERFCX = (
    3.381355142042904e-09,
    1.2755818949624478e-06,
    2.0135111426447427e-06,
    -8.00978093907608e-06,
    -1.2845780030775907e-05,
    6.406279226046039e-05,
    4.525434558991009e-05,
    -0.0005970624964924544,
    0.0007077464666941425,
    0.004269136356961225,
    -0.024392499318915004,
    0.07166583719747308,
    -0.15011593650077898,
    0.24560380171233487,
    -0.3262335600430372,
    0.17900115118138996,
)


@expansion
def erf(b, t, x):
    a = b.intrinsic("fabs", t, x)
    small = b.fma(t, x, b.poly(t, b.mul(t, x, x), _ERF[t]), x)
    a = _clamp(b, t, a, 1.0, 4.0 if t == "f32" else 6.0)
    if t == "f32":
        g = b.poly(t, a, _ERFC_LOG)
    else:
        g = b.op("fneg", t, b.mul(t, a, a))
    # e^g for -37 <= g <= 0: no special values
    fmt = _FORMAT[t]
    n, r = _exp_reduce(b, t, g)
    scale = b.op("shl", fmt.ints, b.add(fmt.ints, n, b.const(fmt.ints, fmt.bias)), b.const(fmt.ints, fmt.m))
    scale = b.convert("bitcast", fmt.ints, scale, t)
    e = b.fma(t, scale, _exp_m1_reduced(b, t, r), scale)
    if t == "f64":
        u = b.div(t, b.sub(t, a, b.const(t, 3.0)), b.add(t, a, b.const(t, 3.0)))
        e = b.mul(t, e, b.poly(t, u, _ERFCX))
    large = b.intrinsic("copysign", t, b.sub(t, b.const(t, 1.0), e), x)
    return b.select(t, b.cmp("ogt", t, b.intrinsic("fabs", t, x), b.const(t, 1.0)), large, small)


# --- trigonometric ----------------------------------------------------------------------------------------------------
_PIO2 = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
_SIN = {
    "f64": (
        1.58969099521155010221e-10,
        -2.50507602534068634195e-08,
        2.75573137070700676789e-06,
        -1.98412698298579493134e-04,
        8.33333333332248946124e-03,
        -1.66666666666666324348e-01,
    ),
    "f32": (
        0.0000027183114939898219064,
        -0.000198393348360966317347,
        0.0083333293858894631756,
        -0.166666666416265235595,
    ),
}
_COS = {
    "f64": (
        -1.13596475577881948265e-11,
        2.08757232129817482790e-09,
        -2.75573143513906633035e-07,
        2.48015872894767294178e-05,
        -1.38888888888741095749e-03,
        4.16666666666666019037e-02,
    ),
    "f32": (0.0000243904487962774090654, -0.00138867637746099294692, 0.0416666233237390631894),
}


def _sin_cos(b, x, precise):
    """(sine, cosine, quadrant) of the float64 ``x`` reduced to [-pi/4, pi/4]; ``precise`` False is enough for a float32 result."""
    t = "f64"
    k, n = _round_shift(b, t, x, 2 / math.pi)
    first = b.fma(t, k, b.const(t, -_PIO2[0]), x)
    r = b.fma(t, k, b.const(t, -_PIO2[1]), first)
    z = b.mul(t, r, r)
    if not precise:
        sine = b.fma(t, b.mul(t, r, z), b.poly(t, z, _SIN["f32"]), r)
        cosine = b.fma(t, z, b.const(t, -0.499999997251031003120), b.const(t, 1.0))
        cosine = b.fma(t, b.mul(t, z, z), b.poly(t, z, _COS["f32"]), cosine)
        return sine, cosine, n
    tail = b.fma(t, k, b.const(t, -_PIO2[1]), b.sub(t, first, r))
    tail = b.fma(t, k, b.const(t, -_PIO2[2]), tail)
    sine = b.add(t, r, b.fma(t, b.mul(t, r, z), b.poly(t, z, _SIN[t]), tail))
    half = b.mul(t, z, b.const(t, 0.5))
    w = b.sub(t, b.const(t, 1.0), half)
    rest = b.sub(t, b.sub(t, b.const(t, 1.0), w), half)
    cosine = b.fma(t, b.mul(t, z, z), b.poly(t, z, _COS[t]), b.sub(t, rest, b.mul(t, r, tail)))
    return sine, b.add(t, w, cosine), n


def _trigonometric(b, t, x, name):
    wide = x if t == "f64" else b.convert("fpext", t, x, "f64")
    sine, cosine, n = _sin_cos(b, wide, t == "f64")
    odd = b.cmp("ne", "i64", b.op("and", "i64", n, b.const("i64", 1)), b.const("i64", 0))
    if name == "tan":
        out = b.div("f64", b.select("f64", odd, b.op("fneg", "f64", cosine), sine), b.select("f64", odd, sine, cosine))
    else:
        if name == "cos":
            sine, cosine = cosine, sine
            n = b.add("i64", n, b.select("i64", odd, b.const("i64", 1), b.const("i64", 0)))
            # cos: quadrant 0 cos, 1 -sin, 2 -cos, 3 sin; after rounding odd quadrants up the sign is bit 1
        out = b.select("f64", odd, cosine, sine)
        sign = b.op("shl", "i64", b.op("and", "i64", n, b.const("i64", 2)), b.const("i64", 62))
        out = b.convert("bitcast", "i64", b.op("xor", "i64", b.convert("bitcast", "f64", out, "i64"), sign), "f64")
    out = out if t == "f64" else b.convert("fptrunc", "f64", out, t)
    if name != "cos":
        out = b.select(t, b.cmp("oeq", t, x, b.const(t, 0.0)), x, out)
    # The three-part pi/2 holds to about 2^28; beyond (and for infinities) call the C library.
    rare = b.cmp("ogt", t, b.intrinsic("fabs", t, x), b.const(t, 2.0**28))
    return b.by_lane(t, out, rare, name + ("f" if t == "f32" else ""), x)


@expansion
def sin(b, t, x):
    return _trigonometric(b, t, x, "sin")


@expansion
def cos(b, t, x):
    return _trigonometric(b, t, x, "cos")


@expansion
def tan(b, t, x):
    return _trigonometric(b, t, x, "tan")


# --- arithmetic with special cases ------------------------------------------------------------------------------------
@expansion
def pow_(b, t, x, y):
    if t == "f64":
        return b.intrinsic("pow", t, x, y)
    # float32 through float64: 2^(y log2 |x|), the sign and the special cases put right afterwards
    a = b.convert("fpext", t, b.intrinsic("fabs", t, x), "f64")
    zero = b.cmp("oeq", "f64", a, b.const("f64", 0.0))  # a pole of log, but of the power only if y < 0
    logarithm = log(b, "f64", b.select("f64", zero, b.const("f64", 1.0), a))
    logarithm = b.select("f64", zero, b.const("f64", -math.inf), logarithm)
    e = b.mul("f64", b.convert("fpext", t, y, "f64"), logarithm)
    out = b.convert("fptrunc", "f64", exp(b, "f64", e), t)
    pole = b.op("and", "bool", b.cmp("oeq", t, x, b.const(t, 0.0)), b.cmp("olt", t, y, b.const(t, 0.0)))
    above = b.select(t, pole, b.intrinsic("fabs", t, y), out)
    out = b.div(t, above, b.select(t, pole, b.intrinsic("fabs", t, x), b.const(t, 1.0)))
    whole = b.cmp("oeq", t, b.intrinsic("trunc", t, y), y)
    half = b.mul(t, y, b.const(t, 0.5))
    odd = b.op("and", "bool", whole, b.cmp("one", t, b.intrinsic("trunc", t, half), half))
    out = b.select(t, odd, b.intrinsic("copysign", t, out, x), out)
    negative = b.op("and", "bool", b.cmp("olt", t, x, b.const(t, 0.0)), b.cmp("one", t, x, b.const(t, -math.inf)))
    invalid = b.op("and", "bool", negative, b.op("xor", "bool", whole, b.const("bool", True)))
    out = b.select(t, invalid, b.intrinsic("sqrt", t, b.select(t, invalid, x, b.const(t, 1.0))), out)
    minus_one = b.op(
        "and",
        "bool",
        b.cmp("oeq", t, x, b.const(t, -1.0)),
        b.cmp("oeq", t, b.intrinsic("fabs", t, y), b.const(t, math.inf)),
    )
    one = b.op("or", "bool", b.cmp("oeq", t, x, b.const(t, 1.0)), b.cmp("oeq", t, y, b.const(t, 0.0)))
    return b.select(t, b.op("or", "bool", one, minus_one), b.const(t, 1.0), out)


@expansion
def pow_int(b, t, x, y):
    """Square and multiply; a negative exponent gives 0 except for the bases 1 and -1 (integer division of 1)."""
    ty = b.ty(t)
    base, power, acc = (b.names.slot(ty) for _ in range(3))
    b.out += [f"store {ty} {x}, ptr {base}", f"store {ty} {b.const(t, 1)}, ptr {acc}"]
    magnitude = y if is_unsigned(t) else b.intrinsic_abs(t, y)
    b.out.append(f"store {ty} {magnitude}, ptr {power}")
    loop, done = b.names.fresh("loop"), b.names.fresh("done")
    b.branch(None, loop)
    b.label(loop)
    e, v, a = (b.emit(f"load {ty}, ptr {s}") for s in (power, base, acc))
    odd = b.cmp("ne", t, b.op("and", t, e, b.const(t, 1)), b.const(t, 0))
    a = b.select(t, odd, b.mul(t, a, v), a)
    e = b.op("lshr", t, e, b.const(t, 1))
    b.out += [f"store {ty} {e}, ptr {power}", f"store {ty} {b.mul(t, v, v)}, ptr {base}", f"store {ty} {a}, ptr {acc}"]
    b.branch(b.any(b.cmp("ne", t, e, b.const(t, 0))), loop, done)
    b.label(done)
    if is_unsigned(t):
        return a
    unit = b.op("or", "bool", b.cmp("eq", t, x, b.const(t, 1)), b.cmp("eq", t, x, b.const(t, -1)))
    dead = b.op("and", "bool", b.cmp("slt", t, y, b.const(t, 0)), b.op("xor", "bool", unit, b.const("bool", True)))
    return b.select(t, dead, b.const(t, 0), a)


@expansion
def maximum(b, t, x, y):
    m = b.select(t, b.cmp("ogt", t, x, y), x, y)
    return b.select(t, b.cmp("uno", t, x, x), x, m)


@expansion
def minimum(b, t, x, y):
    m = b.select(t, b.cmp("olt", t, x, y), x, y)
    return b.select(t, b.cmp("uno", t, x, x), x, m)


@expansion
def maximum_int(b, t, x, y):
    return b.intrinsic("umax" if is_unsigned(t) else "smax", t, x, y)


@expansion
def minimum_int(b, t, x, y):
    return b.intrinsic("umin" if is_unsigned(t) else "smin", t, x, y)


@expansion
def sign(b, t, x):
    neg = b.select(t, b.cmp("olt", t, x, b.const(t, 0.0)), b.const(t, -1.0), b.const(t, 0.0))
    return b.select(t, b.cmp("ogt", t, x, b.const(t, 0.0)), b.const(t, 1.0), neg)


@expansion
def sign_int(b, t, x):
    if is_unsigned(t):
        return b.intrinsic("umin", t, x, b.const(t, 1))
    return b.intrinsic("smax", t, b.intrinsic("smin", t, x, b.const(t, 1)), b.const(t, -1))


@expansion
def abs_int(b, t, x):
    return x if is_unsigned(t) else b.intrinsic_abs(t, x)


@expansion
def bitwise_not(b, t, x):
    return b.op("xor", t, x, b.const(t, -1))


@expansion
def fmod(b, t, x, y):
    """C's fmod, called; the quotient of float32 operands is too long for a cheap expansion that is exact."""
    return b.op("frem", t, x, y)


@expansion
def floordiv(b, t, x, y):
    """Python's //: the quotient from the exact remainder, then rounded down."""
    plain = b.div(t, x, y)
    mod = b.op("frem", t, x, y)
    zero, one = b.const(t, 0.0), b.const(t, 1.0)
    quotient = b.div(t, b.sub(t, x, mod), y)
    differ = b.op("xor", "bool", b.cmp("olt", t, y, zero), b.cmp("olt", t, mod, zero))
    differ = b.op("and", "bool", differ, b.cmp("one", t, mod, zero))
    quotient = b.select(t, differ, b.sub(t, quotient, one), quotient)
    floor = b.intrinsic("floor", t, quotient)
    above = b.cmp("ogt", t, b.sub(t, quotient, floor), b.const(t, 0.5))
    floor = b.select(t, above, b.add(t, floor, one), floor)
    floor = b.select(t, b.cmp("oeq", t, quotient, zero), b.intrinsic("copysign", t, zero, plain), floor)
    return b.select(t, b.cmp("oeq", t, y, zero), plain, floor)


@expansion
def remainder(b, t, x, y):
    zero = b.const(t, 0.0)
    mod = b.op("frem", t, x, y)
    differ = b.op("xor", "bool", b.cmp("olt", t, y, zero), b.cmp("olt", t, mod, zero))
    out = b.select(t, differ, b.add(t, mod, y), mod)
    return b.select(t, b.cmp("oeq", t, mod, zero), b.intrinsic("copysign", t, zero, y), out)


def _safe_divisor(b, t, y):
    """(y with 0 replaced by 1, is it 0); -1 is replaced too for signed types, as the smallest integer over it traps."""
    zero = b.cmp("eq", t, y, b.const(t, 0))
    safe = b.select(t, zero, b.const(t, 1), y)
    if is_unsigned(t):
        return safe, zero, None
    minus = b.cmp("eq", t, y, b.const(t, -1))
    return b.select(t, minus, b.const(t, 1), safe), zero, minus


@expansion
def floordiv_int(b, t, x, y):
    safe, zero, minus = _safe_divisor(b, t, y)
    if minus is None:
        return b.select(t, zero, b.const(t, 0), b.op("udiv", t, x, safe))
    q = b.op("sdiv", t, x, safe)
    rest = b.sub(t, x, b.mul(t, q, safe))
    down = b.cmp("slt", t, b.op("xor", t, rest, safe), b.const(t, 0))
    down = b.op("and", "bool", down, b.cmp("ne", t, rest, b.const(t, 0)))
    q = b.select(t, down, b.sub(t, q, b.const(t, 1)), q)
    q = b.select(t, minus, b.sub(t, b.const(t, 0), x), q)
    return b.select(t, zero, b.const(t, 0), q)


@expansion
def remainder_int(b, t, x, y):
    safe, zero, minus = _safe_divisor(b, t, y)
    if minus is None:
        return b.select(t, zero, b.const(t, 0), b.op("urem", t, x, safe))
    r = b.op("srem", t, x, safe)
    wrong = b.op(
        "and", "bool", b.cmp("slt", t, b.op("xor", t, r, safe), b.const(t, 0)), b.cmp("ne", t, r, b.const(t, 0))
    )
    r = b.select(t, wrong, b.add(t, r, safe), r)
    return b.select(t, zero, b.const(t, 0), r)


@expansion
def truncdiv(b, t, x, y):
    return b.intrinsic("trunc", t, b.div(t, x, y))


@expansion
def truncdiv_int(b, t, x, y):
    safe, zero, minus = _safe_divisor(b, t, y)
    q = b.op("udiv" if minus is None else "sdiv", t, x, safe)
    q = q if minus is None else b.select(t, minus, b.sub(t, b.const(t, 0), x), q)
    return b.select(t, zero, b.const(t, 0), q)


@expansion
def fmod_int(b, t, x, y):
    safe, zero, _ = _safe_divisor(b, t, y)
    return b.select(t, zero, b.const(t, 0), b.op("urem" if is_unsigned(t) else "srem", t, x, safe))


@expansion
def copy(b, t, x):
    return x


@expansion
def false(b, t, x):
    return b.const("bool", False)


@expansion
def logical_not(b, t, x):
    return b.op("xor", "bool", x, b.const("bool", True))
