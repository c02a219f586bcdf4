"""More elementary functions as expansions, and conversions of the scalar table's rarer rows: arcs, hyperbolic functions and their inverses, the error
function's complement and inverse, sums of exponentials, shifts. Included by :mod:`.vector_math`, whose conventions hold.

The arc tangent is Cephes' (Moshier, Methods and Programs for Mathematical Functions); the other arcs and inverse hyperbolic functions follow
from it and from log1p by identities that lose nothing; the inverse of erf starts with M. Giles' approximation in single precision (2010) and
takes two steps of Halley's. float32 is computed through float64 where an identity would lose digits.
"""

from __future__ import annotations

import math

from .builder import bits_of, is_float, is_unsigned
from .vector_math import erf, exp, exp2, expansion, expm1, log, log1p, maximum

__all__: list[str] = []

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


def _wide(fn):
    """The expansion ``fn`` of float64 for float32 too."""

    def through(b, t, *args):
        if t == "f64":
            return fn(b, t, *args)
        out = fn(b, "f64", *(b.convert("fpext", t, a, "f64") for a in args))
        return b.convert("fptrunc", "f64", out, t)

    through.__name__ = fn.__name__
    return expansion(through)


def _sqrt(b, t, x):
    return b.intrinsic("sqrt", t, x)


def _fabs(b, t, x):
    return b.intrinsic("fabs", t, x)


def _signed(b, t, out, x):
    return b.intrinsic("copysign", t, out, x)


def _atan(b, t, x):
    """Of a number that isn't negative; infinity gives pi / 2."""
    one = b.const(t, 1.0)
    high, middle = b.cmp("ogt", t, x, b.const(t, 2.41421356237309504880)), b.cmp("ogt", t, x, b.const(t, 0.66))
    top = b.select(t, high, b.const(t, -1.0), b.sub(t, x, one))
    below = b.select(t, high, x, b.add(t, x, one))
    y = b.select(t, middle, b.div(t, top, below), x)
    z = b.mul(t, y, y)
    ratio = b.div(t, b.mul(t, z, b.poly(t, z, _ATAN_P)), b.poly(t, z, _ATAN_Q))
    start = b.select(t, high, b.const(t, math.pi / 2), b.select(t, middle, b.const(t, math.pi / 4), b.const(t, 0.0)))
    rest = b.select(t, high, b.const(t, _PI_LOW / 2), b.select(t, middle, b.const(t, _PI_LOW / 4), b.const(t, 0.0)))
    return b.add(t, start, b.add(t, b.fma(t, y, ratio, y), rest))


@_wide
def atan(b, t, x):
    return _signed(b, t, _atan(b, t, _fabs(b, t, x)), x)


@_wide
def asin(b, t, x):
    one, a = b.const(t, 1.0), _fabs(b, t, x)
    root = _sqrt(b, t, b.mul(t, b.sub(t, one, a), b.add(t, one, a)))
    return _signed(b, t, _atan(b, t, b.div(t, a, root)), x)


@_wide
def acos(b, t, x):
    one = b.const(t, 1.0)
    half = _atan(b, t, _sqrt(b, t, b.div(t, b.sub(t, one, x), b.add(t, one, x))))
    return b.add(t, half, half)


@_wide
def atan2(b, t, y, x):
    a, c = _fabs(b, t, y), _fabs(b, t, x)
    zero = b.const(t, 0.0)
    ratio = b.div(t, a, c)
    ratio = b.select(
        t, b.op("and", "bool", b.cmp("oeq", t, a, c), b.cmp("oeq", t, a, b.const(t, math.inf))), b.const(t, 1.0), ratio
    )
    ratio = b.select(t, b.op("and", "bool", b.cmp("oeq", t, a, zero), b.cmp("oeq", t, c, zero)), zero, ratio)
    angle = _atan(b, t, ratio)
    left = b.cmp("olt", t, b.intrinsic("copysign", t, b.const(t, 1.0), x), zero)
    other = b.sub(t, b.const(t, math.pi), b.sub(t, angle, b.const(t, _PI_LOW)))
    return _signed(b, t, b.select(t, left, other, angle), y)


