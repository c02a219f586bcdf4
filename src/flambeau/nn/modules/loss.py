"""Losses as layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from flambeau.base.device import Device
from flambeau.base.dtypes import DType
from flambeau.core.tensor import Tensor
from flambeau.modules.module import Module
from flambeau.nn import functional as F
from flambeau.nn.functions.linear_cross_entropy import LinearCrossEntropyOptions
from flambeau.nn.modules.distance import PairwiseDistance
from flambeau.nn.modules.linear import Linear

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LinearCrossEntropyLoss",
    "LinearCrossEntropyOptions",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _Loss(Module):
    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = (
            F._legacy_reduction(size_average, reduce)  # type: ignore[attr-defined]
            if size_average is not None or reduce is not None
            else reduction
        )


class _WeightedLoss(_Loss):
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """(input - target)^2; both have one shape.

    ``reduction``: "mean" (the default), "sum" or "none".

    >>> torch.nn.MSELoss()(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """|input - target|; both have one shape.

    ``reduction``: "mean" (the default), "sum" or "none".

    >>> torch.nn.L1Loss()(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(1.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squared below ``beta`` (1), linear above: 0.5 d^2 / beta, or |d| - 0.5 beta, for d = input - target.

    ``reduction``: "mean" (the default), "sum" or "none".

    >>> torch.nn.SmoothL1Loss()(torch.tensor([0., 0.]), torch.tensor([0.5, 3.]))
    tensor(1.3125)
    """

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squared below ``delta`` (1), linear above: 0.5 d^2, or delta (|d| - 0.5 delta), for d = input - target.

    ``reduction``: "mean" (the default), "sum" or "none".

    >>> torch.nn.HuberLoss()(torch.tensor([0., 0.]), torch.tensor([0.5, 3.]))
    tensor(1.3125)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(_WeightedLoss):
    """-input at the target's class, of log-probabilities (N, C, ...) and classes (N, ...). ``weight`` (C): of the classes; targets of
    ``ignore_index`` (-100) don't count. IndexError for a class out of range.

    ``reduction``: "mean" (the default), "sum" or "none"; "mean" divides by the weights of what counts.

    >>> torch.nn.NLLLoss()(torch.tensor([[-0.5, -1.]]), torch.tensor([1]))
    tensor(1.)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """``log_softmax`` and ``nll_loss`` in one: input (N, C, ...) of logits, target (N, ...) of class indices or (N, C, ...) of
    probabilities.

    >>> torch.nn.CrossEntropyLoss()(torch.tensor([[2., 0., 0.]]), torch.tensor([0]))
    tensor(0.2395)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """-(target log(input) + (1 - target) log(1 - input)) of probabilities; logarithms end at -100. ``weight`` multiplies, broadcast. RuntimeError
    for inputs outside of [0, 1].

    ``reduction``: "mean" (the default), "sum" or "none".

    >>> torch.nn.BCELoss()(torch.tensor([0.5, 0.5]), torch.tensor([0., 1.]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """:class:`BCELoss` of sigmoid(input), computed without overflow. ``pos_weight`` multiplies the part of the positive targets.

    ``reduction``: "mean" (the default), "sum" or "none".

    >>> torch.nn.BCEWithLogitsLoss()(torch.tensor([0., 0.]), torch.tensor([0., 1.]))
    tensor(0.6931)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


NLLLoss2d = type("NLLLoss2d", (NLLLoss,), {"__module__": __name__, "__doc__": "NLLLoss under its old name."})


class KLDivLoss(_Loss):
    """target (log(target) - input), of log-probabilities ``input``; with ``log_target`` the target is in logarithms too. "batchmean" divides by
    the first dimension, which is the divergence as it is defined.

    ``reduction``: "mean" (the default), "sum" or "none".

    >>> torch.nn.KLDivLoss(reduction='batchmean')(torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[1., 0.]]))
    tensor(0.6931)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """exp(input) - target input (``log_input``, the default), or input - target log(input + eps). ``full`` adds Stirling's term.

    ``reduction``: "mean" (the default), "sum" or "none".
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """0.5 (log(max(var, eps)) + (input - target)^2 / max(var, eps)); ``full`` adds the constant. ValueError for a negative variance.

    ``reduction``: "mean" (the default), "sum" or "none".
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class HingeEmbeddingLoss(_Loss):
    """x where the target is 1, max(0, ``margin`` - x) where it is -1.

    ``reduction``: "mean" (the default), "sum" or "none".
    """

    def __init__(
        self, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """1 - cos(a, b) where the target is 1, max(0, cos(a, b) - ``margin``) where it is -1; vectors (N, D) or (D).

    ``reduction``: "mean" (the default), "sum" or "none".
    """

    def __init__(
        self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """max(0, -target (a - b) + ``margin``): a is to be above b where the target is 1, below where it is -1.

    ``reduction``: "mean" (the default), "sum" or "none".
    """

    def __init__(
        self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target x)), targets of 1 and -1.

    ``reduction``: "mean" (the default), "sum" or "none".
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """sum over classes j and targets t of max(0, 1 - (x[t] - x[j])) / C. Targets (N, C) are classes up to the first -1.

    ``reduction``: "mean" (the default), "sum" or "none".
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over classes of :class:`BCEWithLogitsLoss`, for targets (N, C) of 0 and 1; ``weight`` (C): of the classes.

    ``reduction``: "mean" (the default), "sum" or "none".
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """sum over classes j != y of max(0, ``margin`` - x[y] + x[j])^p / C; ``p`` is 1 or 2, ``weight`` (C): of the classes.

    ``reduction``: "mean" (the default), "sum" or "none".
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p, self.margin = p, margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class TripletMarginLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + ``margin``), d the ``p``-norm distance of vectors (N, D). ``swap`` takes the nearer of
    anchor and positive to the negative.

    ``reduction``: "mean" (the default), "sum" or "none".

    >>> torch.nn.TripletMarginLoss()(torch.zeros(1, 2), torch.zeros(1, 2), torch.full((1, 2), 0.5)).round(decimals=4)
    tensor(0.2929)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """:class:`TripletMarginLoss` with ``distance_function(a, b)`` (the Euclidean distance unless given).

    ``reduction``: "mean" (the default), "sum" or "none".
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(None, None, reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """Connectionist temporal classification (Graves et al. 2006): log-probabilities (T, N, C), targets (N, S) or all in a row, the lengths of
    both. ``blank``: the class that stands for none; ``zero_infinity`` makes 0 of what no alignment reaches.

    ``reduction``: "mean" (the default), "sum" or "none"; "mean" divides by the lengths of the targets first.
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(None, None, reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer and the cross-entropy of its output: see ``functional.linear_cross_entropy``. ``out_features``: dimensions that the
    logits have beside the classes. RuntimeError for a ``weight`` that isn't one number per class."""

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, None, None, reduction)
        self.num_classes, self.out_features, self.options = num_classes, out_features, options
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        rows = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        outer = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*outer, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(outer),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
