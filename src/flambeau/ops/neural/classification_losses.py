"""Losses of classes: negative log likelihood, cross entropy, binary cross entropy."""

from __future__ import annotations

import math

from ...base.dtypes import int64, uint8
from ...base.errors import OutOfBounds
from ...base.shapes import same_shape
from ...base.symint import sym_float
from ...core.declare import COMPLEX, composite, explicit
from ...core.operator import namespace
from ..reductions.basic import as_written
from .loss_reduction import per_element, reduced

aten = namespace("aten")


@explicit(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor", variants=""
)
def binary_cross_entropy(self, target, weight, reduction):
    """The logarithms are cut at -100, so that a certain wrong answer costs 100 and not infinity."""
    if target.dtype is not self.dtype:
        raise RuntimeError(f"Found dtype {target.dtype.scalar_type} but expected {self.dtype.scalar_type}")
    if weight is not None and weight.dtype is not self.dtype:
        weight = aten._to_copy.default(weight, dtype=self.dtype)
    log_p = aten.clamp.default(aten.log.default(self), -100.0)
    log_q = aten.clamp.default(aten.log1p.default(aten.neg.default(self)), -100.0)
    loss = aten.neg.default(
        aten.add.Tensor(aten.mul.Tensor(target, log_p), aten.mul.Tensor(aten.rsub.Scalar(target, 1), log_q))
    )
    return reduced(loss if weight is None else aten.mul.Tensor(loss, weight), reduction)


@explicit(
    "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor"
)
def binary_cross_entropy_backward(grad_output, self, target, weight, reduction):
    """(p - t) / (p (1 - p)), whose denominator is kept from 0 as the logarithms are kept from -infinity."""
    spread = aten.clamp_min.default(aten.mul.Tensor(aten.rsub.Scalar(self, 1), self), 1e-12)
    return per_element(grad_output, aten.div.Tensor(aten.sub.Tensor(self, target), spread), weight, reduction)


def _of_target(ct, self, weight, reduction):
    return per_element(
        ct, aten.sub.Tensor(aten.log1p.default(aten.neg.default(self)), aten.log.default(self)), weight, reduction
    )


binary_cross_entropy.derivative(
    self=lambda ct, self, target, weight, reduction: binary_cross_entropy_backward(ct, self, target, weight, reduction),
    target=_of_target,
)


@composite(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor",
    variants="function",
)
def binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction):
    log_p = aten.log_sigmoid.default(self)
    negative = aten.rsub.Scalar(target, 1)  # in whose dtype and shape the losses are
    if pos_weight is not None:
        scale = aten.add.Tensor(aten.mul.Tensor(aten.sub.Tensor(pos_weight, 1), target), 1)
        log_p = aten.mul.Tensor(scale, log_p)
    loss = as_written(negative, aten.sub.Tensor(aten.mul.Tensor(negative, self), log_p))
    if weight is not None:
        loss = as_written(loss, aten.mul.Tensor(loss, weight))
    return reduced(loss, reduction)


def _class_dim(self) -> int:
    return 1 if self.ndim > 1 else 0


def _check_weight(self, weight) -> None:
    classes = self.shape[_class_dim(self)]
    if weight is not None and (weight.ndim != 1 or weight.shape[0] != classes):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: "
            f"{list(weight.shape)}"
        )


def _weights(self, target, weight, ignore_index):
    """(target with ignored positions made valid, weight of each position)."""
    ignored = aten.eq.Scalar(target, ignore_index)
    safe = aten.masked_fill.Scalar(target, ignored, 0)
    if weight is None:
        return safe, aten._to_copy.default(aten.logical_not.default(ignored), dtype=self.dtype)
    each = aten.index_select.default(weight, 0, aten.reshape.default(safe, [-1]))
    return safe, aten.masked_fill.Scalar(aten.reshape.default(each, list(target.shape)), ignored, 0)


def _picked(x, safe, each, target, weight, ignore_index):
    """The element of ``x`` at each target, weighted; an ignored one is 0 whatever stands there."""
    at = _class_dim(x)
    picked = aten.squeeze.dim(aten.gather.default(x, at, aten.unsqueeze.default(safe, at)), at)
    if weight is not None:
        picked = aten.mul.Tensor(picked, each)
    return aten.masked_fill.Scalar(picked, aten.eq.Scalar(target, ignore_index), 0)


