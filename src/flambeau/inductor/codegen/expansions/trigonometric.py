"""Trigonometric functions and arcs: sin and cos kernels with fdlibm's coefficients, the arc tangent Cephes' (Moshier, Methods and Programs for
Mathematical Functions); that of float32, the arc sine and the arc cosine are minimax polynomials."""

from __future__ import annotations

import math

from .exponentials import round_shift
from .table import expansion, fabs, signed, sqrt, wide

__all__: list[str] = []

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
    k, n = round_shift(b, t, x, 2 / math.pi)
    first = b.fma(k, -_PIO2[0], x)
    r = b.fma(k, -_PIO2[1], first)
    z = b.mul(r, r)
    if not precise:
        sine = b.fma(b.mul(r, z), b.poly(z, _SIN["f32"]), r)
        cosine = b.fma(z, -0.499999997251031003120, 1.0)
        cosine = b.fma(b.mul(z, z), b.poly(z, _COS["f32"]), cosine)
        return sine, cosine, n
    tail = b.fma(k, -_PIO2[1], b.sub(first, r))
    tail = b.fma(k, -_PIO2[2], tail)
    sine = b.add(r, b.fma(b.mul(r, z), b.poly(z, _SIN[t]), tail))
    half = b.mul(z, 0.5)
    w = b.sub(1.0, half)
    rest = b.sub(b.sub(1.0, w), half)
    cosine = b.fma(b.mul(z, z), b.poly(z, _COS[t]), b.sub(rest, b.mul(r, tail)))
    return sine, b.add(w, cosine), n


def _trigonometric(b, t, x, name):
    wide = x if t == "f64" else b.convert("fpext", x, "f64")
    sine, cosine, n = _sin_cos(b, wide, t == "f64")
    odd = b.cmp("ne", b.op("and", n, 1), 0)
    if name == "tan":
        out = b.div(b.select(odd, b.neg(cosine), sine), b.select(odd, sine, cosine))
    else:
        if name == "cos":
            sine, cosine = cosine, sine
            n = b.add(n, b.select(odd, b.const("i64", 1), b.const("i64", 0)))
            # cos: quadrant 0 cos, 1 -sin, 2 -cos, 3 sin; after rounding odd quadrants up the sign is bit 1
        out = b.select(odd, cosine, sine)
        sign = b.op("shl", b.op("and", n, 2), 62)
        out = b.convert("bitcast", b.op("xor", b.convert("bitcast", out, "i64"), sign), "f64")
    if name != "cos":
        out = b.select(b.cmp("oeq", wide, 0.0), wide, out)
    out = out if t == "f64" else b.convert("fptrunc", out, t)
    # The three-part pi/2 holds to about 2^28; beyond (and for infinities) call the C library.
    rare = b.cmp("ogt", b.intrinsic("fabs", x), 2.0**28)
    return b.by_lane(out, rare, name + ("f" if t == "f32" else ""), x)


@expansion
def sin(b, t, x):
    return _trigonometric(b, t, x, "sin")


@expansion
def cos(b, t, x):
    return _trigonometric(b, t, x, "cos")


@expansion
def tan(b, t, x):
    return _trigonometric(b, t, x, "tan")


_ATAN_P = (
    -8.750608600031904122785e-1,
    -1.615753718733365076637e1,
    -7.500855792314704667340e1,
    -1.228866684490136173410e2,
    -6.485021904942025371773e1,
)
_ATAN_Q = (
    1.0,
    2.485846490142306297962e1,
    1.650270098316988542046e2,
    4.328810604912902668951e2,
    4.853903996359136964868e2,
    1.945506571482613964425e2,
)
_PI_LOW = 1.2246467991473532e-16  # pi less the double nearest to it


def _atan(b, t, x):
    """Of a number that isn't negative; infinity gives pi / 2."""
    one = b.const(t, 1.0)
    high, middle = b.cmp("ogt", x, 2.41421356237309504880), b.cmp("ogt", x, 0.66)
    top = b.select(high, -1.0, b.sub(x, one))
    below = b.select(high, x, b.add(x, one))
    y = b.select(middle, b.div(top, below), x)
    z = b.mul(y, y)
    ratio = b.div(b.mul(z, b.poly(z, _ATAN_P)), b.poly(z, _ATAN_Q))
    start = b.select(high, math.pi / 2, b.select(middle, b.const(t, math.pi / 4), b.const(t, 0.0)))
    rest = b.select(high, _PI_LOW / 2, b.select(middle, b.const(t, _PI_LOW / 4), b.const(t, 0.0)))
    return b.add(start, b.add(b.fma(y, ratio, y), rest))


