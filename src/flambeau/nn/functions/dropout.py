"""Kinds of dropout."""

from __future__ import annotations

import warnings

from flambeau.core.bindings import function
from flambeau.core.overrides import overridable
from flambeau.core.public import overwrite
from flambeau.core.tensor import Tensor

__all__ = ["alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

_alpha, _feature, _feature_alpha = map(function, ("alpha_dropout", "feature_dropout", "feature_alpha_dropout"))


def _drop(fn, input, p, training, inplace):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    out = fn(input, p, training)
    return overwrite(input, out) if inplace and out is not input else out


@overridable
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of self-normalising networks."""
    return _drop(_alpha, input, p, training, inplace)


@overridable
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Alpha dropout of whole feature maps."""
    return _drop(_feature_alpha, input, p, training, inplace)


@overridable
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, L) or (C, L)."""
    if input.dim() not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input.")
    out = _drop(_feature, input.unsqueeze(0) if input.dim() == 2 else input, p, training, False)
    out = out.squeeze(0) if input.dim() == 2 else out
    return overwrite(input, out) if inplace else out


@overridable
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, H, W)."""
    if input.dim() not in (3, 4):
        warnings.warn(f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated.", stacklevel=3)
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is interpreted as "
            "shape (N, C, L), where C is the channel dim. This behavior will change in a future release to interpret the input as one without a "
            "batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=3,
        )
    return _drop(_feature, input, p, training, inplace)


@overridable
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    if input.dim() not in (4, 5):
        warnings.warn(f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated.", stacklevel=3)
    if input.dim() == 5:
        return _drop(_feature, input, p, training, inplace)
    out = _drop(_feature, input.unsqueeze(0), p, training, False).squeeze(0)
    return overwrite(input, out) if inplace else out
