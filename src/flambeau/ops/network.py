"""What neural networks use beside the transformer's operators: further activations, normalisations, losses and pooling."""

from __future__ import annotations

import math

from ..base.dtypes import finfo
from ..core.declare import composite, pointwise
from ..core.operator import namespace

aten = namespace("aten")

# ---- activations -----------------------------------------------------------------------------------------------------------


@pointwise(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    variants="nn",
    promote="float",
    operands=("self",),
)
def elu(s, self, alpha, scale, input_scale):
    return s.where(s.gt(self, 0), s.mul(self, scale), s.mul(s.expm1(s.mul(self, input_scale)), alpha * scale))


@pointwise("log_sigmoid(Tensor self) -> Tensor", variants="nn", promote="float", inplace=False)
def log_sigmoid(s, self):
    return s.sub(s.minimum(self, 0.0), s.log1p(s.exp(s.neg(s.abs(self)))))


@pointwise("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", variants="nn", operands=("self",))
def hardtanh(s, self, min_val, max_val):
    return s.where(s.lt(self, min_val), min_val, s.where(s.gt(self, max_val), max_val, self))


@pointwise("hardsigmoid(Tensor self) -> Tensor", variants="nn", promote="float")
def hardsigmoid(s, self):
    return s.where(s.le(self, -3.0), 0.0, s.where(s.ge(self, 3.0), 1.0, s.div(s.add(self, 3.0), 6.0)))


@pointwise("hardswish(Tensor self) -> Tensor", variants="nn", promote="float")
def hardswish(s, self):
    return s.where(s.le(self, -3.0), 0.0, s.where(s.ge(self, 3.0), self, s.div(s.mul(self, s.add(self, 3.0)), 6.0)))


@pointwise("mish(Tensor self) -> Tensor", variants="nn", promote="float")
def mish(s, self):
    """x tanh(softplus(x)). Misra, arXiv:1908.08681."""
    softplus = s.where(s.gt(self, 20.0), self, s.log1p(s.exp(self)))
    return s.mul(self, s.tanh(softplus))


# ---- normalisation ---------------------------------------------------------------------------------------------------------


@composite(
    "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    variants="function",
)
def rms_norm(input, normalized_shape, weight, eps):
    n = len(normalized_shape)
    if n == 0 or list(input.shape[-n:]) != list(normalized_shape):
        want = "*, " + ", ".join(map(str, normalized_shape))
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape [{want}], but got input of size{list(input.shape)}"
        )
    eps = finfo(input.dtype).eps if eps is None else eps
    mean = aten.mean.dim(aten.mul.Tensor(input, input), list(range(input.ndim - n, input.ndim)), True)
    out = aten.mul.Tensor(input, aten.rsqrt.default(aten.add.Tensor(mean, eps)))
    return out if weight is None else aten.mul.Tensor(out, weight)


def _per_channel(t, ndim):
    """(C,) -> (1, C, 1, ...)."""
    return aten.reshape.default(t, [1, -1, *[1] * (ndim - 2)])


def _affine(out, weight, bias):
    if weight is not None:
        out = aten.mul.Tensor(out, _per_channel(weight, out.ndim))
    return out if bias is None else aten.add.Tensor(out, _per_channel(bias, out.ndim))


@composite(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
    variants="function",
)
def group_norm(input, num_groups, weight, bias, eps, cudnn_enabled):
    """Wu & He, arXiv:1803.08494."""
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    n, c = input.shape[:2]
    if c % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(input.shape)} and "
            f"num_groups={num_groups}"
        )
    groups = aten.reshape.default(input, [n, num_groups, -1])
    out = aten.native_layer_norm.default(groups, [groups.shape[-1]], None, None, eps)[0]
    return _affine(aten.reshape.default(out, list(input.shape)), weight, bias)