# (atan(y) / y - 1) / y^2 as a polynomial in y^2 on [0, 1]
_ATAN_SINGLE = (
    -0.0019393456244724007,
    0.011579218423036823,
    -0.03244334086596605,
    0.059260057348968144,
    -0.0848178114704502,
    0.10979925797748988,
    -0.14269762528130886,
    0.1999909334891286,
    -0.33333318353617675,
)
# (asin(s) / s - 1) / s^2 as a polynomial in s^2 on [0, 1/4]
_ASIN = {
    "f32": (0.040889173359444864, 0.024996447482304278, 0.04528739180175727, 0.07496954302436844, 0.1666670368000547),
    "f64": (
        0.031174560949561895,
        -0.01860263888009052,
        0.019958738498885412,
        0.004450181912977965,
        0.010576005299495116,
        0.011436806119822705,
        0.013975991511664647,
        0.01735203322775667,
        0.02237219039616705,
        0.030381943625792652,
        0.04464285715443639,
        0.07499999999993122,
        0.16666666666666674,
    ),
}
_PI = {"f32": (3.1415927410125732, -8.742278e-08), "f64": (math.pi, _PI_LOW)}  # pi in two parts


@expansion
def atan(b, t, x):
    a = fabs(b, x)
    if t == "f64":
        return signed(b, _atan(b, t, a), x)
    high, low = _PI[t]
    over = b.cmp("ogt", a, 1.0)
    y = b.div(b.select(over, -1.0, a), b.select(over, a, 1.0))
    z = b.mul(y, y)
    tail = b.fma(b.mul(y, z), b.poly(z, _ATAN_SINGLE), b.select(over, b.const(t, low / 2), b.const(t, 0.0)))
    return signed(b, b.add(b.add(b.select(over, b.const(t, high / 2), b.const(t, 0.0)), y), tail), x)


def _arc(b, t, a, u, start, rest):
    """start + rest less asin(u), or less 2 asin(u / 2) where u is twice the root of (1 - a) / 2."""
    square = b.select(b.cmp("ogt", a, 0.5), b.mul(b.sub(1.0, a), 0.5), b.mul(a, a))
    return b.sub(start, b.add(u, b.fma(b.mul(u, square), b.poly(square, _ASIN[t]), b.neg(rest))))


def _twice_root(b, a):
    half = b.mul(b.sub(1.0, a), 0.5)
    root = sqrt(b, half)
    return b.add(root, root)


@expansion
def asin(b, t, x):
    """Above 1/2 by pi / 2 - 2 asin(sqrt((1 - a) / 2))."""
    (high, low), zero, a = _PI[t], b.const(t, 0.0), fabs(b, x)
    over = b.cmp("ogt", a, 0.5)
    u = b.select(over, _twice_root(b, a), b.neg(a))
    start, rest = b.select(over, b.const(t, high / 2), zero), b.select(over, b.const(t, low / 2), zero)
    return signed(b, _arc(b, t, a, u, start, rest), x)


@expansion
def acos(b, t, x):
    (high, low), zero, a = _PI[t], b.const(t, 0.0), fabs(b, x)
    over, negative = b.cmp("ogt", a, 0.5), b.cmp("olt", x, zero)
    root = _twice_root(b, a)
    u = b.select(over, b.select(negative, root, b.neg(root)), x)
    start, rest = (
        b.select(over, b.select(negative, b.const(t, whole), zero), b.const(t, whole / 2)) for whole in (high, low)
    )
    return _arc(b, t, a, u, start, rest)


@wide
def atan2(b, t, y, x):
    a, c = fabs(b, y), fabs(b, x)
    zero = b.const(t, 0.0)
    ratio = b.div(a, c)
    ratio = b.select(b.op("and", b.cmp("oeq", a, c), b.cmp("oeq", a, math.inf)), 1.0, ratio)
    ratio = b.select(b.op("and", b.cmp("oeq", a, zero), b.cmp("oeq", c, zero)), zero, ratio)
    angle = _atan(b, t, ratio)
    left = b.cmp("olt", b.intrinsic("copysign", b.const(t, 1.0), x), zero)
    other = b.sub(math.pi, b.sub(angle, _PI_LOW))
    return signed(b, b.select(left, other, angle), y)


@wide
def hypot(b, t, x, y):
    a, c = fabs(b, x), fabs(b, y)
    over = b.cmp("ogt", a, c)
    most, least = b.select(over, a, c), b.select(over, c, a)
    ratio = b.select(b.cmp("oeq", most, 0.0), 0.0, b.div(least, most))
    out = b.mul(most, sqrt(b, b.fma(ratio, ratio, 1.0)))
    bad = b.cmp("uno", x, y)
    out = b.select(bad, math.nan, out)
    inf = b.const(t, math.inf)
    return b.select(b.op("or", b.cmp("oeq", a, inf), b.cmp("oeq", c, inf)), inf, out)


@expansion
def angle(b, t, x):
    """pi for negative numbers, 0 for others, nan at nan."""
    zero = b.const(t, 0.0)
    transposed = b.select(b.cmp("olt", x, zero), math.pi, zero)
    return b.select(b.cmp("uno", x, x), x, transposed)
