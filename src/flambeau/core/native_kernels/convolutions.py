"""Convolutions."""

from __future__ import annotations

import math

from ...base import blas, dtypes, kernels
from ...base.expr import at_least
from ...base.kernels import Conv, Way
from ...base.memory_format import is_last
from ...base.result_spec import ResultSpec
from ...base.sizes import dense_strides, size, sizes
from .computing import FLOATS, single

__all__ = ["conv_bytes", "convolution"]


def convolution(h, what: Conv, a, b, bias, shape, val, how):
    """``what`` FORWARD: of (input, weight), INPUT and WEIGHT: the adjoints, of (output's cotangent, weight) and (that, input). ``shape``: of the
    result; ``how``: stride, padding, dilation, groups. See csrc/kernels/conv.c."""
    stride, padding, dilation, groups = how
    kind = single(val.dtype)
    n = len(shape) - 2
    if not 1 <= n <= 3:
        raise NotImplementedError(f"there is no convolution of {n} dimensions")
    if not blas.gemm_address(FLOATS[kind]):
        raise NotImplementedError("convolutions are made with a BLAS library, and this process has none")
    if any(not at_least(size(p), 0) for p in padding):
        raise NotImplementedError(f"the padding of a convolution may be negative: {list(padding)}")
    late = bias if what == Conv.INPUT else None  # a transposed convolution's is added to what is made
    bias = bias if what == Conv.FORWARD else None
    inputs = [x if x is None else h.image(h.as_dtype(x, kind)) for x in (a, b, bias)]
    numbers = {"direction": what, "f64": kind is dtypes.float64, "groups": groups, "way": Way.USUAL}
    for name, given, fill in (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)):
        numbers[name] = (*[fill] * (3 - n), *given)
    shape = sizes(shape)
    pixels = what != Conv.WEIGHT and kind is dtypes.float32 and _stays_last(inputs, shape, how)
    as_ruled = pixels or what == Conv.WEIGHT
    out = ResultSpec(shape, h.image_strides(shape, sizes(val.stride()), as_ruled), kind, val.device)
    flops = 2 * math.prod(inputs[0].shape) * math.prod(inputs[1].shape[1:])
    made = h.launch(kernels.convolution, inputs, [out], flops, by_planes=not as_ruled, **numbers)[0]
    if late is not None:
        made = h.biased(made, h.as_dtype(late, kind))
    return h.as_dtype(made, val.dtype)


def _stays_last(inputs, shape, how) -> bool:
    """Whether a convolution is best left in channels-last order, see csrc/kernels/conv_pixels.c: its images lie so, have enough channels for
    vectors of them, and neither Winograd's transforms nor a plain product makes it, which read and write either order."""
    image, weight = inputs[:2]
    stride, _, dilation, groups = how
    if not is_last(image.shape, image.strides) or any(type(n) is not int for n in (image.shape[1], *weight.shape)):
        return False
    taps = tuple(weight.shape[2:])
    unit = all(n == 1 for n in (*stride, *dilation))
    elsewhere = unit and (math.prod(taps) == 1 or (taps == (3, 3) and groups == 1))
    return not elsewhere and min(weight.shape[0] // groups, weight.shape[1], image.shape[1] // groups) >= 16


def conv_bytes(h, val, x, weight, zero_point, weight_zero_point, stride, padding, dilation, groups):
    """The exact sums of a convolution of codes (N, C, *sizes) with int8 ones of a weight, less their zero points: see csrc/kernels/conv_bytes.c."""
    if weight.dtype is not dtypes.int8:
        raise NotImplementedError(f"there is no convolution of codes with a weight of {weight.dtype}")
    n = len(val.shape) - 2
    parts = [h.realize(x), *map(h.contiguous, (weight, zero_point)), h.realize(weight_zero_point)]
    for i in (0, 1):
        p, fill = parts[i], 3 - n
        parts[i] = h.part(p, (*p.shape[:2], *[1] * fill, *p.shape[2:]), (*p.strides[:2], *[0] * fill, *p.strides[2:]))
    shape = sizes(val.shape)
    whole = (*shape[:2], *[1] * (3 - n), *shape[2:])
    out = ResultSpec(whole, dense_strides(whole), val.dtype, val.device)
    numbers = {"x_signed": x.dtype is dtypes.int8, "groups": groups}
    for name, given, fill in (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)):
        numbers[name] = (*[fill] * (3 - n), *given)
    flops = math.prod(shape) * math.prod(map(size, weight.shape[1:])) // 8
    made = h.launch(kernels.conv_bytes, parts, [out], flops, **numbers)[0]
    strides = dense_strides(shape)
    return h.in_memory(h.part(h.realize(made), shape, strides), val.dtype, strides, val.device)
