"""Functions on quantised tensors. What keeps the scale of its input takes none; the others take ``scale`` and ``zero_point`` of the result."""

from __future__ import annotations

import flambeau as torch
from flambeau.core.operator import namespace
from flambeau.nn import functional as F

__all__ = [
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool2d", "avg_pool3d", "celu", "clamp", "conv1d", "conv2d", "conv3d", "elu",
    "hardsigmoid", "hardswish", "hardtanh", "interpolate", "leaky_relu", "linear", "max_pool1d", "max_pool2d", "threshold", "upsample",
    "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

ops = namespace("quantized")


def _check(name: str, input) -> None:
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def _on_codes(name: str):
    """The function of ``nn.functional`` for quantised input alone."""
    plain = getattr(F, name)

    def function(input, *args, **kwargs):
        _check(name, input)
        return plain(input, *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``nn.functional.{name}`` of a quantised tensor, quantised as it is. ValueError for any other."
    return function


adaptive_avg_pool2d, adaptive_avg_pool3d, avg_pool2d, avg_pool3d = map(
    _on_codes, ("adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool2d", "avg_pool3d")
)
hardtanh, interpolate, max_pool2d, threshold, upsample, upsample_bilinear, upsample_nearest = map(
    _on_codes,
    ("hardtanh", "interpolate", "max_pool2d", "threshold", "upsample", "upsample_bilinear", "upsample_nearest"),
)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """``nn.functional.max_pool1d`` of a quantised tensor. NotImplementedError with ``return_indices``."""
    _check("max_pool1d", input)
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    stride = kernel_size if stride is None else stride
    pairs = [[1, v] if isinstance(v, int) else [1, *v] for v in (kernel_size, stride)]
    padding = [0, padding] if isinstance(padding, int) else [0, *padding]
    dilation = [1, dilation] if isinstance(dilation, int) else [1, *dilation]
    return F.max_pool2d(input.unsqueeze(-2), *pairs, padding, dilation, ceil_mode).squeeze(-2)


def clamp(input, min_, max_):
    """``torch.clamp`` of a quantised tensor."""
    _check("clamp", input)
    return torch.clamp(input, min_, max_)


def linear(input, weight, bias=None, scale=None, zero_point=None):
    """input (..., K) of quint8 or qint8, weight (N, K) of qint8, bias (N) of floats: (..., N).

    ``scale`` and ``zero_point``: the input's unless given."""
    scale = input.q_scale() if scale is None else scale
    zero_point = input.q_zero_point() if zero_point is None else zero_point
    return ops._linear.default(input, weight, bias, scale, zero_point, False)


def _conv(n: int):
    def function(
        input,
        weight,
        bias,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        padding_mode="zeros",
        scale=1.0,
        zero_point=0,
        dtype=torch.quint8,
    ):
        if padding_mode != "zeros":
            raise NotImplementedError("Only zero-padding is supported!")
        if input.dtype != dtype:
            raise NotImplementedError(f"Only {dtype} is supported for activation tensor, got {input.dtype}")
        if weight.dtype != torch.qint8:
            raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
        if input.dim() != n + 2:
            raise ValueError(f"Input shape must be `(N, C, {', '.join('DHW'[3 - n :])})`!")
        sizes = [[v] * n if isinstance(v, int) else list(v) for v in (stride, padding, dilation)]
        return ops._convolution.default(input, weight, bias, *sizes, groups, scale, zero_point, False)

    function.__name__ = function.__qualname__ = f"conv{n}d"
    function.__doc__ = (
        "Convolution of a quantised input (N, C, *sizes) with a weight (O, C / groups, *kernel) of qint8 and a bias (O) of floats; "
        "``scale`` and ``zero_point`` are those of the result."
    )
    return function


conv1d, conv2d, conv3d = (_conv(n) for n in (1, 2, 3))


def celu(input, scale, zero_point, alpha=1.0):
    """CELU, quantised by ``scale`` and ``zero_point``."""
    _check("celu", input)
    return ops.celu.default(input, scale, zero_point, alpha)


def elu(input, scale, zero_point, alpha=1.0):
    """ELU, quantised by ``scale`` and ``zero_point``."""
    _check("elu", input)
    return ops.elu.default(input, scale, zero_point, alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False, scale=None, zero_point=None):
    """Leaky ReLU, quantised by ``scale`` and ``zero_point``, or as the input is."""
    if scale is not None and zero_point is not None:
        return ops.leaky_relu.default(input, negative_slope, inplace, scale, zero_point)
    _check("leaky_relu", input)
    return F.leaky_relu(input, negative_slope, inplace)


def hardswish(input, scale, zero_point):
    """Hardswish, quantised by ``scale`` and ``zero_point``."""
    _check("hardswish", input)
    return ops.hardswish.default(input, scale, zero_point)


def hardsigmoid(input, inplace=False):
    """Hardsigmoid, of scale 1 / 256."""
    _check("hardsigmoid", input)
    return F.hardsigmoid(input, inplace)
