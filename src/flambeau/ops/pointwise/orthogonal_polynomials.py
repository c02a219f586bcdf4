"""Orthogonal polynomials of torch.special, by their three-term recurrences; the degree is a tensor and truncates to an integer.

Beyond |x| = 1 Chebyshev's are also given by recurrence; at the ends of the interval by their closed values, as in PyTorch.
"""

from __future__ import annotations

import numpy as np

from ...base import dtypes
from ...base.kernels import Polynomial
from ...core.body import scalar
from ...core.declare import composite, pointwise
from ...core.operator import namespace

aten = namespace("aten")
_REFUSED = ("float16", "bfloat16", "complex64", "complex128")


def _recurrence(x, n, first, step, negative=0.0):
    """p_n of p_0 = 1, p_1 = first(x), p_{k+1} = step(k, x, p_k, p_{k-1}); ``negative`` for n < 0."""
    x, n = np.broadcast_arrays(np.asarray(x), np.asarray(n))
    kind = x.dtype
    x, n = x.astype(np.float64), np.trunc(n.astype(np.float64))
    out = np.where(n < 0, negative, 1.0)
    top = int(n[np.isfinite(n)].max(initial=0)) if n.size else 0
    before, now = np.ones_like(x), first(x)
    for k in range(1, top + 1):
        out = np.where(n == k, now, out)
        before, now = now, step(k, x, now, before)
    return np.where(np.isnan(x) & (n > 0), np.nan, out).astype(kind)


_FAMILIES = {  # in the order of kernels.Polynomial
    "chebyshev_polynomial_t": (lambda x: x, lambda k, x, p, q: 2 * x * p - q),
    "chebyshev_polynomial_u": (lambda x: 2 * x, lambda k, x, p, q: 2 * x * p - q),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, lambda k, x, p, q: 2 * x * p - q),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, lambda k, x, p, q: 2 * x * p - q),
    "shifted_chebyshev_polynomial_t": (lambda x: 2 * x - 1, lambda k, x, p, q: (4 * x - 2) * p - q),
    "shifted_chebyshev_polynomial_u": (lambda x: 4 * x - 2, lambda k, x, p, q: (4 * x - 2) * p - q),
    "shifted_chebyshev_polynomial_v": (lambda x: 4 * x - 3, lambda k, x, p, q: (4 * x - 2) * p - q),
    "shifted_chebyshev_polynomial_w": (lambda x: 4 * x - 1, lambda k, x, p, q: (4 * x - 2) * p - q),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda k, x, p, q: 2 * x * p - 2 * k * q),
    "hermite_polynomial_he": (lambda x: x, lambda k, x, p, q: x * p - k * q),
    "laguerre_polynomial_l": (lambda x: 1 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)),
    "legendre_polynomial_p": (lambda x: x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)),
}


def _declare(family, name, first, step):
    scalar(f"special_{name}", 2, "float", lambda x, n: _recurrence(x, n, first, step), {})
    op = pointwise(
        f"special_{name}(Tensor x, Tensor n) -> Tensor", promote="float", variants="", inplace=False, refuse=_REFUSED
    )(lambda s, x, n: getattr(s, f"special_{name}")(x, n)).derivative()  # PyTorch has none either
    op.override("lower", lambda low, val, x, n: low.polynomial(val, family, x, n))
    wide = lambda t: t.dtype if t.dtype.is_floating_point else dtypes.get_default_dtype()  # noqa: E731
    composite(f"special_{name}.x_scalar(Scalar x, Tensor n) -> Tensor", variants="")(
        lambda x, n: op(aten.scalar_tensor.default(x, dtype=wide(n)), n)
    )
    composite(f"special_{name}.n_scalar(Tensor x, Scalar n) -> Tensor", variants="")(
        lambda x, n: op(x, aten.scalar_tensor.default(n, dtype=wide(x)))
    )


for _family, (_name, (_first, _step)) in zip(Polynomial, _FAMILIES.items(), strict=True):
    _declare(_family, _name, _first, _step)
