"""Normalization by layer, root mean square, group, batch and instance."""

from __future__ import annotations

import math

from ...base.dtypes import finfo, float32, float64, uint8
from ...base.shapes import same_shape
from ...core.declare import COMPLEX, INTEGERS, composite, explicit
from ...core.operator import namespace
from ...core.promotion import check_parameters
from ..reductions.basic import as_dtype, widened
from .batch_norm_statistics import check_vectors

aten = namespace("aten")


def check_affine(normalized_shape, weight, bias=None):
    """RuntimeError unless weight and bias of a norm have the shape that is normalised."""
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and not same_shape(t.shape, normalized_shape):
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(t.shape)} and normalized_shape = "
                f"{list(normalized_shape)}"
            )


@explicit(
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    refuse=COMPLEX,
    variants="function",
)
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """Ba et al., arXiv:1607.06450. Returns (output, mean, reciprocal standard deviation); variance by two passes."""
    if not len(normalized_shape):
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element"
        )
    if input.ndim < len(normalized_shape) or any(
        n != m for n, m in zip(normalized_shape, input.shape[input.ndim - len(normalized_shape) :])
    ):
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape [*, {', '.join(map(str, normalized_shape))}], but got "
            f"input of size{list(input.shape)}"
        )
    check_affine(normalized_shape, weight, bias)
    check_parameters(input, weight, bias)
    kind, input = input.dtype, aten.contiguous.default(widened(input))
    dims = list(range(input.ndim - len(normalized_shape), input.ndim))
    mean = aten.mean.dim(input, dims, True)
    centred = aten.sub.Tensor(input, mean)
    rstd = aten.rsqrt.default(aten.add.Tensor(aten.mean.dim(aten.mul.Tensor(centred, centred), dims, True), eps))
    out = aten.mul.Tensor(centred, rstd)
    if weight is not None:
        out = aten.mul.Tensor(out, weight)
    if bias is not None:
        out = aten.add.Tensor(out, bias)
    return as_dtype(kind, out), as_dtype(kind, mean), as_dtype(kind, rstd)


@native_layer_norm.override("rows")
def _layer_norm_rows(h, input, normalized_shape, weight, bias, eps):
    sizes = tuple(normalized_shape)
    given = [t for t in (weight, bias) if t is not None]
    if (
        not sizes
        or tuple(input.shape)[-len(sizes) :] != sizes
        or any(tuple(t.shape) != sizes or t.dtype is not input.dtype for t in given)
    ):
        raise NotImplementedError("the body says what is wrong")
    return h.layer_norm(input, len(sizes), weight, bias, eps)


@explicit(
    "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, "
    "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    refuse=COMPLEX,
)
def native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    kind, kind_weight = input.dtype, None if weight is None else weight.dtype
    input, grad_out, mean, rstd = (widened(t) for t in (input, grad_out, mean, rstd))
    input, grad_out = aten.contiguous.default(input), aten.contiguous.default(grad_out)
    lead = input.ndim - len(normalized_shape)
    inner, outer = list(range(lead, input.ndim)), list(range(lead))
    normed = aten.mul.Tensor(aten.sub.Tensor(input, mean), rstd)
    d_input = d_weight = d_bias = None
    if output_mask[0]:
        g = grad_out if weight is None else aten.mul.Tensor(grad_out, weight)
        a = aten.mean.dim(g, inner, True)
        b = aten.mean.dim(aten.mul.Tensor(g, normed), inner, True)
        d_input = aten.mul.Tensor(aten.sub.Tensor(aten.sub.Tensor(g, a), aten.mul.Tensor(normed, b)), rstd)
    if output_mask[1] and weight is not None:
        product = aten.mul.Tensor(grad_out, normed)
        d_weight = aten.sum.dim_IntList(product, outer) if outer else product
    if output_mask[2] and bias is not None:
        d_bias = aten.sum.dim_IntList(grad_out, outer) if outer else aten.clone.default(grad_out)
    kinds = (kind, kind_weight, None if bias is None else bias.dtype)
    return tuple(d if d is None else as_dtype(k, d) for d, k in zip((d_input, d_weight, d_bias), kinds))


