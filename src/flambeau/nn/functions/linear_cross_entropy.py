"""The cross-entropy of a linear layer's output, whose logits need not exist all at once."""

from __future__ import annotations

import dataclasses
import math
import warnings

from flambeau.base import dtypes
from flambeau.base.public import public_in
from flambeau.core.bindings import function
from flambeau.core.overrides import overridable
from flambeau.core.tensor import Tensor

__all__ = ["linear_cross_entropy"]


@public_in("nn.modules.linear_cross_entropy_options")
@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How ``linear_cross_entropy`` goes over the batch in pieces, so that logits (N, C) are never in memory as a whole.

    ``batch_chunk_size``: rows of a piece. ``chunking_method``: "aspect_ratio:K", pieces whose logits have about K times the elements of
    the weight; "auto" takes K = 2. Pieces are computed again in the backward, so that derivatives of any order are those without pieces;
    ``allow_retain_graph``, ``acc_policy`` and ``acc_dtype``, which choose how PyTorch keeps gradients from the forward, are only checked.
    ValueError for what isn't an option.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: dtypes.DType | None = None

    def __post_init__(self):
        if self.acc_policy not in {"auto", "accurate", "balanced", "compact"}:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto") and not self._ratio():
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        n = self.batch_chunk_size
        if n is not None and not (isinstance(n, int) and n > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {n!r}")
        if self.acc_dtype not in (None, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64):
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, got "
                f"{self.acc_dtype!r}. Pass acc_dtype=None to let the op pick automatically."
            )

    def _ratio(self) -> int:
        """K of ``aspect_ratio:K``; 0: no such method."""
        name, _, factor = (self.chunking_method or "").partition(":")
        return int(factor or 1) if name == "aspect_ratio" and (factor or "1").isdigit() else 0

    def rows(self, batch: int, features: int, classes: int) -> int:
        """Rows of a piece."""
        if self.batch_chunk_size is not None:
            return min(self.batch_chunk_size, max(batch, 1))
        if self.chunking_method is None:
            return max(batch, 1)
        ratio = 2 if self.chunking_method == "auto" else self._ratio()
        return max(1, min(batch, ratio * features))


_cat = function("cat")


@overridable
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``: input (N, K) or (K,), linear_weight (C, ..., K), linear_bias
    (C, ...). RuntimeError for shapes that don't fit together. With ``options`` logits are computed piece by piece, twice."""
    outer, batches = tuple(linear_weight.shape[:-1]), tuple(input.shape[:-1])
    _check(input, linear_weight, linear_bias, outer)
    if ignore_index is not None and tuple(target.shape) == (*batches, *outer):
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    rest = (weight, -100 if ignore_index is None else ignore_index, label_smoothing)
    pieces = options is not None and len(outer) == 1 and not label_smoothing and target.dtype == dtypes.int64
    if options is not None and not pieces:
        warnings.warn(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, label_smoothing == 0, "
            f"target.dtype == int64, out_features == (). Got reduction={reduction!r}, label_smoothing={label_smoothing}, "
            f"target.dtype={target.dtype}, out_features={outer[1:]}.",
            stacklevel=3,
        )
    if pieces and batches:
        return _in_pieces(input, linear_weight, target, linear_bias, reduction, options, *rest)
    return _whole(input, linear_weight, target, linear_bias, reduction, *rest)


def _check(input, linear_weight, linear_bias, outer) -> None:
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if not outer:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {input.shape[-1]} and {linear_weight.shape[-1]}, respectively"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != outer:
        raise RuntimeError(f"expected linear_bias shape {outer}, got {tuple(linear_bias.shape)}")
    if len(outer) > 1 and input.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, (N, {input.shape[-1]}), got "
            f"unbatched input with shape {tuple(input.shape)}"
        )


def _whole(input, linear_weight, target, linear_bias, reduction, weight, ignore_index, label_smoothing):
    from flambeau.nn import functional

    outer = linear_weight.shape[:-1]
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = functional.linear(input, linear_weight.reshape(math.prod(outer), linear_weight.shape[-1]), bias)
    return functional.cross_entropy(
        logits.reshape(*input.shape[:-1], *outer),
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def _in_pieces(input, linear_weight, target, linear_bias, reduction, options, weight, ignore_index, label_smoothing):
    from flambeau.utils.checkpoint import checkpoint

    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if target.shape != input.shape[:1]:
        raise ValueError(
            f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({target.shape[0]})."
        )
    size = options.rows(*input.shape, linear_weight.shape[0])
    each = "none" if reduction == "none" else "sum"

    def piece(x: Tensor, t: Tensor, w: Tensor, b: Tensor, weight: Tensor) -> Tensor:
        return _whole(x, w, t, b, each, weight, ignore_index, label_smoothing)

    losses = [
        checkpoint(piece, x, t, linear_weight, linear_bias, weight, use_reentrant=False, preserve_rng_state=False)
        for x, t in zip(input.split(size), target.split(size), strict=True)
    ]
    if reduction == "none":
        return _cat(losses)
    total = sum(losses[1:], losses[0])
    if reduction == "sum":
        return total
    counted = target != ignore_index
    return total / (counted.sum() if weight is None else weight[target[counted]].sum())
