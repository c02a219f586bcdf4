"""The logarithm of the gamma function, its derivative and second derivative, as polynomials and asymptotic series."""

from __future__ import annotations

import math

from .exponentials import log
from .table import called, fabs, narrow, signed, wide

__all__: list[str] = []

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


def _lgamma(b, t, x):
    """In float64, of which a few units are lost: by polynomials on [1, 4], by Stirling's formula above, by reflection below 0."""
    number = lambda v: b.const(t, v)  # noqa: E731
    a, one = fabs(b, x), number(1.0)
    far, tiny = b.cmp("oge", a, number(4.0)), b.cmp("olt", a, one)
    logarithm = log(b, t, b.select(b.op("or", far, tiny), a, one))
    u = b.select(tiny, b.add(a, one), a)
    near = b.poly(b.mul(b.sub(u, number(2.5)), number(1 / 1.5)), _LGAMMA_NEAR)
    near = b.fma(b.mul(b.sub(u, one), b.sub(u, number(2.0))), near, number(0.0))  # 0, not -0, at 1
    z = b.div(one, a)
    rest = b.mul(z, b.poly(b.fma(b.mul(z, z), number(32.0), number(-1.0)), _LGAMMA_FAR))
    rest = b.add(rest, number(0.5 * math.log(2 * math.pi)))
    stirling = b.add(b.fma(b.sub(a, number(0.5)), logarithm, b.neg(a)), rest)
    out = b.select(far, stirling, b.sub(near, logarithm))
    r = b.sub(a, b.intrinsic("rint", a))
    sine = b.mul(r, b.poly(b.fma(b.mul(r, r), number(8.0), number(-1.0)), _SINE_OF_PI))
    reflected = b.sub(log(b, t, b.div(number(math.pi), b.mul(a, fabs(b, sine)))), out)
    out = b.select(b.cmp("olt", x, number(0.0)), reflected, out)
    return b.select(b.cmp("oeq", a, number(math.inf)), a, out)


lgamma = narrow("lgamma", _lgamma, lambda b, t, x: called(b, "lgamma", x))


# B(2 k) / (2 k) for k = 7 to 1, and B(2 k): the asymptotic series of the digamma function and of its derivative
_DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
_TRIGAMMA = (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6)
_UP = 10  # from here on they are exact


def _from_ten(b, t, x, step):
    """(x or, below ten, the first of x + 1, x + 2, ... that isn't; the sum of step(y) for the y passed)."""
    total = b.const(t, 0.0)
    for _ in range(_UP):
        low = b.cmp("olt", x, float(_UP))
        total = b.add(total, b.select(low, step(x), 0.0))
        x = b.select(low, b.add(x, 1.0), x)
    return x, total


def _sine_and_cosine_of_pi(b, t, x):
    """(sin, cos) of pi times the distance from x to the nearest integer."""
    r = b.mul(b.sub(x, b.intrinsic("rint", x)), math.pi)
    square = b.mul(r, r)
    factorials = [math.factorial(k) for k in range(24)]
    sine = [(-1.0) ** (k // 2) / factorials[k] for k in range(21, 0, -2)]
    cosine = [(-1.0) ** (k // 2) / factorials[k] for k in range(22, -1, -2)]
    return b.mul(r, b.poly(square, sine)), b.poly(square, cosine)


@wide
def digamma(b, t, x):
    """By recurrence to ten and the asymptotic series; by reflection below 0."""
    zero, one = b.const(t, 0.0), b.const(t, 1.0)
    negative = b.cmp("olt", x, zero)
    y = b.select(negative, b.sub(one, x), x)
    y, passed = _from_ten(b, t, y, lambda v: b.div(one, v))
    z = b.div(one, b.mul(y, y))
    rest = b.add(b.div(0.5, y), b.mul(z, b.poly(z, _DIGAMMA)))
    out = b.sub(b.sub(log(b, t, y), rest), passed)
    sine, cosine = _sine_and_cosine_of_pi(b, t, x)
    reflected = b.sub(out, b.div(b.mul(math.pi, cosine), sine))
    pole = b.op("and", negative, b.cmp("oeq", sine, zero))
    out = b.select(negative, b.select(pole, math.nan, reflected), out)
    out = b.select(b.cmp("oeq", x, math.inf), x, out)
    return b.select(b.cmp("oeq", x, zero), signed(b, b.const(t, math.inf), b.neg(x)), out)


@wide
def trigamma(b, t, x):
    zero, one = b.const(t, 0.0), b.const(t, 1.0)
    negative = b.cmp("olt", x, zero)
    y = b.select(negative, b.sub(one, x), x)
    y, passed = _from_ten(b, t, y, lambda v: b.div(one, b.mul(v, v)))
    w = b.div(one, y)
    z = b.mul(w, w)
    rest = b.mul(b.mul(z, w), b.poly(z, _TRIGAMMA))
    out = b.add(b.add(b.add(w, b.mul(z, 0.5)), rest), passed)
    sine, _ = _sine_and_cosine_of_pi(b, t, x)
    ratio = b.div(math.pi, sine)
    reflected = b.sub(b.mul(ratio, ratio), out)
    pole = b.op("or", b.cmp("oeq", x, zero), b.op("and", negative, b.cmp("oeq", sine, zero)))
    out = b.select(pole, math.inf, b.select(negative, reflected, out))
    return b.select(b.cmp("oeq", x, -math.inf), math.nan, out)
