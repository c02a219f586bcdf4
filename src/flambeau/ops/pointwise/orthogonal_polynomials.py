"""Orthogonal polynomials of torch.special, by their three-term recurrences; the degree is a tensor and truncates to an integer.

A degree is a user's number, so no loop runs over all of it: Chebyshev's have closed forms above ``RECURRENT`` (T. Rivlin, "Chebyshev
Polynomials", 1.2), Hermite's are NaN above 128 in single and 512 in double precision as in PyTorch, the others are NaN above
``LARGEST``. csrc/kernels/special.c does the same in graphs.
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


RECURRENT, LARGEST = 10_000, 1_000_000


def _recurrence(x, n, name, first, step):
    """p_n of p_0 = 1, p_1 = first(x), p_{k+1} = step(k, x, p_k, p_{k-1}); 0 where n is negative or not finite."""
    # Either may be a number, which says nothing of the dtype.
    kind = np.result_type(x, n)
    kind = kind if kind.kind == "f" else np.dtype(np.float64)
    x, n = np.broadcast_arrays(np.asarray(x), np.asarray(n))
    x, n = x.astype(np.float64), np.trunc(n.astype(np.float64))
    n = np.where(np.isfinite(n), n, -1)
    out = np.where(n < 0, 0.0, 1.0)
    last = RECURRENT if "chebyshev" in name else LARGEST
    if "hermite" in name:
        last = 128 if kind == np.float32 else 512
    before, now = np.ones_like(x), first(x)
    for k in range(1, int(n[n <= last].max(initial=0)) + 1):
        out = np.where(n == k, now, out)
        before, now = now, step(k, x, now, before)
    if (n > last).any():
        out = np.where(n > last, _chebyshev(name, x, n) if "chebyshev" in name else np.nan, out)
    return np.where(np.isnan(x) & (n > 0), np.nan, out).astype(kind)


def _chebyshev(name, x, n):
    """Closed forms in t of |x| = cos t, beyond 1 cosh t; V(-x) is W(x) and W(-x) is V(x) for even n, their negatives for odd n."""
    x, family = 2 * x - 1 if "shifted" in name else x, name[-1]
    if family in "vw":
        middle = n + 0.5, 0.5
        swapped = (x < 0) == (family == "v")
    else:
        middle = (n, 0) if family == "t" else (n + 1, 1)
        swapped = np.full(x.shape, family == "u")
    sign, x = np.where((x < 0) & (n % 2 == 1), -1.0, 1.0), np.abs(x)
    inside = x < 1
    t = np.where(inside, np.arccos(np.minimum(x, 1)), np.arccosh(np.maximum(x, 1)))
    even, odd = (
        [np.where(inside, round_(part * t), long(part * t)) for part in middle]
        for round_, long in ((np.cos, np.cosh), (np.sin, np.sinh))
    )
    at_one = np.where(swapped, middle[0] / (middle[1] or 1), 1.0)
    ratio = np.where(swapped, odd[0] / odd[1], even[0] / even[1])
    return sign * np.where(x == 1, at_one, ratio)


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
    scalar(f"special_{name}", 2, "float", lambda x, n: _recurrence(x, n, name, first, step), {})
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
