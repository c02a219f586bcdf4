"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]

_cat = function("cat")


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The flattened parameters, one after the other."""
    return _cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let each parameter be its part of ``vec`` (sharing its memory)."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    offset = 0
    for p in parameters:
        n = p.numel()
        p.data = vec[offset : offset + n].view_as(p).data
        offset += n
