"""Functions of a matrix: its exponential and its powers."""

from __future__ import annotations

import math

import numpy as np

from ...base.dtypes import float32
from ...core.declare import composite
from ...core.operator import namespace
from .checks import (
    batched,
    dense,
    extern,
    mm,
    square,
    transposed,
)

aten = namespace("aten")


def _exp_meta(self):
    square("linalg.matrix_exp", self)
    return dense(self.shape, self)


# N. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005): degrees of Padé approximants, the norms (in float64 and
# float32) up to which each is as exact as the dtype, and the coefficients of the numerators.
_PADE = {
    3: (1.495585217958292e-2, 4.258730016922831e-1, (120, 60, 12, 1)),
    5: (2.539398330063230e-1, 1.880152677804762, (30240, 15120, 3360, 420, 30, 1)),
    7: (9.504178996162932e-1, 3.925724783138660, (17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1)),
    13: (
        5.371920351148152,
        5.371920351148152,
        (64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600, 670442572800)
        + (33522128640, 1323241920, 40840800, 960960, 16380, 182, 1),
    ),
}  # fmt: skip


def _exponential(a):
    """Of one matrix."""
    if len(a) == 1:
        return np.exp(a)
    n, norm = len(a), float(np.abs(a).sum(0).max())
    if not math.isfinite(norm):
        return np.full_like(a, math.nan)
    narrow = a.real.dtype == np.float32
    degree = next((d for d, row in _PADE.items() if norm <= row[narrow]), 13)
    b, squarings = _PADE[degree][2], max(0, math.ceil(math.log2(norm / _PADE[13][narrow]))) if degree == 13 else 0
    if squarings:
        a = a * a.real.dtype.type(2.0**-squarings)
    b = [float(x) / b[-1] for x in b] if narrow else [float(x) for x in b]
    one = np.eye(n, dtype=a.dtype)
    two = a @ a
    if degree == 13:
        four = two @ two
        six = four @ two
        odd = six @ (b[13] * six + b[11] * four + b[9] * two) + b[7] * six + b[5] * four + b[3] * two + b[1] * one
        even = six @ (b[12] * six + b[10] * four + b[8] * two) + b[6] * six + b[4] * four + b[2] * two + b[0] * one
    else:
        odd, even, power = b[1] * one, b[0] * one, two
        for k in range(2, degree, 2):
            odd += b[k + 1] * power
            even += b[k] * power
            power = power @ two if k + 2 < degree else power
    odd = a @ odd
    made = np.linalg.solve(even - odd, even + odd)
    for _ in range(squarings):
        made = made @ made
    return made


@extern("linalg_matrix_exp(Tensor self) -> Tensor", meta=_exp_meta, variants="")
def linalg_matrix_exp(a):
    made = np.empty(a.shape, a.dtype)
    for k in np.ndindex(a.shape[:-2]):
        if a.size:
            made[k] = _exponential(a[k])
    return made


batched(linalg_matrix_exp)


def _exp_vjp(ct, self):
    """The exponential of [[A^T, ct], [0, A^T]] has the derivative above the diagonal (N. Higham, "Functions of Matrices", ch. 10)."""
    a = transposed(self)
    n = a.shape[-1]
    top = aten.cat.default([a, ct], -1)
    low = aten.cat.default([aten.zeros_like.default(a), a], -1)
    both = aten.linalg_matrix_exp.default(aten.cat.default([top, low], -2))
    return aten.slice.Tensor(aten.slice.Tensor(both, -2, 0, n), -1, n, 2 * n)


linalg_matrix_exp.derivative(self=_exp_vjp)


@composite("matrix_exp(Tensor self) -> Tensor")
def matrix_exp(self):
    if self.dtype.itemsize == 2 and self.dtype.is_floating_point:
        return aten._to_copy.default(
            aten.linalg_matrix_exp.default(aten._to_copy.default(self, dtype=float32)), dtype=self.dtype
        )
    return aten.linalg_matrix_exp.default(self)


@composite("linalg_matrix_power(Tensor self, int n) -> Tensor", variants="", has_out=True, out_rules="exact")
def linalg_matrix_power(self, n):
    if len(self.shape) < 2 or self.shape[-1] != self.shape[-2]:
        square("linalg.matrix_power", self)
    if n == 0:
        eye = aten.eye.default(self.shape[-1], dtype=self.dtype, device=self.device)
        return aten.add.Tensor(aten.fill.Scalar(aten.contiguous.default(self), 0), eye)  # its gradient is 0
    base = aten.linalg_inv.default(self) if n < 0 else self
    n, out = abs(n), None
    while n:
        if n & 1:
            out = base if out is None else mm(out, base)
        n >>= 1
        base = mm(base, base) if n else base
    return aten.clone.default(out) if out is self else out


@composite("matrix_power(Tensor self, int n) -> Tensor", has_out=True, out_rules="exact")
def matrix_power(self, n):
    return aten.linalg_matrix_power.default(self, n)
