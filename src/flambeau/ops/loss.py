"""Losses. ``reduction``: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

from ..base.shapes import same_shape
from ..base.symint import sym_float, sym_max
from ..core.declare import COMPLEX, composite, explicit
from ..core.operator import namespace

aten = namespace("aten")


def _reduced(loss, reduction):
    return loss if reduction == 0 else aten.mean.default(loss) if reduction == 1 else aten.sum.default(loss)


def _weights(self, target, weight, ignore_index):
    """(target with ignored positions made valid, weight of each position)."""
    ignored = aten.eq.Scalar(target, ignore_index)
    safe = aten.masked_fill.Scalar(target, ignored, 0)
    if weight is None:
        each = aten._to_copy.default(aten.logical_not.default(ignored), dtype=self.dtype)
    else:
        each = aten.masked_fill.Scalar(
            aten.index_select.default(weight, 0, aten.reshape.default(safe, [-1])),
            aten.reshape.default(ignored, [-1]),
            0,
        )
    return safe, each


def _picked(x, safe, each, target, weight, ignore_index):
    """The element of ``x`` at each target, weighted; an ignored one is 0 whatever stands there."""
    at = x.ndim - 1
    picked = aten.squeeze.dim(aten.gather.default(x, at, aten.unsqueeze.default(safe, at)), at)
    if weight is not None:
        picked = aten.mul.Tensor(picked, each)
    return aten.masked_fill.Scalar(picked, aten.eq.Scalar(target, ignore_index), 0)


@explicit(
    "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
    refuse=COMPLEX,
)
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    safe, each = _weights(self, target, weight, ignore_index)
    loss = aten.neg.default(_picked(self, safe, each, target, weight, ignore_index))
    total = aten.sum.default(each)
    if reduction == 0:
        return loss, aten.zeros_like.default(total)
    out = aten.sum.default(loss)
    return (aten.div.Tensor(out, total) if reduction == 1 else out), total


@explicit(
    "nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
    refuse=COMPLEX,
)
def nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    """Written as a comparison with the class index instead of a scatter, which fuses with what follows."""
    safe, each = _weights(self, target, weight, ignore_index)
    at = self.ndim - 1
    g = aten.div.Tensor(grad_output, total_weight) if reduction == 1 else grad_output
    classes = aten.arange.default(self.shape[at], device=self.device)
    hit = aten.eq.Tensor(aten.unsqueeze.default(safe, at), classes)
    value = aten.masked_fill.Scalar(aten.neg.default(aten.mul.Tensor(each, g)), aten.eq.Scalar(target, ignore_index), 0)
    value = aten.unsqueeze.default(value, at)
    return aten.where.ScalarOther(hit, aten.expand.default(value, list(self.shape)), 0)


nll_loss_forward.derivative(
    (0,),
    self=lambda ct0, self, target, weight, reduction, ignore_index, result1: aten.nll_loss_backward.default(
        ct0, self, target, weight, reduction, ignore_index, result1
    ),
)


def _nll_double(ct, self, target, weight, reduction, ignore_index, total_weight):
    """nll_loss_backward is linear in grad_output: its transpose is the loss of ``ct`` itself."""
    safe, each = _weights(self, target, weight, ignore_index)
    out = aten.neg.default(_picked(ct, safe, each, target, weight, ignore_index))
    if reduction == 0:
        return out
    total = aten.sum.default(out)
    return aten.div.Tensor(total, total_weight) if reduction == 1 else total


# It doesn't depend on ``self``, of which only the shape is read.
nll_loss_backward.derivative(grad_output=_nll_double, self=lambda ct, self_like: None)


@composite(
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
    variants="",
)
def nll_loss(self, target, weight, reduction, ignore_index):
    if self.ndim not in (1, 2):
        raise RuntimeError("input tensor should be 1D or 2D")
    if self.ndim == 1 and tuple(target.shape) == (1,):
        target = aten.squeeze.default(target)
    if self.ndim == 2 and target.ndim == 1 and self.shape[0] != target.shape[0]:
        raise ValueError(f"Expected input batch_size ({self.shape[0]}) to match target batch_size ({target.shape[0]}).")
    if self.shape[:-1] != target.shape:
        raise RuntimeError(f"size mismatch (got input: {list(self.shape)}, target: {list(target.shape)})")
    return aten.nll_loss_forward.default(self, target, weight, reduction, ignore_index)[0]


def _over_positions(loss, self, target, rest):
    """A loss of (N, C) for (N, C, d1, ...): classes last, positions in one dimension; ``rest`` has the reduction second."""
    n = self.shape[0]
    if target.shape[0] != n:
        raise ValueError(f"Expected input batch_size ({n}) to match target batch_size ({target.shape[0]}).")
    lead = [n, *self.shape[2:]]
    order = [0, *range(2, self.ndim), 1]
    if target.ndim == self.ndim:
        target = aten.reshape.default(aten.permute.default(target, order), [-1, self.shape[1]])
    elif list(target.shape) != lead:
        raise RuntimeError(f"size mismatch (got input: {list(self.shape)} , target: {list(target.shape)}")
    else:
        target = aten.reshape.default(target, [-1])
    out = loss(aten.reshape.default(aten.permute.default(self, order), [-1, self.shape[1]]), target, *rest)
    if rest[1] == 0:
        return aten.reshape.default(out, lead)
    return out


@composite(
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
    refuse=COMPLEX,
    variants="",
)
def nll_loss_nd(self, target, weight, reduction, ignore_index):
    if self.ndim <= 2:
        return aten.nll_loss.default(self, target, weight, reduction, ignore_index)
    return _over_positions(aten.nll_loss.default, self, target, (weight, reduction, ignore_index))


@composite(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    variants="",
)
def cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing):
    if self.ndim == 0:
        raise RuntimeError("cross_entropy_loss(): expected an input of 1 dimension or more")
    if self.ndim > 2:
        return _over_positions(
            aten.cross_entropy_loss.default, self, target, (weight, reduction, ignore_index, label_smoothing)
        )
    if self.ndim == 2 and target.ndim == 1 and self.shape[0] != target.shape[0]:
        raise ValueError(f"Expected input batch_size ({self.shape[0]}) to match target batch_size ({target.shape[0]}).")
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if target.dtype.is_floating_point and same_shape(target.shape, self.shape):
        return _soft_cross_entropy(self, target, weight, reduction, label_smoothing)
    if label_smoothing:
        return _smoothed_cross_entropy(self, target, weight, reduction, ignore_index, label_smoothing)
    return aten.nll_loss.default(
        aten._log_softmax.default(self, self.ndim - 1, False), target, weight, reduction, ignore_index
    )


def _soft_cross_entropy(self, target, weight, reduction, smoothing):
    """Targets are probabilities of the classes."""
    if smoothing:
        target = aten.add.Tensor(aten.mul.Tensor(target, 1 - smoothing), smoothing / max(self.shape[-1], 1))
    logp = aten._log_softmax.default(self, self.ndim - 1, False)
    if weight is not None:
        logp = aten.mul.Tensor(logp, weight)
    loss = aten.neg.default(aten.sum.dim_IntList(aten.mul.Tensor(logp, target), [self.ndim - 1]))
    if reduction == 1:
        return aten.div.Tensor(aten.sum.default(loss), sym_float(sym_max(loss.numel(), 1)))
    return _reduced(loss, reduction)


def _smoothed_cross_entropy(self, target, weight, reduction, ignore_index, smoothing):
    """Mixes the loss with its mean over all classes: Szegedy et al., arXiv:1512.00567."""
    logp = aten._log_softmax.default(self, self.ndim - 1, False)
    nll = aten.nll_loss.default(logp, target, weight, reduction, ignore_index)
    smooth = aten.neg.default(
        aten.sum.dim_IntList(logp if weight is None else aten.mul.Tensor(logp, weight), [self.ndim - 1])
    )
    ignored = aten.eq.Scalar(target, ignore_index)
    smooth = aten.masked_fill.Scalar(smooth, ignored, 0)
    if reduction == 1:
        _, each = _weights(self, target, weight, ignore_index)
        smooth = aten.div.Tensor(aten.sum.default(smooth), aten.sum.default(each))
    else:
        smooth = _reduced(smooth, reduction)
    return aten.add.Tensor(
        aten.mul.Tensor(nll, 1 - smoothing), aten.mul.Tensor(smooth, smoothing / max(self.shape[-1], 1))
    )


@composite("mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", refuse=COMPLEX, variants="")
def mse_loss(self, target, reduction):
    d = aten.sub.Tensor(self, target)
    return _reduced(aten.mul.Tensor(d, d), reduction)


@composite("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", variants="")
def l1_loss(self, target, reduction):
    return _reduced(aten.abs.default(aten.sub.Tensor(self, target)), reduction)
