"""Low-rank factorisations by random projection (N. Halko, P. Martinsson, J. Tropp, "Finding structure with randomness", 2009, alg. 4.4 and 5.1)."""

from __future__ import annotations

from ..core.bindings import function
from ..core.operator import namespace
from ..core.overrides import wrap_function

__all__ = ["pca_lowrank", "svd_lowrank"]

aten = namespace("aten")
_randn = function("randn")


def _range(a, q, niter, m=None):
    """An orthonormal basis of about the ``q`` leading directions of the columns of ``a`` (less ``m``)."""
    ah = aten.adjoint(a)
    apply = (lambda x: aten.matmul(a, x)) if m is None else (lambda x: aten.sub(aten.matmul(a, x), aten.matmul(m, x)))
    back = (
        (lambda x: aten.matmul(ah, x))
        if m is None
        else (lambda x: aten.sub(aten.matmul(ah, x), aten.matmul(aten.adjoint(m), x)))
    )
    random = _randn(a.shape[-1], q, dtype=a.dtype, device=a.device)
    basis = aten.linalg_qr(apply(random))[0]
    for _ in range(niter):
        basis = aten.linalg_qr(back(basis))[0]
        basis = aten.linalg_qr(apply(basis))[0]
    return basis


def svd_lowrank(A, q=6, niter=2, M=None):  # noqa: N803
    """(U, S, V) of the matrices ``A`` (..., m, n), less ``M`` when given, of about the ``q`` largest singular values, by
    ``niter`` steps of subspace iteration."""
    m, n = A.shape[-2:]
    q = 6 if q is None else q
    if M is not None:
        M = M.expand(A.shape)  # noqa: N806
    wide = m < n
    if wide:
        A = aten.adjoint(A)  # noqa: N806
        M = None if M is None else aten.adjoint(M)  # noqa: N806
    basis = _range(A, q, niter, M)
    rest = A if M is None else aten.sub(A, M)
    u, s, vh = aten.linalg_svd(aten.matmul(aten.adjoint(basis), rest), False)
    u, v = aten.matmul(basis, u), aten.adjoint(vh)
    return (v, s, u) if wide else (u, s, v)


def pca_lowrank(A, q=None, center=True, niter=2):  # noqa: N803
    """(U, S, V): the leading ``q`` principal directions (columns of V) of the rows of ``A``, centred unless told otherwise. ValueError for a ``q`` or
    ``niter`` that doesn't fit."""
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if center:
        A = aten.sub(A, aten.mean(A, [-2], True))  # noqa: N806
    return svd_lowrank(A, q, niter)


svd_lowrank, pca_lowrank = wrap_function(svd_lowrank), wrap_function(pca_lowrank)
