"""Eigenvalues and eigenvectors, of Hermitian matrices and of any."""

from __future__ import annotations

import math

import numpy as np

from ...base import dtypes, lapack
from ...core.declare import composite
from ...core.dispatch import differentiated
from ...core.operator import namespace
from . import jacobi
from .checks import adjoint, batched, dense, extern, mm, square
from .spectral import conj, converged, diagonal, gaps, over, refuse_phases, refuse_unconverged, row

aten = namespace("aten")
_OWN = ("own_complex_derivative",)


def _eigh_meta(A, UPLO, compute_v):
    square("linalg.eigh", A)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return dense(A.shape[:-1], A, A.dtype.to_real()), dense(A.shape if compute_v else (0,), A)


@extern(
    '_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)',
    columns=(1,),
    meta=_eigh_meta,
    variants="",
    has_out=True,
    tags=_OWN,
)
def _linalg_eigh(a, UPLO, compute_v):
    if not a.size:
        return np.zeros(a.shape[:-1], a.real.dtype), a.copy() if compute_v else np.zeros((0,), a.dtype)
    values, vectors, info = lapack.eigh(a, UPLO.upper() == "L", compute_v)
    converged("linalg.eigh", info)
    return values, vectors if compute_v else np.zeros((0,), a.dtype)


_linalg_eigh.override("by_parts", jacobi.eigh)

batched(_linalg_eigh)


@_linalg_eigh.override("lower")
def _lower_eigh(lowering, vals, A, UPLO, compute_v):
    values, vectors, info = lowering.eigh(vals, A, UPLO.upper() == "L", compute_v)
    refuse_unconverged(lowering, "linalg.eigh", info)
    return [values, vectors]


def _eigh_vjp(ct0, ct1, result0, result1, compute_v):
    v = result1
    if not compute_v:
        raise RuntimeError("linalg_eigh: the eigenvectors are needed for the derivative")
    inner = mm(adjoint(v), ct1)
    refuse_phases(diagonal(inner), "linalg_eigh_backward")
    inner = over(inner, gaps(result0, math.inf))
    inner = aten.add.Tensor(inner, aten.diag_embed.default(ct0))
    whole = mm(v, mm(inner, adjoint(v)))
    return aten.mul.Tensor(aten.add.Tensor(whole, adjoint(whole)), 0.5)  # Hermitian: half of the argument is read


_linalg_eigh.derivative(A=_eigh_vjp)


@composite(
    'linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)',
    variants="",
    out_rules="exact",
)
def linalg_eigh(self, UPLO):
    return aten._linalg_eigh.default(self, UPLO, True)


@composite('linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor', variants="", out_rules="exact")
def linalg_eigvalsh(self, UPLO):
    return aten._linalg_eigh.default(self, UPLO, differentiated(self))[0]  # the derivative of values needs vectors


def _eig_meta(self):
    square("linalg.eig", self)
    c = self.dtype.to_complex()
    return dense(self.shape[:-1], self, c), dense(self.shape, self, c)


@extern(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    columns=(1,),
    meta=_eig_meta,
    variants="",
    has_out=True,
    tags=_OWN,
    out_rules="casts",
)
def linalg_eig(a):
    return _eig(a, True)


def _eig(a, vectors):
    if not np.isfinite(a).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    if not a.size:
        kind = np.result_type(a.dtype, np.complex64)
        return np.zeros(a.shape[:-1], kind), np.zeros(a.shape, kind)
    values, made, info = lapack.eig(a, vectors)
    converged("linalg.eig", info)
    return values, made


batched(linalg_eig)


def _eig_vjp(ct0, ct1, result0, result1):
    values, v = result0, result1
    vh = adjoint(v)
    inner = mm(vh, ct1)
    refuse_phases(diagonal(inner), "linalg_eig_backward")
    real = aten.real.default(diagonal(inner))
    inner = aten.sub.Tensor(inner, mm(vh, aten.mul.Tensor(v, row(real))))
    inner = over(inner, conj(gaps(values, 1)))
    eye = aten.eye.default(values.shape[-1], dtype=dtypes.bool_, device=values.device)
    inner = aten.where.self(eye, row(ct0), inner)
    return aten.linalg_solve.default(vh, mm(inner, vh))


linalg_eig.derivative(self=_eig_vjp)


@extern(
    "_linalg_eigvals(Tensor self) -> Tensor",
    columns=(),
    meta=lambda self: _eig_meta(self)[0],
    variants="",
    tags=_OWN,
)
def _linalg_eigvals(a):
    return _eig(a, False)[0]


batched(_linalg_eigvals)


@composite("linalg_eigvals(Tensor self) -> Tensor", variants="")
def linalg_eigvals(self):
    if differentiated(self):  # by the vectors
        return aten.linalg_eig.default(self)[0]
    return aten._linalg_eigvals.default(self)
