"""Linear layers and convolutions on quantised tensors: exact sums of products of codes, rounded once to the codes of the result.

Weights are qint8, quantised as a whole or by output channel; the input is quint8 or qint8, quantised as a whole. ``relu`` keeps what is negative
at 0. The dynamic layer takes floats, chooses a scale for them at each call, and gives floats.
"""

from __future__ import annotations

import math

import numpy as np

from ... import _C
from ...base import affine, dtypes
from ...base.shapes import spread
from ...core.operator import namespace
from ...core.quantized import Affine, is_quantized, make, parts, whole
from .arithmetic import operator

aten = namespace("aten")
# Sums of so many products of bytes are exact in float32.
EXACT = (1 << 24) // (255 * 128)


def _weight(name: str, weight, output_axis: int = 0) -> Affine:
    """The record of a weight whose dimension ``output_axis`` is the output channels. RuntimeError unless it is qint8, quantised as a whole or by
    that."""
    p = parts(weight) if is_quantized(weight) else None
    if p is None or weight._dtype is not dtypes.qint8:
        raise RuntimeError(f"{name}: expected a weight of qint8, got {weight._dtype}")
    if p.axis not in (None, output_axis):
        raise RuntimeError(
            f"{name}: expected a weight quantised as a whole or by its dimension {output_axis}, the output channels, got axis {p.axis}"
        )
    return p


def _scales(p: Affine):
    """(scale, zero point) of a weight, each a number or an array of its output channels."""
    return (p.scale, p.zero_point) if p.axis is None else (p.scale._array.astype(np.float32), p.zero_point._array)


def _finished(sums, x: Affine, w: Affine, bias, scale: float, zero_point: int, relu: bool):
    """Codes of the result, from sums of products of codes (rows, output channels)."""
    each = np.float32(x.scale) * np.asarray(_scales(w)[0], np.float32)
    if sums.dtype == np.int32 and x.codes._dtype.itemsize == 1:
        return _codes_of_sums(sums, x, each, bias, scale, zero_point, relu)
    sums = sums.astype(np.float32)
    if bias is not None:
        sums += bias._array.astype(np.float32) / each
    made = affine.requantized(sums, each / np.float32(scale), zero_point, x.codes._dtype.np)
    return np.maximum(made, np.array(zero_point, made.dtype)) if relu else made


def _codes_of_sums(sums, x: Affine, each, bias, scale: float, zero_point: int, relu: bool):
    """The same of int32 sums (rows, output channels, ...), of which one stands for ``each``."""
    shift = None if bias is None else bias._array.astype(np.float32) / each
    least = zero_point if relu else None
    return affine.requantized_sums(sums, each / np.float32(scale), shift, zero_point, x.codes._dtype.np, least)


def _finished_image(sums, x: Affine, w: Affine, bias, scale: float, zero_point: int, relu: bool):
    """The quantised result, from sums (N, output channels, *sizes)."""
    if sums.dtype == np.int32 and x.codes._dtype.itemsize == 1:
        each = np.float32(x.scale) * np.asarray(_scales(w)[0], np.float32)
        made = _codes_of_sums(sums, x, each, bias, scale, zero_point, relu)
        return make(Affine(_C.from_array(made), float(scale), int(zero_point)))
    made = _finished(np.moveaxis(sums, 1, -1), x, w, bias, scale, zero_point, relu)
    return make(Affine(_C.from_array(_channels_second(made)), float(scale), int(zero_point)))


def _channels_second(image) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(image, -1, 1))


def _as_floats(sums, scale: float, w: Affine, bias) -> np.ndarray:
    """Floats that sums of products of codes (rows, output channels) stand for, with the bias."""
    made = sums * (np.float32(scale) * np.asarray(_scales(w)[0], np.float32))
    if bias is not None:
        made += bias._array
    return made


@operator("_linear(Tensor x, Tensor weight, Tensor? bias, float scale, int zero_point, bool relu) -> Tensor")
def linear(x, weight, bias, scale, zero_point, relu):
    """x (..., K) and weight (N, K): (..., N)."""
    p, w = whole("quantized::linear", x), _weight("quantized::linear", weight)
    sums = _products(p.codes._array, w, p.zero_point)
    made = _finished(sums, p, w, bias, scale, zero_point, relu)
    shape = (*x._shape[:-1], weight._shape[0])
    return make(Affine(_C.from_array(made.reshape(shape)), float(scale), int(zero_point)))


def _products(codes, w: Affine, zero_point):
    if codes.ndim == 0 or codes.shape[-1] != w.codes._shape[1]:
        raise RuntimeError(
            f"quantized::linear: the input's last size must be that of the weight, got {codes.shape} and {tuple(w.codes._shape)}"
        )
    rows = codes.reshape(math.prod(codes.shape[:-1]), codes.shape[-1])
    return affine.dot(rows, w.codes._array, zero_point, _scales(w)[1])


