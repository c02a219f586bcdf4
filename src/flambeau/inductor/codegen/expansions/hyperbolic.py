"""Hyperbolic functions and their inverses: tanh with the coefficients of the Cephes library, the others by identities that lose nothing."""

from __future__ import annotations

import math

from .exponentials import FORMATS, clamp, exp_m1_reduced, exp_reduce, log, log1p, split_log
from .table import expansion, fabs, narrow, signed, sqrt, wide

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


# sinh x = x + x z S(z) on |x| <= 1, z = x^2 (Taylor)
_SINH = {
    "f32": tuple(1 / math.factorial(k) for k in (11, 9, 7, 5, 3)),
    "f64": tuple(1 / math.factorial(k) for k in (19, 17, 15, 13, 11, 9, 7, 5, 3)),
}


def _eighth_of_exp(b, t, a):
    """e^a / 8 of a number that isn't negative: it overflows for none whose hyperbolic functions don't."""
    fmt = FORMATS[t]
    n, r = exp_reduce(b, t, clamp(b, t, a, 0.0, 90.0 if t == "f32" else 711.0))
    scale = b.convert("bitcast", b.op("shl", b.add(n, fmt.bias - 3), fmt.m), t)
    return b.fma(scale, exp_m1_reduced(b, t, r), scale)


@expansion
def sinh(b, t, x):
    a, z = fabs(b, x), b.mul(x, x)
    e = _eighth_of_exp(b, t, a)
    far = signed(b, b.sub(b.mul(e, 4.0), b.div(1 / 16, e)), x)
    near = b.fma(b.mul(x, z), b.poly(z, _SINH[t]), x)
    return b.select(b.cmp("ole", a, 1.0), near, far)


@expansion
def cosh(b, t, x):
    e = _eighth_of_exp(b, t, fabs(b, x))
    return b.add(b.mul(e, 4.0), b.div(1 / 16, e))


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


# (atanh(s) / s - 1) / s^2 in s^2, s <= 0.48, for float32
_ATANH = (
    0.1453386232901547, 0.028498713685703368, 0.08499198269120935, 0.08999421065045574, 0.11116653291418521, 0.14285550956847867, 0.2000000182277851,
    0.33333333330009257,
)  # fmt: skip


def _atanh_single(b, t, x):
    """log(u / v) / 2, u = 1 + |x| and v = 1 - |x| = 2^k w, by its series in (u - w) / (u + w)."""
    a, one = fabs(b, x), b.const(t, 1.0)
    u, v = b.add(one, a), b.sub(one, a)
    k, w = split_log(b, t, v)
    w = b.add(w, one)
    apart = b.select(b.cmp("oeq", k, 0.0), b.add(a, a), b.sub(u, w))
    # The pole and what lies beyond come of a division, which raises their flags.
    end, zero = b.cmp("oge", a, one), b.const(t, 0.0)
    pole = b.select(b.cmp("oeq", a, one), one, zero)
    s = b.div(b.select(end, pole, apart), b.select(end, zero, b.add(u, w)))
    z = b.mul(s, s)
    near = b.fma(b.mul(s, z), b.poly(z, _ATANH), s)
    return signed(b, b.fma(k, -math.log(2) / 2, near), x)


def _atanh(b, t, x):
    a, one = fabs(b, x), b.const(t, 1.0)
    out = log1p(b, t, b.div(b.add(a, a), b.sub(one, a)))
    out = b.select(b.cmp("ogt", a, one), math.nan, out)
    return signed(b, b.mul(0.5, out), x)


narrow("atanh", _atanh_single, _atanh)
