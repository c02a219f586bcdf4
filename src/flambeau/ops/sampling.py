"""Draws from the gamma, Dirichlet, Poisson and binomial distributions, with the gradients of the first two.

Elements are drawn one after another from the generator's doubles, in PyTorch's order, by published methods: Marsaglia and Tsang (2000) for gamma,
Hoermann (1993) for Poisson (PTRS) and binomial (BTRS) with large means. Gradients are implicit: from F(x; a) = u follows dx/da = -(dF/da) / p(x).
"""

from __future__ import annotations

import math

import numpy as np

from ..base.shapes import contiguous_strides
from ..core.declare import COMPLEX, extern, random
from ..core.definition import TensorMeta
from ..core.operator import namespace

aten = namespace("aten")
_F64 = np.dtype(np.float64)


def _u(gen) -> float:
    return float(gen.uniform((1,), _F64)[0])


def _gamma(gen, a: float) -> float:
    if a == 0 or a != a:
        return a
    scale = 1.0
    if a < 1:
        scale, a = (1 - _u(gen)) ** (1 / a), a + 1
    d = a - 1 / 3
    c = 1 / math.sqrt(9 * d)
    while True:
        y = 0.0
        while y <= 0:
            x = float(gen.normal((1,), _F64)[0])
            y = 1 + c * x
        v, u, xx = y**3, 1 - _u(gen), x * x
        if u < 1 - 0.0331 * xx * xx or math.log(u) < 0.5 * xx + d * (1 - v + math.log(v)):
            return scale * d * v


def _poisson(gen, rate: float) -> float:
    if rate <= 0:
        return 0.0
    if rate < 10:
        limit, product, k = math.exp(-rate), _u(gen), 0
        while product > limit:
            k += 1
            product *= _u(gen)
        return float(k)
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse, reach = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = _u(gen) - 0.5, _u(gen)
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= reach:
            return float(k)
        if k < 0 or (us < 0.013 and v > us):
            continue
        if math.log(v) + math.log(inverse) - math.log(a / (us * us) + b) <= -rate + k * log_rate - math.lgamma(k + 1):
            return float(k)


def _tail(k: float) -> float:
    """log k! less Stirling's formula."""
    return math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))


def _binomial(gen, n: float, p: float) -> float:
    if p != p or n != n:
        return math.nan
    if n <= 0 or p <= 0:
        return 0.0
    if p >= 1:
        return n
    if p > 0.5:
        return n - _binomial(gen, n, 1 - p)
    if n * p < 10:
        total, k, log_q = 0.0, 0, math.log1p(-p)
        while True:
            u = _u(gen)
            total += math.ceil(math.log(u) / log_q) if u > 0 else math.inf
            if total > n:
                return float(k)
            k += 1
    deviation = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c, reach, r = n * p + 0.5, 0.92 - 4.2 / b, p / (1 - p)
    alpha, m = (2.83 + 5.1 / b) * deviation, math.floor((n + 1) * p)
    while True:
        u, v = _u(gen) - 0.5, _u(gen)
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c)
        if us >= 0.07 and v <= reach:
            return float(k)
        if k < 0 or k > n:
            continue
        bound = (
            (m + 0.5) * math.log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * math.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * math.log(r * (n - k + 1) / (k + 1))
            + (_tail(m) + _tail(n - m) - _tail(k) - _tail(n - k))
        )
        if math.log(v * alpha / (a / (us * us) + b)) <= bound:
            return float(k)


def _drawn(draw, shape, dtype, *arrays):
    values = [draw(*map(float, each)) for each in zip(*(a.reshape(-1) for a in arrays))]
    return np.array(values, np.float64).reshape(shape).astype(dtype.np if hasattr(dtype, "np") else dtype)


_SELF = dict(shape=lambda self, *o: tuple(self.shape), dtype=lambda self, *o: self.dtype)


@random("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", variants="function", **_SELF)
def standard_gamma(gen, shape, dtype, self, *_):
    a = self.detach().numpy()
    drawn = _drawn(lambda x: _gamma(gen, x), shape, dtype, a)
    return np.maximum(drawn, np.finfo(drawn.dtype).tiny)


