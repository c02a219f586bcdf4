"""Losses between numbers and between densities: squares, absolute values, Huber, Kullback-Leibler, Poisson."""

from __future__ import annotations

import math

from ...base.dtypes import bool_
from ...core.declare import COMPLEX, composite, explicit
from ...core.operator import namespace
from ...core.promotion import refused
from .loss_reduction import per_element, reduced

aten = namespace("aten")


def difference(self, target):
    """``self - target``, where truth values beside numbers are the numbers 0 and 1."""
    if self.dtype is bool_ and target.dtype is not bool_:
        self = aten._to_copy.default(self, dtype=target.dtype)
    elif target.dtype is bool_ and self.dtype is not bool_:
        target = aten._to_copy.default(target, dtype=self.dtype)
    return aten.sub.Tensor(self, target)


def _real_difference(name, self, target):
    """The difference of a loss that isn't defined on integers: NotImplementedError where both are some."""
    if self.dtype.category < 2 and target.dtype.category < 2:
        refused(name, self.dtype)
    return difference(self, target)


@explicit(
    "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor", refuse=COMPLEX, variants=""
)
def smooth_l1_loss(self, target, reduction, beta):
    if not beta >= 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    z = aten.abs.default(_real_difference("smooth_l1", self, target))
    if beta == 0:
        return reduced(z, reduction)
    small = aten.div.Tensor(aten.mul.Tensor(aten.mul.Tensor(z, z), 0.5), beta)
    return reduced(aten.where.self(aten.lt.Scalar(z, beta), small, aten.sub.Tensor(z, 0.5 * beta)), reduction)


@explicit(
    "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor"
)
def smooth_l1_loss_backward(grad_output, self, target, reduction, beta):
    d = aten.contiguous.default(difference(self, target))
    slope = aten.sign.default(d) if beta == 0 else aten.clamp.default(aten.div.Tensor(d, beta), -1, 1)
    return per_element(grad_output, slope, None, reduction)


smooth_l1_loss.derivative(
    self=lambda ct, self, target, reduction, beta: smooth_l1_loss_backward(ct, self, target, reduction, beta),
    target=lambda ct, self, target, reduction, beta: smooth_l1_loss_backward(ct, target, self, reduction, beta),
)


@explicit("huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor", variants="")
def huber_loss(self, target, reduction, delta):
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    z = aten.abs.default(_real_difference("huber", self, target))
    small = aten.mul.Tensor(aten.mul.Tensor(z, z), 0.5)
    loss = aten.where.self(aten.le.Scalar(z, delta), small, aten.mul.Tensor(aten.sub.Tensor(z, 0.5 * delta), delta))
    if loss.dtype is not self.dtype:  # unlike other losses this one is of the input's dtype, whatever the target's
        if loss.dtype.is_floating_point and not self.dtype.is_floating_point:
            raise RuntimeError(f"result type {loss.dtype} can't be cast to the desired output type {self.dtype}")
        loss = aten._to_copy.default(loss, dtype=self.dtype)
    return reduced(loss, reduction)


@explicit(
    "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor",
    has_out=False,
)
def huber_loss_backward(grad_output, self, target, reduction, delta):
    d = aten.contiguous.default(difference(self, target))
    return per_element(grad_output, aten.clamp.default(d, -delta, delta), None, reduction)


huber_loss.derivative(
    self=lambda ct, self, target, reduction, delta: huber_loss_backward(ct, self, target, reduction, delta),
    target=lambda ct, self, target, reduction, delta: huber_loss_backward(ct, target, self, reduction, delta),
)


@composite("mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", refuse=COMPLEX, variants="")
def mse_loss(self, target, reduction):
    d = _real_difference("mse", self, target)
    return reduced(aten.mul.Tensor(d, d), reduction)


@composite("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", variants="")
def l1_loss(self, target, reduction):
    return reduced(aten.abs.default(aten.sub.Tensor(self, target)), reduction)


@composite(
    "kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
    refuse=COMPLEX,
    variants="function",
)
def kl_div(self, target, reduction, log_target):
    if not (self.dtype.is_floating_point and target.dtype.is_floating_point):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        loss = aten.mul.Tensor(aten.exp.default(target), aten.sub.Tensor(target, self))
    else:
        likelihood = aten.mul.Tensor(target, self)
        loss = aten.sub.Tensor(aten.xlogy.Tensor(target, target), likelihood)
    return reduced(loss, reduction)


@composite(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
    variants="function",
)
def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    if log_input:
        likelihood = aten.mul.Tensor(target, input)
        loss = aten.sub.Tensor(aten.exp.default(input), likelihood)
    else:
        loss = aten.sub.Tensor(input, aten.mul.Tensor(target, aten.log.default(aten.add.Tensor(input, eps))))
    if full:
        stirling = aten.sub.Tensor(aten.mul.Tensor(target, aten.log.default(target)), target)
        stirling = aten.add.Tensor(
            stirling, aten.mul.Tensor(aten.log.default(aten.mul.Tensor(target, 2 * math.pi)), 0.5)
        )
        loss = aten.add.Tensor(loss, aten.masked_fill.Scalar(stirling, aten.le.Scalar(target, 1), 0))
    return reduced(loss, reduction)
