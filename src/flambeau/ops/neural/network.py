"""What neural networks use beside the transformer's operators: further activations, normalisations, losses and pooling."""

from __future__ import annotations

import math

from ...base import dtypes
from ...base.dtypes import finfo, float32, float64, uint8
from ...core.declare import COMPLEX, INTEGERS, composite, explicit, pointwise
from ...core.operator import namespace
from ...core.promotion import check_parameters
from ..reductions.basic import as_dtype, as_written, widened
from .activation import check_affine

aten = namespace("aten")

# ---- activations -----------------------------------------------------------------------------------------------------------


@pointwise(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    refuse=INTEGERS,
    variants="nn",
    promote="float",
    operands=("self",),
)
def elu(s, self, alpha, scale, input_scale):
    return s.where(s.gt(self, 0), s.mul(self, scale), s.mul(s.expm1(s.mul(self, input_scale)), alpha * scale))


@pointwise("log_sigmoid(Tensor self) -> Tensor", variants="nn", promote="float", layout=(), inplace=False)
def log_sigmoid(s, self):
    return s.sub(s.minimum(self, 0.0), s.log1p(s.exp(s.neg(s.abs(self)))))


log_sigmoid.derivative(self=lambda ct, self: aten.mul.Tensor(ct, aten.sigmoid.default(aten.neg.default(self))))


@pointwise(
    "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor",
    variants="",
    operands=("grad_output", "self_or_result"),
    inplace=False,
)
def elu_backward(s, grad_output, alpha, scale, input_scale, is_result, self_or_result):
    x = self_or_result
    if is_result:
        slope = s.mul(s.add(x, alpha * scale), input_scale)
    else:
        slope = s.mul(s.exp(s.mul(x, input_scale)), input_scale * alpha * scale)
    return s.where(s.le(x, 0), s.mul(grad_output, slope), s.mul(grad_output, scale))


elu.derivative(
    self=lambda ct, self, alpha, scale, input_scale: elu_backward(ct, alpha, scale, input_scale, False, self)
)


def _limits(args):
    if args[0].dtype.name == "uint8" and (args[1] < 0 or args[2] < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return "keep"


@pointwise(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    variants="nn",
    promote=_limits,
    operands=("self", "min_val", "max_val"),
    layout="self",
    refuse=("bool",),
)
def hardtanh(s, self, min_val, max_val):
    return s.where(s.lt(self, min_val), min_val, s.where(s.gt(self, max_val), max_val, self))


@pointwise(
    "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
    variants="",
    operands=("grad_output", "self"),
    inplace=False,
)
def hardtanh_backward(s, grad_output, self, min_val, max_val):
    """Nothing at the ends themselves. Of nan all of it, as in PyTorch's loop over what whole vectors leave over (its vectors have 0)."""
    return s.where(s.logical_or(s.le(self, min_val), s.ge(self, max_val)), 0, grad_output)


hardtanh.derivative(self=lambda ct, self, min_val, max_val: hardtanh_backward(ct, self, min_val, max_val))


@pointwise("hardsigmoid(Tensor self) -> Tensor", variants="nn", promote="float", refuse=(*INTEGERS, *COMPLEX))
def hardsigmoid(s, self):
    return s.where(s.le(self, -3.0), 0.0, s.where(s.ge(self, 3.0), 1.0, s.div(s.add(self, 3.0), 6.0)))


@pointwise("hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", variants="", inplace=False)
def hardsigmoid_backward(s, grad_output, self):
    inside = s.logical_and(s.gt(self, -3.0), s.lt(self, 3.0))
    return s.where(inside, s.mul(grad_output, 1 / 6), 0)


hardsigmoid.derivative(self=lambda ct, self: hardsigmoid_backward(ct, self))


@pointwise("hardswish(Tensor self) -> Tensor", variants="nn", promote="float", refuse=(*INTEGERS, *COMPLEX))
def hardswish(s, self):
    """nan at -inf."""
    return s.div(s.mul(self, s.minimum(s.maximum(s.add(self, 3.0), 0.0), 6.0)), 6.0)


@pointwise("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", variants="", inplace=False, has_out=False)
def hardswish_backward(s, grad_output, self):
    middle = s.mul(grad_output, s.add(s.div(self, 3.0), 0.5))
    return s.where(s.le(self, -3.0), 0, s.where(s.lt(self, 3.0), middle, grad_output))


hardswish.derivative(self=lambda ct, self: hardswish_backward(ct, self))


def _softplus(s, x):
    return s.where(s.gt(x, 20.0), x, s.log1p(s.exp(x)))


@pointwise("mish(Tensor self) -> Tensor", variants="nn", promote="float")
def mish(s, self):
    """x tanh(softplus(x)). Misra, arXiv:1908.08681."""
    return s.mul(self, s.tanh(_softplus(s, self)))


@pointwise("mish_backward(Tensor grad_output, Tensor self) -> Tensor", variants="", inplace=False, has_out=False)
def mish_backward(s, grad_output, self):
    t = s.tanh(_softplus(s, self))
    return s.mul(grad_output, s.add(t, s.mul(s.mul(self, s.sigmoid(self)), s.sub(1.0, s.mul(t, t)))))


mish.derivative(self=lambda ct, self: mish_backward(ct, self))


# ---- normalisation ---------------------------------------------------------------------------------------------------------


@composite(
    "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    variants="function",
    images=0,
)
def rms_norm(input, normalized_shape, weight, eps):
    n = len(normalized_shape)
    if n == 0:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []"
        )
    if list(input.shape[-n:]) != list(normalized_shape):
        want = "*, " + ", ".join(map(str, normalized_shape))
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape [{want}], but got input of size{list(input.shape)}"
        )
    check_affine(normalized_shape, weight)
    kind = input.dtype
    x = widened(input)  # squares of half precision overflow
    eps = finfo(x.dtype).eps if eps is None else eps
    mean = aten.mean.dim(aten.mul.Tensor(x, x), list(range(x.ndim - n, x.ndim)), True)
    out = aten.mul.Tensor(x, aten.rsqrt.default(aten.add.Tensor(mean, eps)))
    if weight is not None:
        out = aten.mul.Tensor(out, weight)
    return as_dtype(kind, out)