def _forward(self, target, weight, reduction, ignore_index):
    _check_weight(self, weight)
    if target.dtype not in (int64, uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_type}")
    if weight is not None and weight.dtype != self.dtype:
        raise RuntimeError(f"expected scalar type {self.dtype.scalar_type} but found {weight.dtype.scalar_type}")
    try:
        safe, each = _weights(self, target, weight, ignore_index)
        loss = aten.neg.default(_picked(self, safe, each, target, weight, ignore_index))
    except OutOfBounds as e:
        raise OutOfBounds(f"Target {e.index} is out of bounds.", e.index) from None
    total = aten.sum.default(each)
    if reduction == 0:
        return loss, aten.zeros_like.default(total)
    out = aten.sum.default(loss)
    return (aten.div.Tensor(out, total) if reduction == 1 else out), total


def _backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    """Written as a comparison with the class index instead of a scatter, which fuses with what follows."""
    safe, each = _weights(self, target, weight, ignore_index)
    at = _class_dim(self)
    g = aten.div.Tensor(grad_output, total_weight) if reduction == 1 else grad_output
    classes = aten.arange.default(self.shape[at], device=self.device)
    safe = aten.reshape.default(
        aten.index_select.default(classes, 0, aten.reshape.default(safe, [-1])), list(safe.shape)
    )
    classes = aten.view.default(classes, [self.shape[at], *[1] * (self.ndim - at - 1)])
    hit = aten.eq.Tensor(aten.unsqueeze.default(safe, at), classes)
    value = aten.masked_fill.Scalar(aten.neg.default(aten.mul.Tensor(each, g)), aten.eq.Scalar(target, ignore_index), 0)
    value = aten.unsqueeze.default(value, at)
    return aten.where.ScalarOther(hit, aten.expand.default(value, list(self.shape)), 0)


def _double(ct, self, target, weight, reduction, ignore_index, total_weight):
    """The backward is linear in grad_output: its transpose is the loss of ``ct`` itself."""
    safe, each = _weights(self, target, weight, ignore_index)
    out = aten.neg.default(_picked(ct, safe, each, target, weight, ignore_index))
    if reduction == 0:
        return out
    total = aten.sum.default(out)
    return aten.div.Tensor(total, total_weight) if reduction == 1 else total


def _negative_log_likelihood(name):
    """ATen's pair for (C,) or (N, C), and the one for (N, C, H, W), are of one definition: ``<name>_forward`` and ``<name>_backward``."""
    arguments = "Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index"
    forward = explicit(f"{name}_forward({arguments}) -> (Tensor output, Tensor total_weight)", refuse=COMPLEX)(_forward)
    backward = explicit(
        f"{name}_backward(Tensor grad_output, {arguments}, Tensor total_weight) -> Tensor", refuse=COMPLEX
    )(_backward)

    def of_self(ct0, self, target, weight, reduction, ignore_index, result1):
        return backward(ct0, self, target, weight, reduction, ignore_index, result1)

    forward.derivative((0,), self=of_self)
    # It doesn't depend on ``self``, of which only the shape is read.
    backward.derivative(grad_output=_double, self=lambda ct, self_like: None)


_negative_log_likelihood("nll_loss")


_negative_log_likelihood("nll_loss2d")


@composite(
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
    variants="",
)
def nll_loss(self, target, weight, reduction, ignore_index):
    if self.ndim not in (1, 2):
        raise RuntimeError("input tensor should be 1D or 2D")
    if self.ndim == 1 and tuple(target.shape) == (1,):
        target = aten.squeeze.default(target)
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if self.ndim == 1 and target.ndim:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.shape[0]}")
    _check_batches(self, target)
    if self.shape[:-1] != target.shape:
        raise RuntimeError(f"size mismatch (got input: {list(self.shape)}, target: {list(target.shape)})")
    if target.dtype is uint8:
        target = aten._to_copy.default(target, dtype=int64)
    return aten.nll_loss_forward.default(self, target, weight, reduction, ignore_index)[0]


def _check_batches(self, target) -> None:
    found = target.shape[0] if target.ndim else 0
    if self.ndim > 1 and (not target.ndim or self.shape[0] != found):
        raise ValueError(f"Expected input batch_size ({self.shape[0]}) to match target batch_size ({found}).")