@composite(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, "
    "float eps, bool cudnn_enabled) -> Tensor",
    variants="function",
)
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """Ioffe & Szegedy, arXiv:1502.03167. While training, the running statistics are moved by ``momentum`` (the variance unbiased)."""
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    for name, t in (("weight", weight), ("bias", bias), ("running_mean", running_mean), ("running_var", running_var)):
        if t is not None and t.shape[0] != input.shape[1]:
            raise RuntimeError(f"{name} should contain {input.shape[1]} elements not {t.shape[0]}")
    if training:
        dims = [0, *range(2, input.ndim)]
        n = math.prod(input.shape[d] for d in dims)
        mean = aten.mean.dim(input, dims, True)
        centred = aten.sub.Tensor(input, mean)
        var = aten.mean.dim(aten.mul.Tensor(centred, centred), dims, True)
        if running_mean is not None:
            flat = aten.reshape.default(aten.detach.default(mean), [-1])
            aten.copy_.default(running_mean, aten.lerp.Scalar(running_mean, flat, momentum))
        if running_var is not None:
            flat = aten.mul.Tensor(aten.reshape.default(aten.detach.default(var), [-1]), n / max(n - 1, 1))
            aten.copy_.default(running_var, aten.lerp.Scalar(running_var, flat, momentum))
    else:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
        centred = aten.sub.Tensor(input, _per_channel(running_mean, input.ndim))
        var = _per_channel(running_var, input.ndim)
    return _affine(aten.mul.Tensor(centred, aten.rsqrt.default(aten.add.Tensor(var, eps))), weight, bias)


# ---- losses and similarity -------------------------------------------------------------------------------------------------


def _reduced(loss, reduction):
    return loss if reduction == 0 else aten.mean.default(loss) if reduction == 1 else aten.sum.default(loss)


@composite("smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor", variants="")
def smooth_l1_loss(self, target, reduction, beta):
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    z = aten.abs.default(aten.sub.Tensor(self, target))
    if beta == 0:
        return _reduced(z, reduction)
    small = aten.div.Tensor(aten.mul.Tensor(aten.mul.Tensor(z, z), 0.5), beta)
    return _reduced(aten.where.self(aten.lt.Scalar(z, beta), small, aten.sub.Tensor(z, 0.5 * beta)), reduction)


@composite("huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor", variants="")
def huber_loss(self, target, reduction, delta):
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    z = aten.abs.default(aten.sub.Tensor(self, target))
    small = aten.mul.Tensor(aten.mul.Tensor(z, z), 0.5)
    return _reduced(
        aten.where.self(aten.le.Scalar(z, delta), small, aten.mul.Tensor(aten.sub.Tensor(z, 0.5 * delta), delta)),
        reduction,
    )


@composite(
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


@composite(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor",
    variants="function",
)
def binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction):
    log_p = aten.log_sigmoid.default(self)
    negative = aten.rsub.Scalar(target, 1)
    if pos_weight is not None:
        scale = aten.add.Tensor(aten.mul.Tensor(aten.sub.Tensor(pos_weight, 1), target), 1)
        log_p = aten.mul.Tensor(scale, log_p)
    loss = aten.sub.Tensor(aten.mul.Tensor(negative, self), log_p)
    return _reduced(loss if weight is None else aten.mul.Tensor(loss, weight), reduction)


@composite("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", variants="function")
def cosine_similarity(x1, x2, dim, eps):
    def length(x):
        return aten.clamp_min.default(aten.sqrt.default(aten.sum.dim_IntList(aten.mul.Tensor(x, x), [dim], True)), eps)

    return aten.sum.dim_IntList(
        aten.mul.Tensor(aten.div.Tensor(x1, length(x1)), aten.div.Tensor(x2, length(x2))), [dim]
    )


