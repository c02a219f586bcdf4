"""A few extreme eigenpairs of large symmetric matrices, by products with them only.

The iteration is the locally optimal block preconditioned conjugate gradient method (A. Knyazev, "Toward the Optimal Preconditioned Eigensolver",
SIAM J. Sci. Comput. 23(2), 2001): the best vectors in the space of the present ones, their residuals and the last step. Its basis is orthonormalised
by the eigenvectors of its Gram matrix, and directions that are rounding noise are dropped (A. Stathopoulos, K. Wu, "A Block Orthogonalization
Procedure with Constant Synchronization Requirements", SIAM J. Sci. Comput. 23(6), 2002), so a singular basis is no failure.
"""

from __future__ import annotations

import math

from ..autograd.function import Function, once_differentiable
from ..autograd.grad_mode import no_grad
from ..base.dtypes import finfo
from ..core.bindings import function
from ..core.operator import namespace
from ..core.overrides import wrap_function
from ..core.tensor import strided

__all__ = ["LOBPCG", "lobpcg"]

aten = namespace("aten")
_randn, _cat = function("randn"), function("cat")
_ITERATIONS = 1000


class LOBPCG:
    """The state of an iteration, which a ``tracker`` is shown after each step: ``E``, ``X`` (eigenpairs), ``R`` (residuals), ``S`` (the basis), the
    parameters ``iparams``, ``fparams``, ``bparams`` and the variables ``ivars``, ``fvars``, ``bvars``, ``tvars``.
    ``bvars["force_stop"] = True`` ends it."""

    def __init__(self, A, B, X, iK, k, niter, tol, largest, tracker):  # noqa: N803
        self.A, self.B, self.X, self.iK, self.tracker = A, B, X, iK, tracker
        m, n = X.shape
        self.iparams = {"m": m, "n": n, "k": k, "niter": niter}
        self.fparams, self.bparams = {"tol": tol}, {"largest": largest}
        self.ivars = {"istep": 0, "converged_count": 0, "iterations_left": niter}
        self.fvars, self.bvars, self.tvars = {}, {"force_stop": False}, {}
        self.E = self.R = None
        self.S, self._last = X, None

    def _scaled(self, X):  # noqa: N803
        return X if self.B is None else self.B @ X

    def _orthonormal(self, S):  # noqa: N803
        """An orthonormal basis of the columns. Twice: what the first pass leaves is rounding of small directions."""
        for _ in range(2):
            gram = S.mH @ self._scaled(S)
            size = gram.diagonal().real.clamp(min=finfo(S.dtype).tiny).rsqrt()
            values, vectors = aten.linalg_eigh(gram * size * size.unsqueeze(-1))
            kept = values > values[-1] * finfo(S.dtype).eps * S.shape[-1]
            S = S @ (size.unsqueeze(-1) * vectors[:, kept] * values[kept].rsqrt())  # noqa: N806
        return S

    def _best(self):
        """Rayleigh and Ritz: the wanted eigenpairs of A in the span of S."""
        basis = self._orthonormal(self.S)
        values, vectors = aten.linalg_eigh(basis.mH @ (self.A @ basis))
        if self.bparams["largest"]:
            values, vectors = values.flip(-1), vectors.flip(-1)
        n = self.iparams["n"]
        self.E, before, self.X = values[:n], self.X, basis @ vectors[:, :n]
        # The step: the part of the new vectors that is not in the old ones.
        self._last = self.X - before @ (before.mH @ self._scaled(self.X)) if self.ivars["istep"] else None

    def _residual(self) -> None:
        """The residuals, relative to the sizes of A and B, and how many leading pairs have converged."""
        AX, BX = self.A @ self.X, self._scaled(self.X)  # noqa: N806
        self.R = AX - BX * self.E
        if not self.ivars["istep"]:
            size = self.X.norm()
            self.fvars = {
                "X_norm": size.item(),
                "A_norm": (AX.norm() / size).item(),
                "B_norm": (BX.norm() / size).item(),
            }
        scale = self.X.norm(dim=0) * (self.fvars["A_norm"] + self.fvars["B_norm"] * self.E.abs())
        self.tvars["rerr"] = rerr = self.R.norm(dim=0) / scale
        done = (rerr < self.fparams["tol"]).tolist()
        self.ivars["converged_count"] = next((i for i, d in enumerate(done) if not d), len(done))

    def run(self):
        """The ``k`` wanted eigenpairs."""
        k = self.iparams["k"]
        self._best()
        self._residual()
        while self.ivars["converged_count"] < k and self.ivars["iterations_left"] and not self.bvars["force_stop"]:
            W = self.R if self.iK is None else self.iK @ self.R  # noqa: N806
            for _ in range(2):
                W = W - self.X @ (self.X.mH @ self._scaled(W))  # noqa: N806
            self.ivars["istep"] += 1
            self.ivars["iterations_left"] -= 1
            self.S = _cat([self.X, W, *([] if self._last is None else [self._last])], -1)
            self._best()
            self._residual()
            if self.tracker is not None:
                self.tracker(self)
        return self.E[:k], self.X[:, :k]


