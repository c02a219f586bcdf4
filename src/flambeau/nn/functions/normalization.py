"""Normalisations beside layer and batch norm, and bags of embeddings."""

from __future__ import annotations

import warnings

from flambeau.autograd.grad_mode import no_grad
from flambeau.core import keys as K
from flambeau.core.bindings import function
from flambeau.core.dispatch import excluding
from flambeau.core.overrides import overridable
from flambeau.core.tensor import Tensor

__all__ = ["embedding_bag", "instance_norm", "local_response_norm", "renormed"]

_instance_norm, _bag, _arange = function("instance_norm"), function("embedding_bag"), function("arange")


@overridable
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of each sample of (N, C, *) by its own statistics.

    >>> torch.nn.functional.instance_norm(torch.ones(1, 2, 3))
    tensor([[[0., 0., 0.],
             [0., 0., 0.]]])
    """
    if use_input_stats:
        spatial = 1
        for n in input.shape[2:]:
            spatial *= n
        if spatial == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    return _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


@overridable
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha mean of squares over ``size`` neighbouring channels)^beta. Krizhevsky et al. 2012."""
    from . import pooling
    from .vision import pad

    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    if input.dim() == 3:
        mean = pooling.avg_pool2d(pad(squares.unsqueeze(1), (0, 0, size // 2, (size - 1) // 2)), (size, 1), 1).squeeze(
            1
        )
    else:
        n, c = input.shape[:2]
        flat = squares.reshape(n, 1, c, input.shape[2], -1)
        flat = pad(flat, (0, 0, 0, 0, size // 2, (size - 1) // 2))
        mean = pooling.avg_pool3d(flat, (size, 1, 1), 1).squeeze(1).reshape(input.shape)
    return input / mean.mul(alpha).add(k).pow(beta)


def renormed(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows of ``weight`` that are used and longer than ``max_norm``, in place. Derivatives, tangents too, don't see it."""
    history = isinstance(max_norm, Tensor) and (max_norm.ndim != 0 or max_norm.requires_grad)
    if history or isinstance(max_norm, (str, list, tuple, complex)):
        raise TypeError(
            f"embedding_renorm_(): argument 'max_norm' (position 3) must be float, not {type(max_norm).__name__}"
        )
    with no_grad(), excluding(K.FORWARD):
        rows = indices.reshape(-1).unique() if hasattr(indices, "unique") else indices.reshape(-1)
        picked = weight.index_select(0, rows)
        norms = picked.norm(norm_type, 1, keepdim=True)
        scale = (max_norm / (norms + 1e-7)).where(norms > max_norm, norms.new_ones(norms.shape))
        weight[rows] = picked * scale


def _bags(
    input: Tensor, weight: Tensor, offsets: Tensor | None, per_sample_weights: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """(flat indices, offsets of the bags, flat weights of the samples). ValueError for shapes that don't fit."""
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same shape as the input "
            f"({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. However, found "
                f"offsets of type {type(offsets)}"
            )
        offsets = _arange(0, input.numel(), max(input.size(1), 1), dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    return input, offsets, per_sample_weights


@overridable
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of embeddings: bags are the rows of a 2-d ``input``, or begin at ``offsets`` of a 1-d one."""
    if weight.dtype.category == 1 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, and should "
            "now be `embedding_bag(input, weight, ...)`.",
            stacklevel=3,
        )
        weight, input = input, weight
    input, offsets, per_sample_weights = _bags(input, weight, offsets, per_sample_weights)
    modes = {"sum": 0, "mean": 1, "max": 2}
    if not isinstance(mode, str) or mode not in modes:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='{mode}'). Please "
            "open a feature request on GitHub."
        )
    if max_norm is not None:
        renormed(weight, input, max_norm, norm_type)
    if padding_idx is not None:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {padding_idx}"
            )
        padding_idx %= max(rows, 1)
    return _bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        modes[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]