def _layer_norm_vjp(ct0, input, normalized_shape, result1, result2, weight, bias, mask):
    return aten.native_layer_norm_backward.default(ct0, input, normalized_shape, result1, result2, weight, bias, mask)


native_layer_norm.derivative((0,), input__weight__bias=_layer_norm_vjp)


@native_layer_norm.override("parts")
def _normalises_only(input, normalized_shape, weight, *rest) -> bool:
    """Of groups: what follows reads the normalised input again in the backward, which is made again from the input."""
    return weight is None


def _differentiable_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    """The backward for a second derivative: mean and rstd as functions of ``input`` again, with the eps that the saved rstd tells."""
    dims = list(range(input.ndim - len(normalized_shape), input.ndim))
    mean = aten.mean.dim(input, dims, True)
    centred = aten.sub.Tensor(input, mean)
    variance = aten.mean.dim(aten.mul.Tensor(centred, centred), dims, True)
    eps = aten.sub.Tensor(aten.pow.Tensor_Scalar(aten.detach.default(rstd), -2), aten.detach.default(variance))
    rstd = aten.rsqrt.default(aten.add.Tensor(variance, eps))
    return native_layer_norm_backward.definition.fn(
        grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask
    )


native_layer_norm_backward.override("autograd", _differentiable_backward)


@composite(
    "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    refuse=COMPLEX,
    variants="function nn",
)
def layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable):
    n = len(normalized_shape)
    if n == 0 or list(input.shape[-n:]) != list(normalized_shape):
        want = "*, " + ", ".join(map(str, normalized_shape))
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape [{want}], but got input of size{list(input.shape)}"
        )
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and list(t.shape) != list(normalized_shape):
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(t.shape)} and "
                f"normalized_shape = {list(normalized_shape)}"
            )
    return aten.native_layer_norm.default(input, list(normalized_shape), weight, bias, eps)[0]


@composite(
    "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    refuse=INTEGERS,
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
    # Channels stay a dimension of their own: a channel's weight is read where it lies, not found by dividing places.
    kept = math.prod(input.shape[2:])
    groups = aten.reshape.default(aten.contiguous.default(widened(input)), [n, num_groups, c // num_groups, kept])
    out = aten.native_layer_norm.default(groups, list(groups.shape[2:]), None, None, eps)[0]
    each = [1, num_groups, c // num_groups, 1]
    if weight is not None:
        out = aten.mul.Tensor(out, aten.reshape.default(weight, each))
    if bias is not None:
        out = aten.add.Tensor(out, aten.reshape.default(bias, each))
    return as_dtype(input.dtype, aten._unsafe_view.default(out, list(input.shape)))


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
    weight, bias = check_vectors(input, weight, bias, running_mean, running_var)
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


@composite(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, "
    "float momentum, float eps, bool cudnn_enabled) -> Tensor",
    refuse=COMPLEX,
    variants="function",
)
def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """Each channel of each sample by its own statistics. Ulyanov et al., arXiv:1607.08022."""
    n, c = input.shape[:2]

    def tiled(t):
        return None if t is None else aten.repeat.default(t, [n])

    mean, var = tiled(running_mean), tiled(running_var)
    x = aten.reshape.default(input, [1, n * c, *input.shape[2:]])
    out = aten.batch_norm.default(
        x, tiled(weight), tiled(bias), mean, var, use_input_stats, momentum, eps, cudnn_enabled
    )
    if use_input_stats:
        for kept, moved in ((running_mean, mean), (running_var, var)):
            if kept is not None:
                aten.copy_.default(kept, aten.mean.dim(aten.reshape.default(moved, [n, c]), [0]))
    return aten.reshape.default(out, list(input.shape))
