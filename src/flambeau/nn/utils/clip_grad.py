"""Clipping of gradients by norm or by value, in place."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from flambeau.autograd.grad_mode import no_grad
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

_stack = function("stack")
_norms, _vector_norm, _scale = function("_foreach_norm"), function("linalg_vector_norm"), function("_foreach_mul_")
_clamp = function("clamp")
_tensor_zero = function("zeros")


def _gradients(parameters) -> list[Tensor]:
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The ``norm_type`` norm of all tensors taken as one vector, a 0-d tensor."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not tensors:
        return _tensor_zero(())
    total = _vector_norm(_stack(_norms(tensors, norm_type)), norm_type)
    if error_if_nonfinite and not total.isfinite().item():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To disable "
            "this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients by min(1, max_norm / (total norm + 1e-6)); returns the total norm before."""
    with no_grad():
        grads = _gradients(parameters)
        total = get_total_norm(grads, float(norm_type), error_if_nonfinite)
        _shrink(grads, float(max_norm), total)
        return total


def _shrink(grads: list[Tensor], max_norm: float, total) -> None:
    if grads:
        _scale(grads, _clamp(max_norm / (total + 1e-6), max=1.0))


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients by min(1, max_norm / (total_norm + 1e-6)), their norm being known."""
    with no_grad():
        _shrink(_gradients(parameters), float(max_norm), total_norm)


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The old name of :func:`clip_grad_norm_`."""
    warnings.warn(
        "torch.nn.utils.clip_grad_norm is now deprecated in favor of torch.nn.utils.clip_grad_norm_.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every gradient to [-clip_value, clip_value]."""
    with no_grad():
        for g in _gradients(parameters):
            g.clamp_(min=-float(clip_value), max=float(clip_value))