@_wide
def sinh(b, t, x):
    a, half = _fabs(b, t, x), b.const(t, 0.5)
    m = expm1(b, t, a)
    near = b.mul(t, half, b.add(t, m, b.div(t, m, b.add(t, m, b.const(t, 1.0)))))
    root = exp(b, t, b.mul(t, half, a))
    far = b.mul(t, b.mul(t, half, root), root)
    return _signed(b, t, b.select(t, b.cmp("ogt", t, a, b.const(t, 700.0)), far, near), x)


@_wide
def cosh(b, t, x):
    a, half = _fabs(b, t, x), b.const(t, 0.5)
    e = exp(b, t, a)
    near = b.add(t, b.mul(t, half, e), b.div(t, half, e))
    root = exp(b, t, b.mul(t, half, a))
    far = b.mul(t, b.mul(t, half, root), root)
    return b.select(t, b.cmp("ogt", t, a, b.const(t, 700.0)), far, near)


def _log_of_twice(b, t, a):
    return b.add(t, log(b, t, a), b.const(t, math.log(2)))


@_wide
def asinh(b, t, x):
    a, one = _fabs(b, t, x), b.const(t, 1.0)
    s = b.mul(t, a, a)
    near = log1p(b, t, b.add(t, a, b.div(t, s, b.add(t, one, _sqrt(b, t, b.add(t, s, one))))))
    return _signed(b, t, b.select(t, b.cmp("ogt", t, a, b.const(t, 2.0**28)), _log_of_twice(b, t, a), near), x)


@_wide
def acosh(b, t, x):
    u = b.sub(t, x, b.const(t, 1.0))
    root = _sqrt(b, t, b.mul(t, u, b.add(t, u, b.const(t, 2.0))))
    out = b.select(t, b.cmp("ogt", t, x, b.const(t, 2.0**28)), _log_of_twice(b, t, x), log1p(b, t, b.add(t, u, root)))
    return b.select(t, b.cmp("olt", t, x, b.const(t, 1.0)), b.const(t, math.nan), out)


@_wide
def atanh(b, t, x):
    a, one = _fabs(b, t, x), b.const(t, 1.0)
    out = log1p(b, t, b.div(t, b.add(t, a, a), b.sub(t, one, a)))
    out = b.select(t, b.cmp("ogt", t, a, one), b.const(t, math.nan), out)
    return _signed(b, t, b.mul(t, b.const(t, 0.5), out), x)


@_wide
def hypot(b, t, x, y):
    a, c = _fabs(b, t, x), _fabs(b, t, y)
    over = b.cmp("ogt", t, a, c)
    most, least = b.select(t, over, a, c), b.select(t, over, c, a)
    ratio = b.select(t, b.cmp("oeq", t, most, b.const(t, 0.0)), b.const(t, 0.0), b.div(t, least, most))
    out = b.mul(t, most, _sqrt(b, t, b.fma(t, ratio, ratio, b.const(t, 1.0))))
    bad = b.cmp("uno", t, x, y)
    out = b.select(t, bad, b.const(t, math.nan), out)
    inf = b.const(t, math.inf)
    return b.select(t, b.op("or", "bool", b.cmp("oeq", t, a, inf), b.cmp("oeq", t, c, inf)), inf, out)


def _called(b, t, name, x):
    """The C library's function of doubles for every lane."""
    return b.by_lane(t, x, b.const("bool", True), name, x)


@_wide
def erfc(b, t, x):
    return _called(b, t, "erfc", x)