def _per_channel(t, ndim):
    """(C,) -> (1, C, 1, ...)."""
    return aten.reshape.default(t, [1, -1, *[1] * (ndim - 2)])


def _affine(out, weight, bias):
    if weight is not None:
        out = aten.mul.Tensor(out, _per_channel(weight, out.ndim))
    return out if bias is None else aten.add.Tensor(out, _per_channel(bias, out.ndim))


@composite(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
    refuse=COMPLEX,
    variants="function",
    images=0,
)
def group_norm(input, num_groups, weight, bias, eps, cudnn_enabled):
    """Wu & He, arXiv:1803.08494."""
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    n, c = input.shape[:2]
    if num_groups < 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if c % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(input.shape)} and "
            f"num_groups={num_groups}"
        )
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and (t.ndim != 1 or t.shape[0] != c):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape {list(t.shape)} and "
                f"input of shape {list(input.shape)}"
            )
    check_parameters(input, weight, bias)
    groups = aten.reshape.default(
        aten.contiguous.default(widened(input)), [n, num_groups, math.prod(input.shape[1:]) // num_groups]
    )
    out = aten.native_layer_norm.default(groups, [groups.shape[-1]], None, None, eps)[0]
    return as_dtype(input.dtype, _affine(aten._unsafe_view.default(out, list(input.shape)), weight, bias))


@group_norm.override("watched")
def _group_norm(input, num_groups, weight, bias, eps, cudnn_enabled):
    n, c = (*input.shape, 0, 0)[:2]
    if input.ndim < 2 or c % num_groups or input.dtype not in (float32, float64) or not input.is_contiguous():
        return group_norm.definition.fn(input, num_groups, weight, bias, eps, cudnn_enabled)
    inner = math.prod(input.shape[2:])
    return aten.native_group_norm.default(input, weight, bias, n, c, inner, num_groups, eps)[0]


KERNEL_WORTH = 65536  # elements from which eager operators are compiled; the parts of fewer are the shorter way


@composite(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, "
    "float eps, bool cudnn_enabled) -> Tensor",
    refuse=COMPLEX,
    variants="function",
    images=0,
)
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """Ioffe & Szegedy, arXiv:1502.03167. While training, the running statistics are moved by ``momentum`` (the variance unbiased)."""
    if input.ndim == 1 and input.shape[0] == 0:
        return aten.clone.default(input)
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    for name, t in (("weight", weight), ("bias", bias), ("running_mean", running_mean), ("running_var", running_var)):
        if t is not None and t.shape[0] != input.shape[1]:
            raise RuntimeError(f"{name} should contain {input.shape[1]} elements not {t.shape[0]}")
    check_parameters(input, weight, bias)
    check_parameters(input, running_mean, running_var)
    if input.numel() == 0:  # nothing to normalise or to learn statistics from
        return _affine(aten.clone.default(input), weight, bias)
    if not training and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
    # Statistics, result and gradients in as few passes as there can be: see normalization.py.
    n = input.numel()
    if (
        not training
        and type(n) is int
        and n < KERNEL_WORTH
        and input.is_contiguous()
        and input.dtype in (float32, float64)
    ):
        mean, var = (aten.detach.default(t) if t.requires_grad else t for t in (running_mean, running_var))
        centred = aten.sub.Tensor(input, _per_channel(mean, input.ndim))
        out = aten.mul.Tensor(centred, aten.rsqrt.default(aten.add.Tensor(_per_channel(var, input.ndim), eps)))
        return as_dtype(input.dtype, _affine(out, weight, bias))
    return aten.native_batch_norm.default(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@batch_norm.override("watched")
def _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    own = (weight, bias, running_mean, running_var)
    fits = input.ndim >= 2 and all(t is None or t.dtype is input.dtype and t.shape == input.shape[1:2] for t in own)
    if not fits or input.dtype not in (float32, float64) or not training and None in own[2:]:
        return batch_norm.definition.fn(input, *own, training, momentum, eps, cudnn_enabled)
    aten.empty.memory_format([0], dtype=uint8)  # what PyTorch reserves for other libraries
    return aten.native_batch_norm.default(input, *own, training, momentum, eps)[0]


# ---- losses and similarity -------------------------------------------------------------------------------------------------


def _reduced(loss, reduction):
    return loss if reduction == 0 else aten.mean.default(loss) if reduction == 1 else aten.sum.default(loss)


def _each(grad_output, slope, weight, reduction):
    """Cotangent of each element of a loss from that of its reduction."""
    out = aten.mul.Tensor(slope if weight is None else aten.mul.Tensor(slope, weight), grad_output)
    return aten.div.Tensor(out, float(max(slope.numel(), 1))) if reduction == 1 else out


@explicit(
    "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor", refuse=COMPLEX, variants=""
)
def smooth_l1_loss(self, target, reduction, beta):
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    z = aten.abs.default(aten.sub.Tensor(self, target))
    if beta == 0:
        return _reduced(z, reduction)
    small = aten.div.Tensor(aten.mul.Tensor(aten.mul.Tensor(z, z), 0.5), beta)
    return _reduced(aten.where.self(aten.lt.Scalar(z, beta), small, aten.sub.Tensor(z, 0.5 * beta)), reduction)


@explicit(
    "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor"
)
def smooth_l1_loss_backward(grad_output, self, target, reduction, beta):
    d = aten.contiguous.default(aten.sub.Tensor(self, target))
    slope = aten.sign.default(d) if beta == 0 else aten.clamp.default(aten.div.Tensor(d, beta), -1, 1)
    return _each(grad_output, slope, None, reduction)


smooth_l1_loss.derivative(
    self=lambda ct, self, target, reduction, beta: smooth_l1_loss_backward(ct, self, target, reduction, beta),
    target=lambda ct, self, target, reduction, beta: smooth_l1_loss_backward(ct, target, self, reduction, beta),
)


@explicit("huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor", variants="")
def huber_loss(self, target, reduction, delta):
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    z = aten.abs.default(aten.sub.Tensor(self, target))
    small = aten.mul.Tensor(aten.mul.Tensor(z, z), 0.5)
    loss = aten.where.self(aten.le.Scalar(z, delta), small, aten.mul.Tensor(aten.sub.Tensor(z, 0.5 * delta), delta))
    if loss.dtype is not self.dtype:  # unlike other losses this one is of the input's dtype, whatever the target's
        if loss.dtype.is_floating_point and not self.dtype.is_floating_point:
            raise RuntimeError(f"result type {loss.dtype} can't be cast to the desired output type {self.dtype}")
        loss = aten._to_copy.default(loss, dtype=self.dtype)
    return _reduced(loss, reduction)


@explicit(
    "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor",
    has_out=False,
)
def huber_loss_backward(grad_output, self, target, reduction, delta):
    d = aten.contiguous.default(aten.sub.Tensor(self, target))
    return _each(grad_output, aten.clamp.default(d, -delta, delta), None, reduction)


huber_loss.derivative(
    self=lambda ct, self, target, reduction, delta: huber_loss_backward(ct, self, target, reduction, delta),
    target=lambda ct, self, target, reduction, delta: huber_loss_backward(ct, target, self, reduction, delta),
)


@explicit(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor", variants=""
)
def binary_cross_entropy(self, target, weight, reduction):
    """The logarithms are cut at -100, so that a certain wrong answer costs 100 and not infinity."""
    log_p = aten.clamp.default(aten.log.default(self), -100.0)
    log_q = aten.clamp.default(aten.log1p.default(aten.neg.default(self)), -100.0)
    loss = aten.neg.default(
        aten.add.Tensor(aten.mul.Tensor(target, log_p), aten.mul.Tensor(aten.rsub.Scalar(target, 1), log_q))
    )
    return _reduced(loss if weight is None else aten.mul.Tensor(loss, weight), reduction)


@explicit(
    "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor"
)
def binary_cross_entropy_backward(grad_output, self, target, weight, reduction):
    """(p - t) / (p (1 - p)), whose denominator is kept from 0 as the logarithms are kept from -infinity."""
    spread = aten.clamp_min.default(aten.mul.Tensor(aten.rsub.Scalar(self, 1), self), 1e-12)
    return _each(grad_output, aten.div.Tensor(aten.sub.Tensor(self, target), spread), weight, reduction)


def _of_target(ct, self, weight, reduction):
    return _each(
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
    return _reduced(loss, reduction)


@composite(
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", refuse=COMPLEX, variants="function"
)
def cosine_similarity(x1, x2, dim, eps):
    """The lengths are kept above ``eps``; their derivative is not cut there, and 0 at a length of 0."""
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps}")
    x1, x2 = aten.broadcast_tensors.default([x1, x2])
    common = dtypes.result_type(x1, x2)
    if not common.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common.scalar_type}")
    x1, x2 = (x if x.dtype is common else aten._to_copy.default(x, dtype=common) for x in (x1, x2))

    def unit(x):
        length = aten.linalg_vector_norm.default(x, 2, [dim], True)
        missing = aten.clamp_min.default(aten.rsub.Scalar(aten.detach.default(length), eps), 0)
        return aten.div.Tensor(x, aten.add.Tensor(length, missing))

    return aten.sum.dim_IntList(aten.mul.Tensor(unit(x1), unit(x2)), [dim])


@composite("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", variants="function")
def bilinear(input1, input2, weight, bias):
    """x1^T A x2 for each output: one matrix product over the pairs of features."""
    if input1.shape[-1] != weight.shape[1] or input2.shape[-1] != weight.shape[2]:
        raise RuntimeError(
            f"bilinear(): input sizes {input1.shape[-1]} and {input2.shape[-1]} do not match weight {list(weight.shape)}"
        )
    pairs = aten.mul.Tensor(aten.unsqueeze.default(input1, -1), aten.unsqueeze.default(input2, -2))
    if bias is not None and (bias.ndim != 1 or bias.shape[0] != weight.shape[0]):
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0] if bias.ndim else 1} but expected {weight.shape[0]}"
        )
    features = weight.shape[1] * weight.shape[2]
    flat = aten.reshape.default(pairs, [*input1.shape[:-1], features])
    return aten.linear.default(flat, aten.reshape.default(weight, [weight.shape[0], features]), bias)
