"""Singular values and vectors."""

from __future__ import annotations

import numpy as np

from ...base import dtypes, lapack
from ...core.declare import composite
from ...core.dispatch import differentiated
from ...core.operator import namespace
from . import jacobi
from .checks import adjoint, batched, dense, extern, matrix, mm
from .spectral import column, converged, diagonal, gaps, over, refuse_phases, refuse_unconverged, row

aten = namespace("aten")
_OWN = ("own_complex_derivative",)


def _svd_meta(A, full_matrices, compute_uv, driver):
    matrix("linalg.svd", A)
    *batch, m, n = A.shape
    k = min(m, n)
    s = dense((*batch, k), A, A.dtype.to_real())
    if not compute_uv:
        return dense((0,), A), s, dense((0,), A)
    return dense((*batch, m, m if full_matrices else k), A), s, dense((*batch, n if full_matrices else k, n), A)


@extern(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    columns=(0, 2),
    meta=_svd_meta,
    variants="",
    has_out=True,
    tags=_OWN,
)
def _linalg_svd(a, full_matrices, compute_uv, driver):
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    *batch, m, n = a.shape
    k = min(m, n)
    nothing = np.zeros((0,), a.dtype)
    if a.size:
        u, s, vh, info = lapack.svd(a, full_matrices, compute_uv)
        converged("linalg.svd", info)
    else:
        eye = lambda r, c: np.broadcast_to(np.eye(r, c, dtype=a.dtype), (*batch, r, c)).copy()  # noqa: E731
        u, vh = eye(m, m if full_matrices else k), eye(n if full_matrices else k, n)
        s = np.zeros((*batch, k), a.real.dtype)
    return (u, s, vh) if compute_uv else (nothing, s, nothing)


_linalg_svd.override("by_parts", jacobi.svd)

batched(_linalg_svd)


@_linalg_svd.override("lower")
def _lower_svd(lowering, vals, A, full_matrices, compute_uv, driver):
    if driver is not None:
        raise NotImplementedError("a driver")
    u, s, vh, info = lowering.svd(vals, A, full_matrices, compute_uv)
    refuse_unconverged(lowering, "linalg.svd", info)
    return [u, s, vh]


def _svd_vjp(ct0, ct1, ct2, result0, result1, result2, full_matrices, compute_uv):
    if not compute_uv:
        raise RuntimeError("linalg_svd: the singular vectors are needed for the derivative")
    m, n, k = result0.shape[-2], result2.shape[-1], result1.shape[-1]
    u, s, vh = aten.slice.Tensor(result0, -1, 0, k), result1, aten.slice.Tensor(result2, -2, 0, k)
    gu, gvh = aten.slice.Tensor(ct0, -1, 0, k), aten.slice.Tensor(ct2, -2, 0, k)
    square_ = aten.mul.Tensor(s, s)
    e = gaps(square_, 1)
    skew = lambda x: aten.sub.Tensor(x, adjoint(x))  # noqa: E731
    left, right = skew(mm(adjoint(u), gu)), skew(mm(vh, adjoint(gvh)))
    both = aten.mul.Tensor(aten.add.Tensor(diagonal(left), diagonal(right)), 0.5)
    refuse_phases(both, "svd_backward", "singular vectors", "phase term, making it ill-defined")
    inner = aten.mul.Tensor(over(left, e), row(s))
    inner = aten.add.Tensor(inner, aten.mul.Tensor(column(s), over(right, e)))
    # The diagonals of both are 0 for real matrices; for complex ones they are the phases that U and V share.
    eye = aten.eye.default(k, dtype=dtypes.bool_, device=s.device)
    inner = aten.masked_fill.Scalar(inner, eye, 0)
    own = ct1
    if u.dtype.is_complex:
        own = aten.add.Tensor(over(diagonal(left), aten.mul.Tensor(s, 2)), ct1)
    inner = aten.add.Tensor(inner, aten.diag_embed.default(own))
    g = mm(u, inner)
    if m > k:
        beyond = over(gu, row(s))
        g = aten.add.Tensor(g, aten.sub.Tensor(beyond, mm(u, mm(adjoint(u), beyond))))
    g = mm(g, vh)
    if n > k:
        beyond = over(gvh, column(s))
        g = aten.add.Tensor(g, mm(u, aten.sub.Tensor(beyond, mm(mm(beyond, adjoint(vh)), vh))))
    return g


_linalg_svd.derivative(A=_svd_vjp)


@composite(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    variants="",
    has_out=True,
    out_rules="exact",
)
def linalg_svd(A, full_matrices, driver):
    return aten._linalg_svd.default(A, full_matrices, True, driver=driver)


@composite("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", variants="", out_rules="exact")
def linalg_svdvals(A, driver):
    return aten._linalg_svd.default(A, False, differentiated(A), driver=driver)[1]


@composite(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    has_out=True,
    out_rules="exact",
)
def svd(self, some, compute_uv):
    matrix("linalg.svd", self)
    m, n = self.shape[-2:]
    if not compute_uv:
        s = aten.linalg_svdvals.default(self)
        zeros = lambda k: aten.new_zeros.default(self, [*self.shape[:-2], k, k])  # noqa: E731
        return zeros(m), s, zeros(n)
    u, s, vh = aten._linalg_svd.default(self, not some, True)
    return u, s, adjoint(vh)
