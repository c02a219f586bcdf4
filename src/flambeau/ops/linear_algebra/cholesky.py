"""Cholesky factors.

Derivatives: M. Giles, "An extended collection of matrix derivative results" (2008), and S. Walter, L. Lehmann, "Algorithmic differentiation of linear
algebra functions" (2010); for complex matrices in PyTorch's convention.
"""

from __future__ import annotations

import numpy as np

from ...base import lapack
from ...core.declare import composite
from ...core.operator import namespace
from ...core.promotion import refused
from .checks import (
    adjoint,
    batched,
    check_info,
    dense,
    extern,
    eye_like,
    info_meta,
    mm,
    not_definite,
    refuse_info,
    square,
)
from .failures import checked

aten = namespace("aten")
_OWN = ("own_complex_derivative",)


def _cholesky_meta(self, upper, check_errors):
    square("linalg.cholesky", self)
    return dense(self.shape, self), info_meta(self)


@extern(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    columns=(0,),
    meta=_cholesky_meta,
    variants="",
    has_out=True,
    tags=_OWN,
)
def linalg_cholesky_ex(a, upper, check_errors):
    if not a.size:
        return a.copy(), np.zeros(a.shape[:-2], np.int32)
    turn = lambda m: np.conj(np.swapaxes(m, -1, -2)) if upper else m  # noqa: E731
    factor, info = lapack.cholesky(turn(a))
    if check_errors:
        check_info("linalg.cholesky_ex", info, not_definite)
    return turn(factor), info


batched(linalg_cholesky_ex)


@linalg_cholesky_ex.override("lower")
def _lower_cholesky(lowering, vals, self, upper, check_errors):
    factor, info = lowering.cholesky(self, upper)
    if check_errors:
        refuse_info(lowering, "linalg.cholesky_ex", info, not_definite)
    return [factor, info]


def _cholesky_vjp(ct0, result0, upper):
    lower, g = (adjoint(result0), adjoint(ct0)) if upper else (result0, ct0)
    phi = aten.tril.default(mm(adjoint(lower), g))
    phi = aten.sub.Tensor(phi, aten.mul.Tensor(phi, aten.mul.Tensor(eye_like(phi), 0.5)))
    x = aten.linalg_solve_triangular.default(adjoint(lower), phi, upper=True)
    x = aten.linalg_solve_triangular.default(lower, x, upper=False, left=False)
    return aten.mul.Tensor(aten.add.Tensor(x, adjoint(x)), 0.5)


linalg_cholesky_ex.derivative((0,), self=_cholesky_vjp)


@composite("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", variants="", has_out=True, out_rules="exact")
def linalg_cholesky(self, upper):
    out, info = aten.linalg_cholesky_ex.default(self, upper=upper)
    checked(info, "linalg.cholesky", self)
    return out


@composite("cholesky(Tensor self, bool upper=False) -> Tensor", has_out=True, out_rules="rows")
def cholesky(self, upper):
    if self.dtype.category < 2:
        refused("cholesky", self.dtype)
    out, info = aten.linalg_cholesky_ex.default(self, upper=upper)
    checked(info, "cholesky", self)
    return out
