"""``torch.distributions.utils``: what the distributions share, which libraries import from here."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

from ..base.dtypes import finfo, get_default_dtype
from ..core.bindings import function
from ..core.conversion import tensor
from ..core.tensor import Tensor

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060

_broadcast, _randn, _indices = map(function, ("broadcast_tensors", "randn", "tril_indices"))


def clamp_probs(probs: Tensor | float) -> Tensor:
    """Probabilities moved away from 0 and 1 by the dtype's epsilon, so that their logits are finite."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor | float, is_binary: bool = False) -> Tensor:
    """Logarithms of the probabilities; log-odds for ``is_binary``."""
    p = clamp_probs(probs)
    return p.log() - (-p).log1p() if is_binary else p.log()


def logits_to_probs(logits: Tensor | float, is_binary: bool = False) -> Tensor:
    """Softmax over the last dimension; the sigmoid for ``is_binary``."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def one_of(probs: Tensor | float | None, logits: Tensor | float | None) -> tuple[str, Tensor | float]:
    """Name and value of the parameter that is given. ValueError unless it is just one."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return ("logits", logits) if probs is None else ("probs", probs)


def broadcast_all(*values: Tensor | float) -> tuple[Tensor, ...]:
    """Numbers and tensors, or what stands for tensors, as tensors of one shape. ValueError for anything else."""
    if any(v is None or isinstance(v, (str, bytes, list, tuple, dict)) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    tensors = [v for v in values if hasattr(type(v), "__torch_function__")]
    dtype = tensors[0].dtype if tensors else get_default_dtype()
    device = tensors[0].device if tensors else None
    like = [v if hasattr(type(v), "__torch_function__") else tensor(v, dtype=dtype, device=device) for v in values]
    return tuple(_broadcast(like))


def sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Sum over the last ``dim`` dimensions."""
    return value if dim == 0 else value.reshape(*value.shape[: value.dim() - dim], -1).sum(-1)


_sum_rightmost = sum_rightmost  # under the name that libraries import


class lazy_property:  # noqa: N801
    """Computed when it is first read, and kept."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped, self.__doc__ = wrapped, wrapped.__doc__

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        value = instance.__dict__[self.wrapped.__name__] = self.wrapped(instance)
        return value


def is_scalar(*values) -> bool:
    return all(isinstance(v, Number) for v in values)


def _standard_normal(shape, dtype, device):
    """Independent draws of the normal distribution with mean 0 and deviation 1, a tensor of ``shape``."""
    return _randn(list(shape), dtype=dtype, device=device)


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The matrix whose lower triangle, up to diagonal ``diag``, holds the vectors (..., N)."""
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > 1e-6:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of a square D x D matrix."
        )
    n = round(n)
    out = vec.new_zeros((*vec.shape[:-1], n, n))
    rows, columns = _indices(n, n, diag)
    out[..., rows, columns] = vec
    return out


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangle, up to diagonal ``diag``, of matrices (..., D, D) as vectors."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = _indices(n, n, diag)
    return mat[..., rows, columns]
