"""Hyperbolic functions and their inverses: tanh with the coefficients of the Cephes library, the others by identities that lose nothing."""

from __future__ import annotations

import math

from .exponentials import FORMATS, clamp, exp, exp_m1_reduced, exp_reduce, expm1, log, log1p
from .table import expansion, fabs, signed, sqrt, wide

__all__: list[str] = []

# tanh x = x + x z P(z) on |x| < 0.625, z = x^2; float64 uses the quotient P/Q
_TANH = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
_TANH_P = (-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3)
_TANH_Q = (1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3)


@expansion
def tanh(b, t, x):
    a = b.intrinsic("fabs", x)
    z = b.mul(x, x)
    if t == "f32":
        ratio = b.poly(z, _TANH)
    else:
        ratio = b.div(b.poly(z, _TANH_P), b.poly(z, _TANH_Q))
    small = b.fma(b.mul(x, z), ratio, x)
    n, r = exp_reduce(b, t, clamp(b, t, b.add(a, a), 0.0, 40.0))
    fmt = FORMATS[t]
    scale = b.op("shl", b.add(n, fmt.bias), fmt.m)
    scale = b.convert("bitcast", scale, t)
    e = b.fma(scale, exp_m1_reduced(b, t, r), scale)
    large = b.sub(1.0, b.div(2.0, b.add(e, 1.0)))
    large = b.intrinsic("copysign", large, x)
    out = b.select(b.cmp("olt", a, 0.625), small, large)
    return b.select(b.cmp("oeq", x, 0.0), x, out)


@wide
def sinh(b, t, x):
    a, half = fabs(b, x), b.const(t, 0.5)
    m = expm1(b, t, a)
    near = b.mul(half, b.add(m, b.div(m, b.add(m, 1.0))))
    root = exp(b, t, b.mul(half, a))
    far = b.mul(b.mul(half, root), root)
    return signed(b, b.select(b.cmp("ogt", a, 700.0), far, near), x)


@wide
def cosh(b, t, x):
    a, half = fabs(b, x), b.const(t, 0.5)
    e = exp(b, t, a)
    near = b.add(b.mul(half, e), b.div(half, e))
    root = exp(b, t, b.mul(half, a))
    far = b.mul(b.mul(half, root), root)
    return b.select(b.cmp("ogt", a, 700.0), far, near)


def _log_of_twice(b, t, a):
    return b.add(log(b, t, a), math.log(2))


@wide
def asinh(b, t, x):
    a, one = fabs(b, x), b.const(t, 1.0)
    s = b.mul(a, a)
    near = log1p(b, t, b.add(a, b.div(s, b.add(one, sqrt(b, b.add(s, one))))))
    return signed(b, b.select(b.cmp("ogt", a, 2.0**28), _log_of_twice(b, t, a), near), x)


@wide
def acosh(b, t, x):
    u = b.sub(x, 1.0)
    root = sqrt(b, b.mul(u, b.add(u, 2.0)))
    out = b.select(b.cmp("ogt", x, 2.0**28), _log_of_twice(b, t, x), log1p(b, t, b.add(u, root)))
    return b.select(b.cmp("olt", x, 1.0), math.nan, out)


@wide
def atanh(b, t, x):
    a, one = fabs(b, x), b.const(t, 1.0)
    out = log1p(b, t, b.div(b.add(a, a), b.sub(one, a)))
    out = b.select(b.cmp("ogt", a, one), math.nan, out)
    return signed(b, b.mul(0.5, out), x)