@operator("_linear_dynamic(Tensor x, Tensor weight, Tensor? bias, bool reduce_range, bool relu) -> Tensor")
def linear_dynamic(x, weight, bias, reduce_range, relu):
    """x (..., K) of floats: (..., N) of floats. A scale and a zero point are chosen for the whole of x."""
    w = _weight("quantized::linear_dynamic", weight)
    scale, zero_point = affine.chosen(x._array, np.uint8, reduce_range)
    sums = _products(affine.codes(x._array, scale, zero_point, np.uint8), w, zero_point)
    made = _as_floats(sums, scale, w, bias)
    made = np.maximum(made, 0) if relu else made
    return _C.from_array(made.reshape(*x._shape[:-1], weight._shape[0]).astype(np.float32, copy=False))


@operator(
    "_convolution(Tensor x, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups, float scale, "
    "int zero_point, bool relu) -> Tensor"
)
def convolution(x, weight, bias, stride, padding, dilation, groups, scale, zero_point, relu):
    """x (N, C, *sizes) and weight (O, C / groups, *kernel): (N, O, *sizes)."""
    p, w = whole("quantized::conv", x), _weight("quantized::conv", weight)
    n = weight._ndim - 2
    stride, padding, dilation = (spread(v, n) for v in (stride, padding, dilation))
    _check_image("quantized::conv", x, n + 2, weight._shape[1] * groups)
    sums = _sums(p, w, stride, padding, dilation, groups)
    return _finished_image(sums, p, w, bias, scale, zero_point, relu)


@operator(
    "_convolution_transpose(Tensor x, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] output_padding, int[] dilation, "
    "int groups, float scale, int zero_point) -> Tensor"
)
def convolution_transpose(x, weight, bias, stride, padding, output_padding, dilation, groups, scale, zero_point):
    """x (N, C, *sizes) and weight (C, O / groups, *kernel): (N, O, *sizes)."""
    name = "quantized::conv_transpose"
    p, w = whole(name, x), _weight(name, weight, 1)
    sums = _transposed_sums(name, p, w, stride, padding, output_padding, dilation, groups)
    return _finished_image(sums, p, _by_output(w, groups), bias, scale, zero_point, False)


@operator(
    "_convolution_dynamic(Tensor x, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] output_padding, int[] dilation, "
    "int groups, bool transposed, bool reduce_range) -> Tensor"
)
def convolution_dynamic(x, weight, bias, stride, padding, output_padding, dilation, groups, transposed, reduce_range):
    """x of floats: floats. A scale and a zero point are chosen for the whole of x."""
    name = "quantized::conv_dynamic"
    if x._dtype is not dtypes.float32:
        raise RuntimeError(f"{name}: expected an input of float32, got {x._dtype}")
    scale, zero_point = affine.chosen(x._array, np.uint8, reduce_range)
    p = Affine(_C.from_array(affine.codes(x._array, scale, zero_point, np.uint8)), scale, zero_point)
    if transposed:
        w = _weight(name, weight, 1)
        sums = _transposed_sums(name, p, w, stride, padding, output_padding, dilation, groups)
        w = _by_output(w, groups)
    else:
        w = _weight(name, weight)
        stride, padding, dilation = (spread(v, weight._ndim - 2) for v in (stride, padding, dilation))
        _check_image(name, p.codes, weight._ndim, weight._shape[1] * groups)
        sums = _sums(p, w, stride, padding, dilation, groups)
    return _C.from_array(_channels_second(_as_floats(np.moveaxis(sums, 1, -1).astype(np.float32), scale, w, bias)))


def _check_image(name: str, x, ndim: int, channels: int) -> None:
    if x._ndim != ndim or x._shape[1] != channels:
        raise RuntimeError(
            f"{name}: expected an input of {channels} channels and {ndim} dimensions, got {tuple(x._shape)}"
        )


def _by_output(w: Affine, groups: int) -> Affine:
    """The weight of a transposed convolution with a scale for each channel of the result: groups share theirs."""
    if w.axis is None:
        return w
    scale, zero = (_C.from_array(np.tile(v._array, groups)) for v in (w.scale, w.zero_point))
    return Affine(w.codes, scale, zero, w.axis)


def _transposed_sums(name: str, p: Affine, w: Affine, stride, padding, output_padding, dilation, groups):
    """Whole numbers in a float type in which the sums are exact."""
    n = w.codes._ndim - 2
    _check_image(name, p.codes, n + 2, w.codes._shape[0])
    stride, padding, output_padding, dilation = (spread(v, n) for v in (stride, padding, output_padding, dilation))
    reach = w.codes._shape[0] // groups * math.prod(w.codes._shape[2:])
    kind = np.float32 if reach <= EXACT else np.float64
    zero = w.parameters[1]
    x = _C.computed(p.codes._array.astype(kind) - kind(p.zero_point))
    weight = _C.computed(w.codes._array.astype(kind) - np.asarray(zero, kind))
    return aten.convolution.default(x, weight, None, stride, padding, dilation, True, output_padding, groups)._array


def _sums(p: Affine, w: Affine, stride, padding, dilation, groups):
    """Sums of products of codes, exact."""
    return affine.convolved(
        p.codes._array, w.codes._array, p.zero_point, _scales(w)[1], stride, padding, dilation, groups
    )
