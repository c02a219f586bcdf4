"""Draws from the gamma, Dirichlet, Poisson and binomial distributions, with the gradients of the first two.

Elements are drawn one after another from the generator's doubles, in PyTorch's order, by published methods: Marsaglia and Tsang (2000) for gamma,
Hoermann (1993) for Poisson (PTRS) and binomial (BTRS) with large means. Gradients are implicit: from F(x; a) = u follows dx/da = -(dF/da) / p(x).
"""

from __future__ import annotations

import numpy as np

from ...base.dtypes import float32, float64
from ...base.kernels import Distribution
from ...base.shapes import broadcast_shapes, contiguous_strides
from ...base.sizes import sizes
from ...core.declare import COMPLEX, extern, random
from ...core.definition import TensorMeta
from ...core.operator import namespace
from . import draw_rules as rules

aten = namespace("aten")
_F64 = np.dtype(np.float64)


def _drawn(gen, what, dtype, *arrays):
    """Numbers of a distribution as csrc/kernels/random.c draws them, for each element."""
    made = gen.sample(what, *(np.asarray(a, np.float64) for a in arrays))
    return made.astype(dtype.np if hasattr(dtype, "np") else dtype)


_WIDE = ("float32", "float64")


def _like_self(names, kernel):
    """A draw of the shape and dtype of ``self``, which is one of ``names``."""
    return dict(
        shape=lambda self, *o: tuple(self.shape),
        dtype=lambda self, *o: rules.only(self.dtype, names, kernel),
        variants="function",
    )


@random("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", **_like_self(_WIDE, "gamma_cpu"))
def standard_gamma(gen, shape, dtype, self, *_):
    a = self.detach().numpy()
    drawn = _drawn(gen, Distribution.GAMMA, dtype, a)
    return np.maximum(drawn, np.finfo(drawn.dtype).tiny)


@random("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor", **_like_self(_WIDE, "dirichlet"))
def sample_dirichlet(gen, shape, dtype, self, *_):
    a = self.detach().numpy()
    drawn = _drawn(gen, Distribution.GAMMA, a.dtype, a)
    drawn = np.maximum(drawn, np.finfo(drawn.dtype).tiny)
    out = drawn / drawn.sum(-1, keepdims=True)
    info = np.finfo(out.dtype)
    return np.clip(out, info.tiny, 1 - info.epsneg).astype(a.dtype)


@random("poisson(Tensor self, Generator? generator=None) -> Tensor", **_like_self(rules.FLOATING, "poisson_cpu"))
def poisson(gen, shape, dtype, self, *_):
    rate = self.detach().numpy()
    if not (rate >= 0).all():
        raise RuntimeError(_NO_RATE)
    return _drawn(gen, Distribution.POISSON, dtype, rate)


_NO_RATE = "invalid Poisson rate, expected rate to be non-negative"
poisson.override(
    "drawn",
    lambda low, val, strides, self, *_: low.sample(
        Distribution.POISSON, (self,), sizes(val.shape), val.dtype, val.device, _NO_RATE
    ),
)


def _binomial_dtype(count, prob, *_):
    for name, x in (("count", count), ("prob", prob)):
        if not x.dtype.is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {x.dtype.scalar_type}")
    broadcast_shapes(tuple(count.shape), tuple(prob.shape))
    if count.dtype is not prob.dtype:
        raise RuntimeError(f"Found dtype {prob.dtype.scalar_type} but expected {count.dtype.scalar_type}")
    return rules.only(count.dtype, _WIDE, "binomial_cpu")


@random("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", variants="function",
        shape=lambda count, prob, *o: broadcast_shapes(tuple(count.shape), tuple(prob.shape)), dtype=_binomial_dtype)  # fmt: skip
def binomial(gen, shape, dtype, count, prob, *_):
    n, p = np.broadcast_arrays(count.detach().numpy(), prob.detach().numpy())
    return _drawn(gen, Distribution.BINOMIAL, dtype, n, p)


binomial.override(
    "drawn",
    lambda low, val, strides, count, prob, *_: low.sample(
        Distribution.BINOMIAL, (count, prob), sizes(val.shape), val.dtype, val.device
    ),
)


def _gammas(lowering, val, a):
    """Draws, none of them 0."""
    drawn = lowering.sample(Distribution.GAMMA, (a,), sizes(val.shape), val.dtype, val.device)
    tiny = float(np.finfo(val.dtype.np).tiny)
    return lowering.mapped(lambda s, x: s.maximum(x, tiny), drawn, val)


standard_gamma.override("drawn", lambda low, val, strides, self, *_: _gammas(low, val, self))


@sample_dirichlet.override("drawn")
def _dirichlet_drawn(lowering, val, strides, self, *_):
    if val.dtype not in (float32, float64) or not self.ndim:
        raise NotImplementedError(f"shares of {val.dtype}")
    drawn = _gammas(lowering, val, self)
    lowering.realize(drawn)
    k, info = self.ndim - 1, np.finfo(val.dtype.np)
    total = lowering.reduce("add", 0.0, drawn.sizes, list(range(k)), [k], drawn.at)
    whole = lowering.lazy((*drawn.sizes[:k], 1), val.dtype, lambda c: total(tuple(c[:k])))

    def share(s, x, t):
        return s.minimum(s.maximum(s.div(x, t), float(info.tiny)), float(1 - info.epsneg))

    return lowering.mapped(share, drawn, val, whole)


# ---- gradients -----------------------------------------------------------------------------------------------------------


def _slope(fn, a):
    """d fn / d a in doubles: five points, relative step 1e-3."""
    h = 1e-3 * np.maximum(np.abs(a), 1e-3)
    return (8 * (fn(a + h) - fn(a - h)) - (fn(a + 2 * h) - fn(a - 2 * h))) / (12 * h)


def _dense(a, *others):
    shape = broadcast_shapes(*(tuple(t.shape) for t in (a, *others)))
    return TensorMeta(shape, contiguous_strides(shape), a.dtype, a.device)


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


def _by_element(op):
    """Arguments of an operator by element have one shape, so examples do once each has the batch."""
    op.override("batch", lambda call, *values: op(*(call.all(x, m) for x, m in zip(values, call.mask))))


_by_element(standard_gamma_grad)
_by_element(dirichlet_grad)


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
