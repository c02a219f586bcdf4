"""Elementary functions of complex numbers, as scalar bodies on pairs of real values (complex_values.py runs them).

Results at infinities, nans and signed zeros are those of annex G of the C standard, which NumPy's functions have too. Each function takes the
handler ``h`` of complex numbers; ``h.s`` is the one of their parts. Functions of the circle are those of the hyperbola turned by i.
"""

from __future__ import annotations

import math

__all__ = ["FUNCTIONS"]

_LARGEST_EXP = {"f32": 88.0, "f64": 709.0}
_FLAT_TANH = {"f32": 10.0, "f64": 20.0}
_HUGE = {"f32": 2.0**126, "f64": 2.0**1022}
_LN2, _LN10 = math.log(2), math.log(10)


def _infinite(s, x):
    return s.eq(s.abs(x), math.inf)


def _finite(s, x):
    return s.lt(s.abs(x), math.inf)


def size(h, a):
    """hypot, without overflow; infinite where a part is, nan or not."""
    s, (x, y) = h.s, h.parts(a)
    x, y = s.abs(x), s.abs(y)
    large, small = s.maximum(x, y), s.minimum(x, y)
    ratio = s.div(small, large)
    length = s.mul(large, s.sqrt(s.add(s.mul(ratio, ratio), 1.0)))
    length = s.where(s.logical_or(s.eq(large, 0.0), s.eq(small, 0.0)), large, length)
    return s.where(s.logical_or(s.eq(x, math.inf), s.eq(y, math.inf)), math.inf, length)


def angle(h, a):
    x, y = h.parts(a)
    return h.s.atan2(y, x)


def sgn(h, a):
    """The number over its size; 0 at 0; a unit where one part is infinite, as NumPy's."""
    s, (x, y) = h.s, h.parts(a)
    length = size(h, a)
    zero, infinite = s.eq(length, 0.0), s.eq(length, math.inf)

    def part(x, other):
        end = s.where(_infinite(s, x), s.where(_infinite(s, other), math.nan, s.copysign(1.0, x)), 0.0)
        return s.where(zero, 0.0, s.where(infinite, end, s.div(x, length)))

    return h.pair(part(x, y), part(y, x))


def exp(h, a):
    """e**x (cos y + i sin y), in two factors where the first overflows; the imaginary part of a real number is what it was."""
    s, (x, y) = h.s, h.parts(a)
    most = _LARGEST_EXP[h.part]
    large = s.gt(x, most)
    length = s.exp(s.where(large, s.sub(x, most), x))
    more = s.where(large, math.exp(most), 1.0)
    real = s.eq(y, 0.0)
    odd = s.logical_not(_finite(s, y))
    down, up = s.logical_and(odd, s.eq(x, -math.inf)), s.logical_and(odd, s.eq(x, math.inf))
    re = s.mul(s.mul(length, s.cos(y)), more)
    im = s.mul(s.mul(length, s.sin(y)), more)
    re = s.where(real, s.mul(length, more), s.where(down, 0.0, s.where(up, math.inf, re)))
    im = s.where(real, y, s.where(down, s.copysign(0.0, y), im))
    return h.pair(re, im)


def exp2(h, a):
    x, y = h.parts(a)
    return exp(h, h.pair(h.s.mul(x, _LN2), h.s.mul(y, _LN2)))


def expm1(h, a):
    """e**x cos y - 1 = expm1(x) cos y - 2 sin(y/2)**2."""
    s, (x, y) = h.s, h.parts(a)
    half = s.sin(s.mul(y, 0.5))
    re = s.sub(s.mul(s.expm1(x), s.cos(y)), s.mul(s.mul(half, half), 2.0))
    return h.pair(re, s.mul(s.exp(x), s.sin(y)))


