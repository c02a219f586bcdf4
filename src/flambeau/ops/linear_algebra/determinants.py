"""Inverses and determinants. Derivatives are written as for real matrices; autograd conjugates around them for complex ones."""

from __future__ import annotations

import math

import numpy as np

from ...base import lapack
from ...base.dtypes import finfo, int32
from ...core.declare import composite
from ...core.operator import namespace
from .checks import adjoint as _adjoint
from .checks import (
    batched,
    check_info,
    dense,
    extern,
    info_meta,
    mm,
    refuse_info,
    singular,
    square,
    transposed,
)
from .failures import checked

aten = namespace("aten")


def _inv_meta(A, check_errors):
    square("linalg.inv", A)
    return dense(A.shape, A), info_meta(A)


@extern(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    columns=(0,),
    meta=_inv_meta,
    variants="",
    has_out=True,
)
def linalg_inv_ex(a, check_errors):
    if not a.size:
        return a.copy(), np.zeros(a.shape[:-2], np.int32)
    eye = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    # The matrix itself is factorised, not its transpose, which needs no copy: of which a zero is on the diagonal differs.
    out, _, _, info = lapack.solve(a, eye)
    if check_errors:
        check_info("linalg.inv_ex", info, singular)
    return out, info


batched(linalg_inv_ex)


@linalg_inv_ex.override("lower")
def _lower_inverse(lowering, vals, A, check_errors):
    made = lowering.inverse(A)
    if check_errors:
        refuse_info(lowering, "linalg.inv_ex", made[1], singular)
    return made


linalg_inv_ex.derivative(
    (0,), A=lambda ct0, result0: aten.neg.default(mm(transposed(result0), mm(ct0, transposed(result0))))
)


@composite("linalg_inv(Tensor A) -> Tensor", variants="", has_out=True, out_rules="exact")
def linalg_inv(A):
    out, info = aten.linalg_inv_ex.default(A)
    checked(info, "linalg.inv", A)
    return out


@composite("inverse(Tensor self) -> Tensor", has_out=True, out_rules="exact")
def inverse(self):
    return aten.linalg_inv.default(self)


def _det_meta(A):
    square("linalg.det", A)
    return dense(A.shape[:-2], A), dense(A.shape, A), dense(A.shape[:-1], A, int32)


@extern(
    "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
    columns=(1,),
    meta=_det_meta,
    variants="",
    has_out=True,
)
def _linalg_det(a):
    lu, piv, sign, diagonal = _factorised(a)
    return np.asarray(sign * diagonal.prod(-1), a.dtype), lu, piv


def _factorised(a):
    """LU factors, their pivots, the sign of the permutation and U's diagonal."""
    if a.size:
        lu, piv, _ = lapack.lu(a)
    else:
        lu, piv = a.copy(), np.zeros(a.shape[:-1], np.int32)
    swaps = (piv != np.arange(1, a.shape[-1] + 1)).sum(-1)
    return lu, piv, 1 - 2 * (swaps % 2), np.diagonal(lu, 0, -2, -1)


batched(_linalg_det)

_linalg_det.override("lower", lambda low, vals, A: low.det(A))


def _det_vjp(ct0, A):
    """det(A) A^-T by the factors of A. A zero on U's diagonal is made tiny, so that a matrix of rank n - 1 has its cofactors."""
    if A.numel() == 0:
        return aten.zeros_like.default(A)
    lu, pivots, _ = aten.linalg_lu_factor_ex.default(A)
    p, lower, upper = aten.lu_unpack.default(lu, pivots)
    zero = aten._to_copy.default(aten.eq.Scalar(aten.diagonal.default(upper, 0, -2, -1), 0), dtype=A.dtype)
    upper = aten.add.Tensor(upper, aten.diag_embed.default(aten.mul.Tensor(zero, finfo(A.dtype).eps)))
    inverse_ = aten.linalg_solve_triangular.default(lower, transposed(p), upper=False, unitriangular=True)
    inverse_ = aten.linalg_solve_triangular.default(upper, inverse_, upper=True)
    sign = aten._linalg_det.default(p)[0]
    scale = aten.mul.Tensor(aten.mul.Tensor(ct0, sign), aten.prod.dim_int(aten.diagonal.default(upper, 0, -2, -1), -1))
    return aten.mul.Tensor(aten.unsqueeze.default(aten.unsqueeze.default(scale, -1), -1), transposed(inverse_))


_linalg_det.derivative((0,), A=_det_vjp)


@composite("linalg_det(Tensor A) -> Tensor", variants="", has_out=True, out_rules="exact")
def linalg_det(A):
    return aten._linalg_det.default(A)[0]


@composite("det(Tensor self) -> Tensor", out_rules="exact")
def det(self):
    return aten._linalg_det.default(self)[0]


def _slogdet_meta(A):
    square("linalg.slogdet", A)
    return (
        dense(A.shape[:-2], A),
        dense(A.shape[:-2], A, A.dtype.to_real()),
        dense(A.shape, A),
        dense(A.shape[:-1], A, int32),
    )


@extern(
    "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
    columns=(2,),
    meta=_slogdet_meta,
    variants="",
    has_out=True,
    tags=("own_complex_derivative",),
)
def _linalg_slogdet(a):
    lu, piv, sign, diagonal = _factorised(a)
    size = np.abs(diagonal)
    direction = np.sign(diagonal)
    sign = sign * (direction if a.dtype.kind == "c" else np.where(np.isnan(direction), 0, direction)).prod(-1)
    return np.asarray(sign, a.dtype), np.asarray(np.log(size).sum(-1), size.dtype), lu, piv


batched(_linalg_slogdet)

_linalg_slogdet.override("lower", lambda low, vals, A: low.slogdet(A))


def _slogdet_vjp(ct0, ct1, A, result0):
    inverse_, _ = aten.linalg_inv_ex.default(A)
    if A.dtype.is_complex:
        turn = aten.imag.default(aten.mul.Tensor(aten.conj_physical.default(ct0), result0))
        scale = aten.complex.default(ct1, aten.neg.default(turn))
    else:
        scale = ct1
    return aten.mul.Tensor(aten.unsqueeze.default(aten.unsqueeze.default(scale, -1), -1), _adjoint(inverse_))


_linalg_slogdet.derivative((0, 1), A=_slogdet_vjp)


@composite("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", variants="", has_out=True, out_rules="exact")
def linalg_slogdet(A):
    sign, log, _, _ = aten._linalg_slogdet.default(A)
    return sign, log


@composite("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", out_rules="exact")
def slogdet(self):
    return aten.linalg_slogdet.default(self)


@composite("logdet(Tensor self) -> Tensor")
def logdet(self):
    sign, log, _, _ = aten._linalg_slogdet.default(self)
    if self.dtype.is_complex:
        return aten.add.Tensor(aten.log.default(sign), log)
    return aten.where.ScalarOther(aten.ne.Scalar(sign, -1), log, math.nan)
