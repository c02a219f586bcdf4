"""Activations: relu and its kin, gelu, silu, elu, softplus, the hard and the shrinking ones, gated and randomized ones."""

from __future__ import annotations

import math

from ...base import dtypes
from ...base.dtypes import finfo, float64
from ...core.declare import COMPLEX, INTEGERS, composite, pointwise
from ...core.operator import namespace

aten = namespace("aten")


@pointwise("relu(Tensor self) -> Tensor", variants="function method nn", refuse=("bool",))
def relu(s, self):
    return s.maximum(self, 0)


@pointwise(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    operands=("grad_output", "self"),
    layout=("self", "grad_output"),
    variants="",
    inplace=False,
)
def threshold_backward(s, grad_output, self, threshold):
    return s.where(s.le(self, threshold), 0, grad_output)


relu.derivative(self=lambda ct, result: threshold_backward(ct, result, 0))


@pointwise(
    "gelu(Tensor self, *, str approximate='none') -> Tensor",
    refuse=COMPLEX + INTEGERS,
    variants="nn",
    promote="float",
    backward="gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    out_rules="exact",
)
def gelu(s, self, approximate):
    """Hendrycks & Gimpel, arXiv:1606.08415; "tanh" is the approximation of its section 2."""
    if approximate == "tanh":
        inner = s.mul(math.sqrt(2 / math.pi), s.add(self, s.mul(0.044715, s.mul(self, s.mul(self, self)))))
        return s.mul(s.mul(0.5, self), s.add(1.0, s.tanh(inner)))
    if approximate != "none":
        raise RuntimeError(f"approximate argument must be either none or tanh, but got {approximate}")
    return s.mul(self, s.normal_cdf(self))


@pointwise(
    "silu(Tensor self) -> Tensor",
    variants="nn",
    promote="float",
)
def silu(s, self):
    return s.div(self, s.add(1.0, s.exp(s.neg(self))))


@pointwise("silu_backward(Tensor grad_output, Tensor self) -> Tensor", variants="", promote="float", inplace=False)
def silu_backward(s, grad_output, self):
    sigma = s.sigmoid(self)
    return s.mul(s.mul(grad_output, sigma), s.add(1.0, s.mul(self, s.sub(1.0, sigma))))


silu.derivative(self=lambda ct, self: silu_backward(ct, self))


@pointwise(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", variants="nn", operands=("self",), refuse=INTEGERS
)
def leaky_relu(s, self, negative_slope):
    return s.where(s.gt(self, 0), self, s.mul(self, negative_slope))


@pointwise(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
    variants="",
    operands=("grad_output", "self"),
    layout=("self", "grad_output"),
    inplace=False,
)
def leaky_relu_backward(s, grad_output, self, negative_slope, self_is_result):
    return s.where(s.gt(self, 0), grad_output, s.mul(grad_output, negative_slope))


leaky_relu.derivative(self=lambda ct, self, negative_slope: leaky_relu_backward(ct, self, negative_slope, False))


@pointwise(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    refuse=INTEGERS,
    variants="nn",
    promote="float",
    operands=("self",),
    out_rules="exact",
)
def softplus(s, self, beta, threshold):
    scaled = s.mul(self, float(beta))
    return s.where(s.gt(scaled, threshold), self, s.div(s.log1p(s.exp(scaled)), float(beta)))


@pointwise(
    "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
    variants="",
    promote="float",
    operands=("grad_output", "self"),
    inplace=False,
)
def softplus_backward(s, grad_output, self, beta, threshold):
    scaled = s.mul(self, float(beta))
    e = s.exp(scaled)
    return s.where(s.gt(scaled, threshold), grad_output, s.div(s.mul(grad_output, e), s.add(e, 1.0)))


softplus.derivative(self=lambda ct, self, beta, threshold: softplus_backward(ct, self, beta, threshold))


@pointwise(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    refuse=INTEGERS,
    variants="nn",
    promote="float",
    operands=("self",),
)
def elu(s, self, alpha, scale, input_scale):
    return s.where(s.gt(self, 0), s.mul(self, scale), s.mul(s.expm1(s.mul(self, input_scale)), alpha * scale))


@pointwise(
    "log_sigmoid(Tensor self) -> Tensor", variants="nn", promote="float", layout=(), inplace=False, out_rules="exact"
)
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


elu.override("rows", lambda h, x, alpha, scale, input_scale: h.exponential_units(x, scale, alpha * scale, input_scale))
elu.derivative(
    self=lambda ct, self, alpha, scale, input_scale: elu_backward(ct, alpha, scale, input_scale, False, self)
)