@composite("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", variants="function")
def bilinear(input1, input2, weight, bias):
    """x1^T A x2 for each output: one matrix product over the pairs of features."""
    if input1.shape[-1] != weight.shape[1] or input2.shape[-1] != weight.shape[2]:
        raise RuntimeError(
            f"bilinear(): input sizes {input1.shape[-1]} and {input2.shape[-1]} do not match weight {list(weight.shape)}"
        )
    pairs = aten.mul.Tensor(aten.unsqueeze.default(input1, -1), aten.unsqueeze.default(input2, -2))
    flat = aten.reshape.default(pairs, [*input1.shape[:-1], -1])
    return aten.linear.default(flat, aten.reshape.default(weight, [weight.shape[0], -1]), bias)


# ---- pooling ---------------------------------------------------------------------------------------------------------------


def _pair(value):
    value = list(value)
    return value * 2 if len(value) == 1 else value


def _windows(self, kernel, stride, padding, fill, name):
    """(..., H', W', kh * kw): the windows of a 2-d pooling."""
    if self.ndim not in (3, 4):
        raise RuntimeError(f"{name}: Expected 3D or 4D input, but got {list(self.shape)}")
    (kh, kw), (sh, sw), (ph, pw) = kernel, stride, padding
    if ph > kh // 2 or pw > kw // 2:
        raise RuntimeError(
            f"pad should be at most half of effective kernel size, but got pad={max(ph, pw)}, kernel_size={max(kh, kw)}"
        )
    for amount, dim in ((ph, -2), (pw, -1)):
        if amount:
            shape = list(self.shape)
            shape[dim] = amount
            edge = aten.full.default(shape, fill, dtype=self.dtype, device=self.device)
            self = aten.cat.default([edge, self, edge], dim)
    out = aten.unfold.default(aten.unfold.default(self, self.ndim - 2, kh, sh), self.ndim - 1, kw, sw)
    return aten.reshape.default(out, [*out.shape[:-2], kh * kw])


@composite(
    "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
    variants="function",
)
def max_pool2d(self, kernel_size, stride, padding, dilation, ceil_mode):
    if ceil_mode or any(d != 1 for d in dilation):
        raise NotImplementedError("max_pool2d: ceil_mode and dilation are not built yet")
    kernel = _pair(kernel_size)
    windows = _windows(self, kernel, _pair(stride or kernel), _pair(padding), -math.inf, "max_pool2d")
    return aten.max.dim(windows, -1)[0]


@composite(
    "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, "
    "int? divisor_override=None) -> Tensor",
    variants="nn",
)
def avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    if ceil_mode or not count_include_pad:
        raise NotImplementedError("avg_pool2d: ceil_mode and count_include_pad=False are not built yet")
    kernel = _pair(kernel_size)
    total = aten.sum.dim_IntList(
        _windows(self, kernel, _pair(stride or kernel), _pair(padding), 0.0, "avg_pool2d"), [-1]
    )
    return aten.div.Tensor(total, divisor_override or kernel[0] * kernel[1])


def _means(size, parts, like):
    """(parts, size): row i averages the positions floor(i * size / parts) to ceil((i + 1) * size / parts)."""
    i = aten.unsqueeze.default(aten.arange.default(parts, device=like.device), 1)
    start = aten.floor_divide.default(aten.mul.Tensor(i, size), parts)
    end = aten.floor_divide.default(aten.add.Tensor(aten.mul.Tensor(aten.add.Tensor(i, 1), size), parts - 1), parts)
    j = aten.arange.default(size, device=like.device)
    inside = aten.logical_and.default(aten.ge.Tensor(j, start), aten.lt.Tensor(j, end))
    return aten.div.Tensor(aten._to_copy.default(inside, dtype=like.dtype), aten.sub.Tensor(end, start))


@composite("adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", variants="nn")
def adaptive_avg_pool2d(self, output_size):
    """A product with an averaging matrix on either side: windows may overlap and differ in size."""
    h, w = self.shape[-2:]
    rows, columns = _pair(output_size)
    out = aten.matmul.default(_means(h, rows, self), self)
    return aten.matmul.default(out, aten.transpose.int(_means(w, columns, self), 0, 1))