# lgamma(u) / ((u - 1) (u - 2)) on 1 <= u <= 4, of t = (u - 2.5) / 1.5
_LGAMMA_NEAR = (
    1.8949246146948812e-07,
    -2.937381169850531e-07,
    -8.706037852151877e-07,
    1.2744720744199161e-06,
    2.2840351033588964e-06,
    -3.238179271795458e-06,
    -3.0413846426288565e-06,
    3.962264262642114e-06,
    4.093499904244934e-06,
    -5.54124596848963e-06,
    2.263552171880742e-08,
    -1.3550510074614214e-06,
    8.381228910752253e-06,
    -1.3970747039336978e-05,
    2.1977314810575835e-05,
    -3.923011797011767e-05,
    7.060801085904606e-05,
    -0.00012612288024591267,
    0.00022664156113702812,
    -0.0004106508000974891,
    0.0007509104405307765,
    -0.0013891271067844279,
    0.00260906396397895,
    -0.005001545206147756,
    0.009867103542142099,
    -0.020313343780378045,
    0.044786597185612995,
    -0.11199536123173726,
    0.379577160630559,
)
# z (lgamma(z) - (z - 1/2) log z + z - log(2 pi) / 2) for z >= 4, of t = 32 / z^2 - 1
_LGAMMA_FAR = (
    -4.983753828742755e-15,
    3.374343937252358e-14,
    -2.5984065742323646e-13,
    2.6049685358859335e-12,
    -3.3397398622953906e-11,
    5.845375597590658e-10,
    -1.542957751178108e-08,
    7.248740126784579e-07,
    -8.530699589674547e-05,
    0.0832472854130079,
)
# sin(pi r) / r on |r| <= 1/2, of t = 8 r^2 - 1
_SINE_OF_PI = (
    -1.6602689211553513e-16,
    4.588274523967674e-14,
    -1.0076966755292542e-11,
    1.7069665378821027e-09,
    -2.1447169625709586e-07,
    1.8956829192485415e-05,
    -0.0010924320054891753,
    0.03645310559709345,
    -0.5697036803076341,
    2.534324262661598,
)


@expansion
def lgamma(b, t, x):
    """float32 through float64, of which a few units are lost: by polynomials on [1, 4], by Stirling's formula above, by reflection below 0."""
    if t == "f64":
        return _called(b, t, "lgamma", x)
    t, number = "f64", lambda v: b.const("f64", v)
    x = b.convert("fpext", "f32", x, t)
    a, one = _fabs(b, t, x), number(1.0)
    far, tiny = b.cmp("oge", t, a, number(4.0)), b.cmp("olt", t, a, one)
    logarithm = log(b, t, b.select(t, b.op("or", "bool", far, tiny), a, one))
    u = b.select(t, tiny, b.add(t, a, one), a)
    near = b.poly(t, b.mul(t, b.sub(t, u, number(2.5)), number(1 / 1.5)), _LGAMMA_NEAR)
    near = b.fma(t, b.mul(t, b.sub(t, u, one), b.sub(t, u, number(2.0))), near, number(0.0))  # 0, not -0, at 1
    z = b.div(t, one, a)
    rest = b.mul(t, z, b.poly(t, b.fma(t, b.mul(t, z, z), number(32.0), number(-1.0)), _LGAMMA_FAR))
    rest = b.add(t, rest, number(0.5 * math.log(2 * math.pi)))
    stirling = b.add(t, b.fma(t, b.sub(t, a, number(0.5)), logarithm, b.op("fneg", t, a)), rest)
    out = b.select(t, far, stirling, b.sub(t, near, logarithm))
    r = b.sub(t, a, b.intrinsic("rint", t, a))
    sine = b.mul(t, r, b.poly(t, b.fma(t, b.mul(t, r, r), number(8.0), number(-1.0)), _SINE_OF_PI))
    reflected = b.sub(t, log(b, t, b.div(t, number(math.pi), b.mul(t, a, _fabs(b, t, sine)))), out)
    out = b.select(t, b.cmp("olt", t, x, number(0.0)), reflected, out)
    out = b.select(t, b.cmp("oeq", t, a, number(math.inf)), a, out)
    return b.convert("fptrunc", t, out, "f32")


_GILES_NEAR = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_GILES_FAR = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)