def _flat(t):
    return None if t is None else t.reshape(-1, *t.shape[-2:])


def _solve(A, B, X, iK, k, *rest):  # noqa: N803
    if A.ndim == 2:
        return LOBPCG(A, B, X, iK, k, *rest).run()
    parts = [_flat(t) for t in (A, B, X, iK)]
    found = [LOBPCG(*(None if t is None else t[i] for t in parts), k, *rest).run() for i in range(parts[0].shape[0])]
    values, vectors = (aten.stack([f[i] for f in found]) for i in range(2))
    return values.reshape(*A.shape[:-2], k), vectors.reshape(*A.shape[:-1], k)


class _Differentiable(Function):
    """The derivative needs the other eigenpairs too: those of A in the complement of the found ones, by a dense decomposition."""

    @staticmethod
    def forward(ctx, A, *rest):  # noqa: N803
        E, X = _solve(A, *rest)  # noqa: N806
        ctx.save_for_backward(A, E, X)
        return E, X

    @staticmethod
    @once_differentiable
    def backward(ctx, gE, gX):  # noqa: N803
        A, E, X = ctx.saved_tensors  # noqa: N806
        k = X.shape[-1]
        inner = X.mT @ gX
        gaps = E.unsqueeze(-2) - E.unsqueeze(-1)
        inner = aten.where(gaps == 0, 0, inner / aten.where(gaps == 0, 1, gaps)) + aten.diag_embed(gE)
        others = aten.linalg_qr(X, "complete")[0][..., k:]
        values, vectors = aten.linalg_eigh(others.mT @ (A @ others))
        others = others @ vectors
        outer = others @ ((others.mT @ gX) / (E.unsqueeze(-2) - values.unsqueeze(-1)))
        return (X @ inner + outer) @ X.mT, *[None] * 8


def lobpcg(
    A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None,  # noqa: N803
    ortho_iparams=None, ortho_fparams=None, ortho_bparams=None,
):  # fmt: skip
    """(E (..., k), X (..., m, k)): the ``k`` largest (or smallest) eigenvalues of the symmetric matrices ``A`` (..., m, m) and their vectors:
    A X = B X diag(E).

    ``B``: symmetric positive definite, the identity when not given. ``X`` (..., m, n): where to start, else ``n`` (``k`` when not given) random
    columns. ``iK``: an approximate inverse of A. It ends when the relative residuals are below ``tol`` (the root of the dtype's eps) or after
    ``niter`` (1000, -1: no end) steps. ``tracker``: called with the :class:`LOBPCG` after each. ``method`` and the parameters of PyTorch's
    orthogonalisation choose nothing here: there is one way, which drops what is not independent.

    ValueError when m < 3 n. The gradient is that of dense real A without B.
    """
    m = A.shape[-1]
    if A.shape[-2] != m:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested eigenpairs (={n})"
        )
    if not 0 < k <= n:
        raise ValueError(
            f"the number of eigenpairs (={k}) must be positive and not greater than the columns of X (={n})"
        )
    with no_grad():
        X = _randn(*A.shape[:-1], n, dtype=A.dtype, device=A.device) if X is None else X  # noqa: N806
    tol = math.sqrt(finfo(A.dtype).eps) if tol is None else tol
    rest = (X, iK, k, _ITERATIONS if niter is None else niter, tol, largest is None or largest, tracker)
    if not A.requires_grad and (B is None or not B.requires_grad):
        with no_grad():
            return _solve(A, B, *rest)
    if A.layout is not strided or A.dtype.is_complex:
        raise ValueError("lobpcg has a derivative for dense real matrices only")
    if B is not None:
        raise ValueError("lobpcg.backward() with B != I is not yet supported")
    return _Differentiable.apply((A + A.mT) / 2, B, *rest)


lobpcg = wrap_function(lobpcg)