def _log_size(h, x, y):
    """log |x + iy|: near 1 from what |x + iy|**2 is above 1, elsewhere from the larger part and a ratio, which can't overflow."""
    s = h.s
    ax, ay = s.abs(x), s.abs(y)
    large, small = s.maximum(ax, ay), s.minimum(ax, ay)
    near = s.logical_and(s.gt(large, 0.5), s.lt(large, 2.0))
    above = s.add(s.mul(s.sub(large, 1.0), s.add(large, 1.0)), s.mul(small, small))
    ratio = s.where(
        s.logical_or(s.eq(large, 0.0), s.eq(small, large)), s.where(s.eq(large, 0.0), 0.0, 1.0), s.div(small, large)
    )
    far = s.add(s.log(large), s.mul(s.log1p(s.mul(ratio, ratio)), 0.5))
    out = s.where(near, s.mul(s.log1p(above), 0.5), far)
    return s.where(s.logical_or(_infinite(s, x), _infinite(s, y)), math.inf, out)


def log(h, a):
    x, y = h.parts(a)
    return h.pair(_log_size(h, x, y), h.s.atan2(y, x))


def log_by(base):
    def of(h, a):
        x, y = h.parts(log(h, a))
        return h.pair(h.s.mul(x, 1 / base), h.s.mul(y, 1 / base))

    return of


def log1p(h, a):
    """Near 0 from x (x + 2) + y**2, which is what |1 + z|**2 is above 1."""
    s, (x, y) = h.s, h.parts(a)
    more = s.add(x, 1.0)
    near = s.logical_and(s.lt(s.abs(x), 0.5), s.lt(s.abs(y), 0.5))
    small = s.mul(s.log1p(s.add(s.mul(x, s.add(x, 2.0)), s.mul(y, y))), 0.5)
    return h.pair(s.where(near, small, _log_size(h, more, y)), s.atan2(y, more))


def sqrt(h, a):
    """The root in the right half plane: of (|z| + |x|) / 2 first, the other part from it (both scaled by 4 where the sum overflows)."""
    s, (x, y) = h.s, h.parts(a)
    large = s.gt(s.maximum(s.abs(x), s.abs(y)), _HUGE[h.part])
    scale = s.where(large, 0.25, 1.0)
    u, v = s.mul(x, scale), s.mul(y, scale)
    root = s.mul(s.sqrt(s.mul(s.add(size(h, h.pair(u, v)), s.abs(u)), 0.5)), s.where(large, 2.0, 1.0))
    other = s.div(s.abs(y), s.mul(root, 2.0))
    zero = s.logical_and(s.eq(x, 0.0), s.eq(y, 0.0))
    right = s.ge(x, 0.0)
    re = s.where(zero, 0.0, s.where(right, root, other))
    im = s.where(zero, s.abs(y), s.where(right, other, root))
    level = s.logical_and(_infinite(s, x), _finite(s, y))
    re = s.where(level, s.where(right, math.inf, 0.0), re)
    im = s.where(level, s.where(right, 0.0, math.inf), im)
    lost = s.logical_and(_infinite(s, x), s.isnan(y))
    re = s.where(lost, s.where(right, math.inf, y), re)
    im = s.where(lost, s.where(right, y, math.inf), im)
    steep = _infinite(s, y)
    return h.pair(s.where(steep, math.inf, re), s.copysign(s.where(steep, math.inf, im), y))


def rsqrt(h, a):
    return h.div(1.0, sqrt(h, a))


def _hyperbolic(h, x, y):
    """cosh x cos y, sinh x sin y, sinh x cos y, cosh x sin y; in two factors where cosh x overflows."""
    s, most = h.s, _LARGEST_EXP[h.part]
    ax = s.abs(x)
    large = s.gt(ax, most)
    half = s.mul(s.exp(s.where(large, s.sub(ax, most), 0.0)), 0.5)
    more = s.where(large, math.exp(most), 1.0)
    c = s.where(large, half, s.cosh(x))
    sh = s.where(large, s.copysign(half, x), s.sinh(x))
    cos, sin = s.cos(y), s.sin(y)
    return tuple(s.mul(s.mul(a, b), more) for a, b in ((c, cos), (sh, sin), (sh, cos), (c, sin)))


