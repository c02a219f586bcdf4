"""Weight normalisation (Salimans & Kingma 2016), spectral normalisation (Miyato et al. 2018), orthogonal matrices, as parametrizations."""

from __future__ import annotations

from flambeau.autograd.grad_mode import no_grad
from flambeau.core.bindings import function
from flambeau.modules.module import Module
from flambeau.nn import functional as F
from flambeau.nn.utils.parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

eye, mv, dot = map(function, ("eye", "mv", "dot"))


def _norm_except(v, dim: int):
    """The norm over all dimensions but ``dim``, kept; dim -1: over all."""
    if dim == -1:
        return v.norm()
    others = [d for d in range(v.dim()) if d != dim]
    return v.norm(2, others, keepdim=True) if others else v.abs()


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return weight_v * (weight_g / _norm_except(weight_v, self.dim))

    def right_inverse(self, weight):
        return _norm_except(weight, self.dim), weight


def weight_norm(module, name: str = "weight", dim: int = 0):
    """The tensor as length times direction: ``original0`` (g) and ``original1`` (v)."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def old_names(state_dict, prefix, *_):
        for suffix, original in (("g", "original0"), ("v", "original1")):
            key = f"{prefix}{name}_{suffix}"
            if key in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.{original}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(old_names)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__()
        self.dim = dim if dim >= 0 else dim + weight.ndim
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
                self._v.copy_(F.normalize(mv(matrix.t(), self._u), dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power(matrix, self.n_power_iterations)
        sigma = dot(self._u.clone(), mv(matrix, self._v.clone()))
        return weight / sigma

    def right_inverse(self, value):
        return value


def spectral_norm(
    module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
):
    """The tensor divided by its largest singular value, followed by power iteration."""
    weight = getattr(module, name, None)
    if weight is None:
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


class _Orthogonal(Module):
    """Householder's or Cayley's map from a matrix onto one with orthonormal rows or columns; its base makes the first value the weight's."""

    def __init__(self, weight):
        super().__init__()
        self.shape = tuple(weight.shape[-2:])
        self.register_buffer("base", None)

    def forward(self, X):  # noqa: N803
        n, k = X.shape[-2:]
        tall = n >= k
        a = X if tall else X.transpose(-2, -1)
        n, k = a.shape[-2:]
        a = a.tril()
        a = F.pad(a, (0, n - k)) if n != k else a
        skew = a - a.transpose(-2, -1)
        identity = eye(n, dtype=a.dtype, device=a.device)
        q = _solve(identity - skew * 0.5, identity + skew * 0.5)
        if self.base is not None:
            q = self.base @ q
        q = q[..., :k]
        return q if tall else q.transpose(-2, -1)


def _solve(a, b):
    solve = function("linalg_solve")
    return solve(a, b)


def orthogonal(module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True):
    """Rows or columns that stay orthonormal, by Cayley's map. NotImplementedError for the other maps."""
    if orthogonal_map not in (None, "cayley"):
        raise NotImplementedError(f"orthogonal: orthogonal_map={orthogonal_map!r} is not built, only 'cayley'")
    weight = getattr(module, name, None)
    if weight is None or weight.ndim < 2:
        raise ValueError(f"Module '{module}' has no matrix with name '{name}'")
    return register_parametrization(module, name, _Orthogonal(weight), unsafe=True)