@_wide
def erfinv(b, t, x):
    a, one = _fabs(b, t, x), b.const(t, 1.0)
    left = b.sub(t, one, a)
    w = b.op("fneg", t, log(b, t, b.mul(t, left, b.add(t, one, a))))
    near = b.poly(t, b.sub(t, w, b.const(t, 2.5)), _GILES_NEAR)
    far = b.poly(t, b.sub(t, _sqrt(b, t, w), b.const(t, 3.0)), _GILES_FAR)
    y = b.mul(t, b.select(t, b.cmp("olt", t, w, b.const(t, 5.0)), near, far), a)
    small = b.cmp("olt", t, a, b.const(t, 0.5))
    for _ in range(2):
        miss = b.select(t, small, b.sub(t, erf(b, t, y), a), b.sub(t, left, _called(b, t, "erfc", y)))
        u = b.mul(t, b.mul(t, miss, b.const(t, math.sqrt(math.pi) / 2)), exp(b, t, b.mul(t, y, y)))
        y = b.sub(t, y, b.div(t, u, b.fma(t, y, u, one)))
    y = b.select(t, b.cmp("oeq", t, a, one), b.const(t, math.inf), y)
    y = b.select(t, b.cmp("oeq", t, a, b.const(t, 0.0)), a, y)
    return _signed(b, t, b.select(t, b.cmp("ogt", t, a, one), b.const(t, math.nan), y), x)


def _summed(b, t, x, y, power, of_one_more, equal):
    """log(base ** x + base ** y)."""
    most = maximum(b, t, x, y)
    apart = b.op("fneg", t, _fabs(b, t, b.sub(t, x, y)))
    out = b.add(t, most, of_one_more(power(b, t, apart)))
    return b.select(t, b.cmp("oeq", t, x, y), b.add(t, x, b.const(t, equal)), out)


@_wide
def logaddexp(b, t, x, y):
    return _summed(b, t, x, y, exp, lambda e: log1p(b, t, e), math.log(2))


@_wide
def logaddexp2(b, t, x, y):
    return _summed(b, t, x, y, exp2, lambda e: b.mul(t, log1p(b, t, e), b.const(t, math.log2(math.e))), 1.0)


@expansion
def fmax(b, t, x, y):
    out = b.select(t, b.cmp("oge", t, x, y), x, y)
    return b.select(t, b.cmp("uno", t, y, y), x, out)


@expansion
def fmin(b, t, x, y):
    out = b.select(t, b.cmp("ole", t, x, y), x, y)
    return b.select(t, b.cmp("uno", t, y, y), x, out)


@expansion
def signbit(b, t, x):
    if not is_float(t):
        return b.const("bool", False) if is_unsigned(t) else b.cmp("slt", t, x, b.const(t, 0))
    ints = "i32" if bits_of(t) == 32 else "i64"
    return b.cmp("slt", ints, b.convert("bitcast", t, x, ints), b.const(ints, 0))


@expansion
def angle(b, t, x):
    """pi for negative numbers, 0 for others, nan at nan."""
    zero = b.const(t, 0.0)
    turned = b.select(t, b.cmp("olt", t, x, zero), b.const(t, math.pi), zero)
    return b.select(t, b.cmp("uno", t, x, x), x, turned)


@expansion
def heaviside(b, t, x, y):
    zero, one = b.const(t, 0), b.const(t, 1)
    if is_float(t):
        positive, none = b.cmp("ogt", t, x, zero), b.cmp("oeq", t, x, zero)
    else:
        positive, none = b.cmp("ugt" if is_unsigned(t) else "sgt", t, x, zero), b.cmp("eq", t, x, zero)
    return b.select(t, none, y, b.select(t, positive, one, zero))


def _shift(b, t, op, x, y, beyond):
    """A shift by a number of bits that may be too large, or negative: then ``beyond``."""
    fits = b.cmp("ult", t, y, b.const(t, bits_of(t)))
    return b.select(t, fits, b.op(op, t, x, b.select(t, fits, y, b.const(t, 0))), beyond)


@expansion
def lshift(b, t, x, y):
    return _shift(b, t, "shl", x, y, b.const(t, 0))


@expansion
def rshift(b, t, x, y):
    if is_unsigned(t):
        return _shift(b, t, "lshr", x, y, b.const(t, 0))
    return _shift(b, t, "ashr", x, y, b.op("ashr", t, x, b.const(t, bits_of(t) - 1)))