@random("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor", variants="function", **_SELF)
def sample_dirichlet(gen, shape, dtype, self, *_):
    a = self.detach().numpy()
    drawn = np.array([_gamma(gen, float(x)) for x in a.reshape(-1)]).reshape(shape).astype(a.dtype)
    drawn = np.maximum(drawn, np.finfo(drawn.dtype).tiny)
    out = drawn / drawn.sum(-1, keepdims=True)
    info = np.finfo(out.dtype)
    return np.clip(out, info.tiny, 1 - info.epsneg).astype(a.dtype)


@random("poisson(Tensor self, Generator? generator=None) -> Tensor", variants="function", **_SELF)
def poisson(gen, shape, dtype, self, *_):
    rate = self.detach().numpy()
    if (rate < 0).any():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return _drawn(lambda x: _poisson(gen, x), shape, dtype, rate)


@random("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", variants="function",
        shape=lambda count, *o: tuple(count.shape), dtype=lambda count, *o: count.dtype)  # fmt: skip
def binomial(gen, shape, dtype, count, prob, *_):
    n, p = np.broadcast_arrays(count.detach().numpy(), prob.detach().numpy())
    return _drawn(lambda n, p: _binomial(gen, n, p), shape, dtype, n, p)


# ---- gradients -----------------------------------------------------------------------------------------------------------


def _slope(fn, a):
    """d fn / d a in doubles: five points, relative step 1e-3."""
    h = 1e-3 * np.maximum(np.abs(a), 1e-3)
    return (8 * (fn(a + h) - fn(a - h)) - (fn(a + 2 * h) - fn(a - 2 * h))) / (12 * h)


def _dense(a, *others):
    return TensorMeta(tuple(a.shape), contiguous_strides(a.shape), a.dtype, a.device)


@extern("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor", refuse=COMPLEX, meta=_dense, variants="function")
def standard_gamma_grad(self, output):
    from scipy import special

    a, x = self.astype(np.float64), output.astype(np.float64)
    upper = -_slope(lambda t: special.gammaincc(t, x), a)
    lower = _slope(lambda t: special.gammainc(t, x), a)
    log_density = (a - 1) * np.log(x) - x - special.gammaln(a)
    out = -np.where(x > a, upper, lower) * np.exp(-log_density)
    return np.where(x > 0, out, 0).astype(self.dtype, order="C")


@extern(
    "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor", refuse=COMPLEX, meta=_dense, variants="function"
)
def dirichlet_grad(x, alpha, total):
    from scipy import special

    v, a = x.astype(np.float64), alpha.astype(np.float64)
    b = total.astype(np.float64) - a
    lower = _slope(lambda t: special.betainc(t, b, v), a)
    upper = -_slope(lambda t: special.betainc(b, t, 1 - v), a)
    log_density = (a - 1) * np.log(v) + (b - 1) * np.log1p(-v) - special.betaln(a, b)
    return (-np.where(v < a / (a + b), lower, upper) * np.exp(-log_density) / (1 - v)).astype(x.dtype, order="C")


standard_gamma.derivative(
    self=lambda ct, self, result: aten.mul.Tensor(ct, aten._standard_gamma_grad.default(self, result))
)


def _dirichlet_backward(ct, self, result):
    total = aten.expand.default(aten.sum.dim_IntList(self, [-1], True), list(self.shape))
    grad = aten._dirichlet_grad.default(result, self, total)
    mean = aten.sum.dim_IntList(aten.mul.Tensor(result, ct), [-1], True)
    return aten.mul.Tensor(grad, aten.sub.Tensor(ct, mean))


sample_dirichlet.derivative(self=_dirichlet_backward)
poisson.derivative(self=lambda ct: aten.zeros_like.default(ct))
binomial.derivative(
    count=lambda ct: aten.zeros_like.default(ct),
    prob=lambda ct, prob_like: aten.zeros.default(list(prob_like.shape), dtype=prob_like.dtype),
)