def _limits(args):
    if args[0].dtype.category == 0:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if args[0].dtype.name == "uint8" and (args[1] < 0 or args[2] < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return "keep"


@pointwise(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    variants="nn",
    promote=_limits,
    operands=("self", "min_val", "max_val"),
    layout="self",
    tags=("pointwise", "numbers_as_elements"),
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


SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@pointwise("celu(Tensor self, Scalar alpha=1.0) -> Tensor", variants="nn function", promote="float", operands=("self",))
def celu(s, self, alpha):
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return s.where(s.gt(self, 0), self, s.mul(s.expm1(s.mul(self, 1 / alpha)), float(alpha)))


celu.override("rows", lambda h, x, alpha: h.exponential_units(x, 1.0, float(alpha), alpha and 1 / alpha))
celu.derivative(self=lambda ct, self, alpha: aten.elu_backward.default(ct, alpha, 1.0, 1 / alpha, False, self))


@pointwise("selu(Tensor self) -> Tensor", variants="nn function", promote="float")
def selu(s, self):
    return s.where(s.gt(self, 0), s.mul(self, SELU_SCALE), s.mul(s.expm1(self), SELU_ALPHA * SELU_SCALE))


selu.override("rows", lambda h, x: h.exponential_units(x, SELU_SCALE, SELU_ALPHA * SELU_SCALE, 1.0))
selu.derivative(self=lambda ct, self: aten.elu_backward.default(ct, SELU_ALPHA, SELU_SCALE, 1.0, False, self))


@pointwise(
    "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    refuse=(*INTEGERS, *COMPLEX),
    variants="nn function method",
    operands=("self",),
    inplace=False,
    out_rules="exact",
    tags=("pointwise", "numbers_as_elements", "rounds_operands"),
)
def hardshrink(s, self, lambd):
    return s.where(s.le(s.abs(self), lambd), 0.0, self)


def _shrinks_by(args):
    dtype, lambd = args[0].dtype, args[1]
    if dtype.is_floating_point and not 0 <= lambd <= finfo(dtype).max:
        raise RuntimeError(
            f"lambda must be in range [0, {finfo(dtype).max:g}] for input dtype {dtype.scalar_type}, but found {float(lambd):g}"
        )
    return "default"


@pointwise(
    "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    promote=_shrinks_by,
    refuse=(*INTEGERS, *COMPLEX),
    variants="nn",
    operands=("self",),
    inplace=False,
    out_rules="exact",
)
def softshrink(s, self, lambd):
    return s.where(
        s.gt(self, lambd),
        s.sub(self, lambd),
        s.where(s.lt(self, -lambd), s.add(self, lambd), s.where(s.le(s.abs(self), lambd), s.mul(self, 0.0), self)),
    )


@pointwise(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    variants="function",
    operands=("self",),
    refuse=("bool",),
    tags=("pointwise", "numbers_as_elements"),
)
def threshold(s, self, threshold, value):
    return s.where(s.le(self, threshold), value, self)


@pointwise("_prelu_kernel(Tensor self, Tensor weight) -> Tensor", variants="", layout="self")
def _prelu_kernel(s, self, weight):
    return s.where(s.gt(self, 0.0), self, s.mul(weight, self))


@composite("prelu(Tensor self, Tensor weight) -> Tensor")
def prelu(self, weight):
    """The slope of negative values is learnt, one for all or one for each channel. He et al., arXiv:1502.01852."""
    if weight.dtype is not self.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {self.dtype.scalar_type} and {weight.dtype.scalar_type}"
        )
    if weight.numel() != 1:
        if self.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = self.shape[1] if self.ndim > 1 else 1
        if weight.ndim > 1 and weight.numel() == channels:
            raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
        if weight.numel() != channels:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and channel size = {channels}."
            )
        weight = aten.reshape.default(weight, [1, -1, *[1] * (self.ndim - 2)] if self.ndim > 1 else [-1])
    else:
        weight = aten.reshape.default(weight, [1] * self.ndim)
    return aten._prelu_kernel.default(self, weight)


@composite("glu(Tensor self, int dim=-1) -> Tensor", refuse=COMPLEX, variants="nn")
def glu(self, dim):
    """Dauphin et al., arXiv:1612.08083: one half, gated by the other."""
    if self.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    if self.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim % self.ndim} is size {self.shape[dim]}")
    half = self.shape[dim] // 2
    a, b = aten.narrow.default(self, dim, 0, half), aten.narrow.default(self, dim, half, half)
    return aten.mul.Tensor(a, aten.sigmoid.default(b))


@composite(
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
    refuse=INTEGERS,
    variants="function",
)
def rrelu(self, lower, upper, training, generator):
    for bound in (lower, upper):
        dtypes.check_number(bound, dtypes.float64)
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    self = aten.contiguous.default(self)
    if not training:
        return aten.leaky_relu.default(self, (lower + upper) / 2)
    # One draw in double precision for each element that isn't positive, in order.
    below = aten.le.Scalar(self, 0)
    count = aten.sum.default(below).item()
    draws = aten.uniform_.default(
        aten.empty.memory_format([count], dtype=float64, device=self.device), lower, upper, generator=generator
    )
    slopes = aten.masked_scatter.default(
        aten.ones_like.default(self), below, aten._to_copy.default(draws, dtype=self.dtype)
    )
    return aten.mul.Tensor(self, slopes)
