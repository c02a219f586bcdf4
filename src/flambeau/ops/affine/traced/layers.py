"""Layers on codes in a trace: a kernel for the sums of products (../sums.py), plain operators for the rest. See ../layers.py."""

from __future__ import annotations

from ....base import dtypes
from ....core.operator import namespace
from ..tracing import quantised_of, uncaptured_codes
from . import numbers
from .elements import whole
from .record import is_codes
from .rules import operator

aten, quantized = namespace("aten"), namespace("quantized")
float32, float64, int64 = dtypes.float32, dtypes.float64, dtypes.int64


def _spread(value, n: int):
    """A size for each of ``n`` dimensions."""
    if isinstance(value, int):
        return [value] * n
    return list(value) * n if len(value) == 1 else list(value)


def _input(name: str, x):
    if whole(name, x)._codes.dtype is dtypes.int32:
        uncaptured_codes(f"{name} of codes of 32 bits")
    return x


def _weight(name: str, weight, axis: int = 0):
    if not is_codes(weight) or weight.dtype is not dtypes.qint8:
        raise RuntimeError(f"{name}: expected a weight of qint8, got {weight.dtype}")
    if weight._axis is not None and weight._axis != axis:
        raise RuntimeError(
            f"{name}: expected a weight quantised as a whole or by its dimension {axis}, got axis {weight._axis}"
        )
    return weight


def _scale(w):
    """The scale of a weight in float32: of no dimension, or one an output channel."""
    return numbers.number(w._scale, float32) if w._axis is None else w._scale.to(float32)


def _zero(t):
    """A zero point as kernels take it."""
    return numbers.number(t._zero_point, int64) if t._axis is None else t._zero_point.to(int64)


def _behind(x, n: int):
    """Entries of channels, to broadcast with (N, channels, *sizes of ``n`` dimensions)."""
    return x.reshape([-1] + [1] * n) if x.dim() and n else x


def _finished(sums, x, scales, bias, n: int, scale, zero_point, relu):
    """The result of a layer from its sums."""
    kind = x._codes.dtype
    each = _behind(numbers.number(x._scale, float32) * scales, n)
    sums = sums.to(float32)
    if bias is not None:
        sums = sums + _behind(bias.to(float32), n) / each
    made = numbers.requantised(sums, each / numbers.number(scale, float32), zero_point, kind)
    if relu:
        made = aten.maximum(made, numbers.number(zero_point, kind))
    return quantised_of(made, scale, zero_point)


# ---- linear ------------------------------------------------------------------------------------------------------------------


def _products(x, zero_point, w):
    if x.dim() == 0 or x.shape[-1] != w._codes.shape[1]:
        raise RuntimeError(
            f"quantized::linear: the input's last size must be that of the weight, got {tuple(x.shape)} and {tuple(w._codes.shape)}"
        )
    return quantized._code_products(x, w._codes, zero_point, _zero(w))


@operator("quantized::_linear")
def linear(x, weight, bias, scale, zero_point, relu):
    w = _weight("quantized::linear", weight)
    sums = _products(_input("quantized::linear", x)._codes, _zero(x), w)
    return _finished(sums, x, _scale(w), bias, 0, scale, zero_point, relu)


def _codes_of_floats(x, reduce_range):
    """(codes of uint8, scale in float32, zero point): chosen for the whole of ``x``."""
    x = x.detach()
    scale, zero_point = quantized._chosen_parameters(x, False, reduce_range)
    scale = scale.to(float32)
    codes = numbers.codes_of(x.to(float32), scale, zero_point.to(float32), dtypes.uint8, 0, 255)
    return codes, scale, zero_point


@operator("quantized::_linear_dynamic")
def linear_dynamic(x, weight, bias, reduce_range, relu):
    w = _weight("quantized::linear_dynamic", weight)
    codes, scale, zero_point = _codes_of_floats(x, reduce_range)
    made = _products(codes, zero_point, w).to(float64) * (scale * _scale(w)).to(float64)
    if bias is not None:
        made = made + bias.detach()
    return (aten.clamp_min(made, 0) if relu else made).to(float32)


# ---- convolutions ------------------------------------------------------------------------------------------------------------


def _check_image(name: str, x, ndim: int, channels: int):
    if x.dim() != ndim or x.shape[1] != channels:
        raise RuntimeError(
            f"{name}: expected an input of {channels} channels and {ndim} dimensions, got {tuple(x.shape)}"
        )


@operator("quantized::_convolution")
def convolution(x, weight, bias, stride, padding, dilation, groups, scale, zero_point, relu):
    w, n = _weight("quantized::conv", weight), weight.dim() - 2
    _check_image("quantized::conv", _input("quantized::conv", x), n + 2, weight.shape[1] * groups)
    sizes = [_spread(v, n) for v in (stride, padding, dilation)]
    sums = quantized._code_convolution(x._codes, w._codes, _zero(x), _zero(w), *sizes, groups)
    return _finished(sums, x, _scale(w), bias, n, scale, zero_point, relu)


def _by_output(scale, groups: int):
    """Groups of a transposed convolution share the scales of their channels."""
    return scale.repeat(groups) if scale.dim() else scale


def _transposed(name: str, codes, zero_point, w, stride, padding, output_padding, dilation, groups):
    n = w.dim() - 2
    _check_image(name, codes, n + 2, w.shape[0])
    sizes = [_spread(v, n) for v in (stride, padding, output_padding, dilation)]
    return quantized._code_convolution_transpose(codes, w._codes, zero_point, _zero(w), *sizes, groups)


@operator("quantized::_convolution_transpose")
def convolution_transpose(x, weight, bias, stride, padding, output_padding, dilation, groups, scale, zero_point):
    name = "quantized::conv_transpose"
    w = _weight(name, weight, 1)
    sums = _transposed(name, _input(name, x)._codes, _zero(x), w, stride, padding, output_padding, dilation, groups)
    return _finished(sums, x, _by_output(_scale(w), groups), bias, w.dim() - 2, scale, zero_point, False)


@operator("quantized::_convolution_dynamic")
def convolution_dynamic(x, weight, bias, stride, padding, output_padding, dilation, groups, transposed, reduce_range):
    name = "quantized::conv_dynamic"
    if x.dtype is not float32:
        raise RuntimeError(f"{name}: expected an input of float32, got {x.dtype}")
    w, n = _weight(name, weight, 1 if transposed else 0), weight.dim() - 2
    codes, scale, zero_point = _codes_of_floats(x, reduce_range)
    if transposed:
        sums = _transposed(name, codes, zero_point, w, stride, padding, output_padding, dilation, groups)
        scales = _by_output(_scale(w), groups)
    else:
        _check_image(name, x, n + 2, weight.shape[1] * groups)
        sizes = [_spread(v, n) for v in (stride, padding, dilation)]
        sums = quantized._code_convolution(codes, w._codes, zero_point, _zero(w), *sizes, groups)
        scales = _scale(w)
    made = sums.to(float32) * _behind(scale * scales, n)
    return made if bias is None else made + _behind(bias.detach(), n)