@composite(
    "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
    variants="",
)
def nll_loss2d(self, target, weight, reduction, ignore_index):
    if target.ndim != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target.ndim}"
        )
    if self.ndim != 4:
        raise RuntimeError(
            f"only batches of spatial inputs supported (4D tensors), but got input of dimension: {self.ndim}"
        )
    if list(target.shape) != [self.shape[0], *self.shape[2:]]:
        raise RuntimeError(f"size mismatch (got input: {list(self.shape)} , target: {list(target.shape)}")
    return aten.nll_loss2d_forward.default(self, target, weight, reduction, ignore_index)[0]


@composite(
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
    refuse=COMPLEX,
    variants="",
)
def nll_loss_nd(self, target, weight, reduction, ignore_index):
    if self.ndim < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {self.ndim})")
    _check_batches(self, target)
    if self.ndim <= 2:
        return aten.nll_loss.default(self, target, weight, reduction, ignore_index)
    if self.ndim == 4:
        return aten.nll_loss2d.default(self, target, weight, reduction, ignore_index)
    n, c = self.shape[:2]
    lead = [n, *self.shape[2:]]
    if list(target.shape) != lead:
        raise RuntimeError(f"Expected target size {lead}, got {list(target.shape)}")
    positions = math.prod(self.shape[2:])
    plane = aten.reshape.default(self, [n, c, 1, positions])
    out = aten.nll_loss2d.default(
        plane, aten.reshape.default(target, [n, 1, positions]), weight, reduction, ignore_index
    )
    return aten.reshape.default(out, lead) if reduction == 0 else out


@composite(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    variants="",
)
def cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing):
    if self.ndim == 0:
        raise RuntimeError("cross_entropy_loss(): expected an input of 1 dimension or more")
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    logp = aten._log_softmax.default(self, _class_dim(self), False)
    if same_shape(target.shape, self.shape):
        if not target.dtype.is_floating_point:
            raise RuntimeError(
                f"Expected floating point type for target with class probabilities, got {target.dtype.scalar_type}"
            )
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        _check_weight(self, weight)
        return _soft_cross_entropy(logp, target, weight, reduction, label_smoothing)
    if label_smoothing:
        return _smoothed_cross_entropy(logp, target, weight, reduction, ignore_index, label_smoothing)
    return aten.nll_loss_nd.default(logp, target, weight, reduction, ignore_index)


def _per_class(weight, logp):
    """(C,) so that it multiplies along the classes of ``logp``."""
    return aten.view.default(weight, [-1, *[1] * (logp.ndim - _class_dim(logp) - 1)])


def _soft_cross_entropy(logp, target, weight, reduction, smoothing):
    """Targets are probabilities of the classes."""
    at = _class_dim(logp)
    if smoothing:
        target = aten.add.Tensor(aten.mul.Tensor(target, 1 - smoothing), smoothing / max(logp.shape[at], 1))
    if weight is not None:
        logp = aten.mul.Tensor(logp, _per_class(weight, logp))
    loss = aten.neg.default(aten.sum.dim_IntList(aten.mul.Tensor(logp, target), [at]))
    if reduction == 1:
        return aten.div.Tensor(aten.sum.default(loss), sym_float(loss.numel()))
    return reduced(loss, reduction)


def _smoothed_cross_entropy(logp, target, weight, reduction, ignore_index, smoothing):
    """Mixes the loss with its mean over all classes: Szegedy et al., arXiv:1512.00567."""
    at = _class_dim(logp)
    nll = aten.nll_loss_nd.default(logp, target, weight, reduction, ignore_index)
    weighted = logp if weight is None else aten.mul.Tensor(logp, _per_class(weight, logp))
    smooth = aten.neg.default(aten.sum.dim_IntList(weighted, [at]))
    smooth = aten.masked_fill.Scalar(smooth, aten.eq.Scalar(target, ignore_index), 0)
    if reduction == 1:
        _, each = _weights(logp, target, weight, ignore_index)
        smooth = aten.div.Tensor(aten.sum.default(smooth), aten.sum.default(each))
    else:
        smooth = reduced(smooth, reduction)
    return aten.add.Tensor(
        aten.mul.Tensor(nll, 1 - smoothing), aten.mul.Tensor(smooth, smoothing / max(logp.shape[at], 1))
    )
