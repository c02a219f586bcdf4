"""Weight normalisation (Salimans & Kingma 2016), spectral normalisation (Miyato et al. 2018), orthogonal matrices, as parametrizations."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.base.dtypes import finfo
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.modules.module import Module
from flambeau.nn import functional as F
from flambeau.nn.utils.parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

eye, mv, vdot, cat, randn, zeros_like, allclose = map(function, "eye mv vdot cat randn zeros_like allclose".split())
matrix_exp, geqrf, solve, qr, householder_product = map(
    function, "matrix_exp geqrf linalg_solve linalg_qr linalg_householder_product".split()
)


def norm_except(v: Tensor, dim: int) -> Tensor:
    """The norm over all dimensions but ``dim``, kept; dim -1: over all."""
    if dim == -1:
        return v.norm()
    others = [d for d in range(v.dim()) if d != dim]
    return v.norm(2, others, keepdim=True) if others else v.abs()


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """The tensor as length times direction: ``original0`` (g) and ``original1`` (v)."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def old_names(state_dict: dict[str, Any], prefix: str, *_) -> None:
        for suffix, original in (("g", "original0"), ("v", "original1")):
            key = f"{prefix}{name}_{suffix}"
            if key in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.{original}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(old_names)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        self.dim = dim if dim >= 0 else dim + weight.ndim
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.eps, self.n_power_iterations = eps, n_power_iterations
        if weight.ndim > 1:
            matrix = self._matrix(weight)
            rows, columns = matrix.shape
            self.register_buffer("_u", F.normalize(matrix.new_empty(rows).normal_(0, 1), dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(matrix.new_empty(columns).normal_(0, 1), dim=0, eps=eps))
            self._power(matrix, 15)

    def _matrix(self, weight):
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _power(self, matrix, times: int) -> None:
        with no_grad():
            for _ in range(times):
                self._u.copy_(F.normalize(mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power(matrix, self.n_power_iterations)
        sigma = vdot(self._u.clone(), mv(matrix, self._v.clone()))
        return weight / sigma

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """The tensor divided by its largest singular value, followed by power iteration."""
    weight = getattr(module, name, None)
    if weight is None:
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


def _full(q):
    """``q`` (..., n, k) with orthonormal columns, filled up to (..., n, n) with random directions: the Q of a QR whose diagonal is positive."""
    missing = q.shape[-2] - q.shape[-1]
    if missing:
        q = cat([q, randn(*q.shape[:-1], missing, dtype=q.dtype, device=q.device)], dim=-1)
    q, r = qr(q)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _skew(x):
    """A skew-symmetric (..., n, n) of the lower triangle of ``x`` (..., n, k)."""
    lower = F.pad(x.tril(), (0, x.shape[-2] - x.shape[-1]))
    return lower - lower.mH


def _exponential(x):
    return matrix_exp(_skew(x))[..., : x.shape[-1]]


def _cayley(x):
    half = _skew(x) * 0.5
    identity = eye(half.shape[-1], dtype=half.dtype, device=half.device)
    return solve(identity - half, identity + half)[..., : x.shape[-1]]


def _householder(x):
    """Reflections in the columns below the diagonal of ``x``; the diagonal holds the signs of the columns."""
    below = x.tril(-1)
    q = householder_product(below, 2.0 / (1.0 + (below * below).sum(-2)))
    return q * x.detach().diagonal(dim1=-2, dim2=-1).unsqueeze(-2)


_MAPS = {"matrix_exp": _exponential, "cayley": _cayley, "householder": _householder}


class _Orthogonal(Module):
    """A map from matrices onto those with orthonormal rows or columns. A base before it makes the first value the weight's (Lezcano 2019)."""

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803
        wide = X.shape[-2] < X.shape[-1]
        q = _MAPS[self.orthogonal_map](X.mT if wide else X)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:  # noqa: N803
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        wide = Q.shape[-2] < Q.shape[-1]
        tall = Q.mT if wide else Q
        if hasattr(self, "base"):
            square = tall.shape[-2] == tall.shape[-1]
            self.base = tall.clone() if square and _is_orthogonal(tall) else _full(tall)
            # What each of the maps takes to the identity.
            start = zeros_like(Q)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return start
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when use_trivialization=False."
            )
        reflections, tau = geqrf(tall)
        diagonal = reflections.diagonal(dim1=-2, dim2=-1)
        diagonal.sign_()
        # LAPACK gives 0 for a reflection that it leaves out.
        diagonal[tau == 0.0] *= -1
        return reflections.mT if wide else reflections


def _is_orthogonal(q) -> bool:
    identity = eye(q.shape[-1], dtype=q.dtype, device=q.device)
    return allclose(q.mH @ q, identity, atol=10.0 * q.shape[-2] * finfo(q.dtype).eps)


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Rows or columns that stay orthonormal, of the last two dimensions.

    ``orthogonal_map``: "matrix_exp" (the default of square and of complex matrices), "cayley" or "householder" (of others). With
    ``use_trivialization`` the first value is the weight's, made orthogonal; without, only "householder" can be assigned to.
    ValueError for other maps, for what has no two dimensions, and for "householder" of complex numbers.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    return register_parametrization(module, name, _Orthogonal(weight, orthogonal_map, use_trivialization), unsafe=True)