def cosh(h, a):
    s, (x, y) = h.s, h.parts(a)
    re, im, _, _ = _hyperbolic(h, x, y)
    im = s.where(s.logical_and(s.eq(x, 0.0), s.logical_not(_finite(s, y))), s.copysign(0.0, x), im)
    im = s.where(s.eq(y, 0.0), s.where(s.isnan(x), y, s.mul(s.copysign(1.0, x), y)), im)
    re = s.where(s.logical_and(s.eq(y, 0.0), _infinite(s, x)), math.inf, re)
    re = s.where(s.logical_and(_infinite(s, x), s.logical_not(_finite(s, y))), math.inf, re)
    return h.pair(re, im)


def sinh(h, a):
    s, (x, y) = h.s, h.parts(a)
    _, _, re, im = _hyperbolic(h, x, y)
    odd = s.logical_not(_finite(s, y))
    re = s.where(s.logical_and(odd, s.eq(x, 0.0)), x, s.where(s.logical_and(odd, _infinite(s, x)), math.inf, re))
    re = s.where(s.eq(y, 0.0), s.sinh(x), re)
    return h.pair(re, s.where(s.eq(y, 0.0), y, im))


def tanh(h, a):
    """Kahan's formula ("Branch cuts for complex elementary functions", 1987); far out the number is one, up to 4 sin y cos y / e**2x."""
    s, (x, y) = h.s, h.parts(a)
    tan, sh = s.tan(y), s.sinh(x)
    beta = s.add(s.mul(tan, tan), 1.0)
    bottom = s.add(s.mul(beta, s.mul(sh, sh)), 1.0)
    rho = s.sqrt(s.add(s.mul(sh, sh), 1.0))
    odd, level = s.logical_not(_finite(s, y)), _infinite(s, x)
    far = s.logical_or(level, s.logical_and(_finite(s, y), s.gt(s.abs(x), _FLAT_TANH[h.part])))
    small = s.mul(s.mul(s.mul(s.sin(y), s.cos(y)), 4.0), s.exp(s.mul(s.abs(x), -2.0)))
    small = s.where(s.logical_and(odd, level), s.copysign(0.0, y), small)
    re = s.where(far, s.copysign(1.0, x), s.div(s.mul(s.mul(beta, rho), sh), bottom))
    re = s.where(s.logical_and(odd, s.eq(x, 0.0)), x, re)
    im = s.where(far, small, s.div(tan, bottom))
    return h.pair(s.where(s.eq(y, 0.0), s.tanh(x), re), s.where(s.eq(y, 0.0), y, im))


def _transposed(h, a):
    """i z."""
    x, y = h.parts(a)
    return h.pair(h.s.neg(y), x)


def sin(h, a):
    re, im = h.parts(sinh(h, _transposed(h, a)))
    return h.pair(im, h.s.neg(re))


def cos(h, a):
    return cosh(h, _transposed(h, a))


def tan(h, a):
    re, im = h.parts(tanh(h, _transposed(h, a)))
    return h.pair(im, h.s.neg(re))


def sigmoid(h, a):
    return h.reciprocal(h.add(exp(h, h.neg(a)), 1.0))


FUNCTIONS = {
    "abs": size,
    "angle": angle,
    "cos": cos,
    "cosh": cosh,
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "log": log,
    "log1p": log1p,
    "log2": log_by(_LN2),
    "log10": log_by(_LN10),
    "rsqrt": rsqrt,
    "sgn": sgn,
    "sigmoid": sigmoid,
    "sin": sin,
    "sinh": sinh,
    "sqrt": sqrt,
    "tan": tan,
    "tanh": tanh,
}
"""Scalar operation -> the function of it on pairs."""
