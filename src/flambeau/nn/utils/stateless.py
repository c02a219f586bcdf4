"""Calling a module with other parameters."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from ...core.tensor import Tensor
from ...func.modules import _swapped
from ...modules.module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """``torch.func.functional_call`` under its old name."""
    from flambeau.func import functional_call as call

    warnings.warn(
        "This API is deprecated as of PyTorch 2.0 and will be removed in a future version of PyTorch. Please use torch.func.functional_call "
        "instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


@contextlib.contextmanager
def _reparametrize_module(
    module, parameters_and_buffers: dict, *, tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """Within the block the module has these parameters and buffers. RuntimeError with ``strict`` where names differ."""
    with _swapped(module, parameters_and_buffers, tie_weights, strict):
        yield
