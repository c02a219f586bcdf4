"""What functions of the library do with codes: quantising, reading back, and asking."""

from __future__ import annotations

from .... import _C
from ....base import dtypes
from ....base.memory_format import channels_last, channels_last_3d
from ....base.shape_checks import check
from ....core.operator import namespace
from ....core.quantized import CODES, PACKED, QUANTISED
from ..tracing import check_codes, quantised_of
from . import numbers
from .functions import rule
from .record import is_codes

aten, quantized = namespace("aten"), namespace("quantized")
OPERATORS: dict = {}
"""Rules of operators that need no quantised argument to be asked, by their names: they make such tensors, or are of ``torch.ops.quantized``."""


def operator(*names: str):
    """Decorator: the rule of operators and of the public functions of their names."""

    def wrap(fn):
        OPERATORS.update(dict.fromkeys(names, fn))
        return fn

    return wrap


# ---- made from numbers -----------------------------------------------------------------------------------------------------


def _check_floats(x):
    if x.dtype is not dtypes.float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {x.dtype}")


def _check_dtype(name: str, dtype):
    if dtype not in CODES:
        raise RuntimeError(f"{name}: {dtype} is not a quantised dtype; it takes qint8, quint8, qint32 and quint4x2")


def _check_zero(name: str, zero_point, dtype):
    low, high = numbers.limits(dtype)
    if isinstance(zero_point, _C.TensorBase):
        check_codes(aten.logical_and(zero_point >= low, zero_point <= high), f"{name} zero_point is out of bounds.")
    elif not isinstance(zero_point, int):
        raise TypeError(f"{name}(): argument 'zero_point' must be int, not {type(zero_point).__name__}")
    else:
        check(low <= zero_point, f"{name} zero_point is below lower bound.")
        check(zero_point <= high, f"{name} zero_point is above upper bound.")


@operator("aten::quantize_per_tensor")
def quantize_per_tensor(input, scale, zero_point, dtype):
    if isinstance(input, list | tuple):
        return tuple([quantize_per_tensor(x, scale[i], zero_point[i], dtype) for i, x in enumerate(input)])
    if is_codes(input):
        raise RuntimeError(f"Quantize only works on Float Tensor, got {input.dtype}")
    _check_floats(input)
    _check_dtype("quantize_per_tensor", dtype)
    _check_zero("quantize_tensor_per_tensor_affine", zero_point, dtype)
    if isinstance(scale, _C.TensorBase):
        # Numbers, as the operator takes them.
        scale = scale.detach().reshape([]).to(dtypes.float64)
    elif isinstance(scale, int):
        scale = float(scale)
    if isinstance(zero_point, _C.TensorBase):
        zero_point = zero_point.reshape([]).to(dtypes.int64)
    return numbers.quantised(input, scale, zero_point, dtype)


@operator("aten::quantize_per_tensor_dynamic")
def quantize_per_tensor_dynamic(input, dtype, reduce_range):
    _check_floats(input)
    if dtype not in (dtypes.qint8, dtypes.quint8):
        raise RuntimeError(f"dtype {dtype} not supported; quantize_per_tensor_dynamic takes qint8 and quint8")
    scale, zero_point = quantized._chosen_parameters(input.detach(), dtype is dtypes.qint8, reduce_range)
    return numbers.quantised(input, scale, zero_point, dtype)


@operator("aten::quantize_per_channel")
def quantize_per_channel(input, scales, zero_points, axis, dtype):
    _check_floats(input)
    _check_dtype("quantize_per_channel", dtype)
    scales, zero_points, axis = _channels(input, scales, zero_points, axis)
    low, high = numbers.limits(dtype)
    if zero_points.dtype is dtypes.int64:
        check_codes(
            aten.logical_and(zero_points >= low, zero_points <= high).all(),
            "quantize_tensor_per_channel_affine zero_point is out of bounds.",
        )
    shape = [1] * input.dim()
    shape[axis] = -1
    scale, zero = (x.to(dtypes.float32).reshape(shape) for x in (scales, zero_points))
    codes = numbers.codes_of(input, scale, zero, CODES[dtype], low, high)
    if dtype is PACKED:
        return quantised_of(numbers.packed(codes), scales, zero_points, axis, tuple(input.shape))
    return quantised_of(codes, scales, zero_points, axis)


def _channels(t, scales, zero_points, axis):
    """Copies in the dtypes that a record has, and the axis from the front."""
    if not -t.dim() <= axis < t.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-t.dim()}, {t.dim() - 1}], but got {axis})"
        )
    axis %= t.dim()
    for name, given in (("scale", scales), ("zero-points", zero_points)):
        if given.dim() != 1 or given.shape[0] != t.shape[axis]:
            raise RuntimeError(f"quantize_per_channel: length of {name} must equal to channel")
    floats = zero_points.dtype.is_floating_point
    scale = scales.detach().to(dtypes.float32 if floats else dtypes.float64, copy=True)
    return scale, zero_points.detach().to(dtypes.float32 if floats else dtypes.int64, copy=True), axis


@operator("aten::_make_per_tensor_quantized_tensor")
def from_codes(input, scale, zero_point):
    if input.dtype not in QUANTISED:
        raise RuntimeError(f"quantised tensors have codes of int8, uint8 or int32, got {input.dtype}")
    return quantised_of(input.clone(), float(scale), zero_point)


@operator("aten::_make_per_channel_quantized_tensor")
def from_codes_by_channel(input, scale, zero_point, axis):
    if input.dtype not in QUANTISED:
        raise RuntimeError(f"quantised tensors have codes of int8, uint8 or int32, got {input.dtype}")
    return quantised_of(input.clone(), *_channels(input, scale, zero_point, axis))


# ---- read back -------------------------------------------------------------------------------------------------------------


@rule("dequantize")
def dequantize(func, t):
    if isinstance(t, list | tuple):
        return [_dense(x) if is_codes(x) else x.to(dtypes.float32) for x in t]
    return _dense(t)


def _dense(t):
    """The values in a memory format, also where the codes are transposed or indices share them."""
    values = numbers.values(t)
    last = any(values.is_contiguous(memory_format=f) for f in (channels_last, channels_last_3d))
    return values if last else values.contiguous()


@rule("int_repr")
def int_repr(func, t):
    return t._codes.clone()


def _read(t, name: str, by_channel: bool):
    if (t._axis is not None) != by_channel:
        kind = "kPerChannelAffine" if by_channel else "kPerTensorAffine"
        raise RuntimeError(f"{name}: Expected quantizer->qscheme() == {kind} to be true, but got {t.qscheme()}")
    return t


@rule("q_scale")
def q_scale(func, t):
    scale = _read(t, "q_scale", False)._scale
    return scale.item() if isinstance(scale, _C.TensorBase) else scale


@rule("q_zero_point")
def q_zero_point(func, t):
    zero_point = _read(t, "q_zero_point", False)._zero_point
    return zero_point.item() if isinstance(zero_point, _C.TensorBase) else zero_point


@rule("q_per_channel_scales")
def q_per_channel_scales(func, t):
    return _read(t, "q_per_channel_scales", True)._scale


@rule("q_per_channel_zero_points")
def q_per_channel_zero_points(func, t):
    return _read(t, "q_per_channel_zero_points", True)._zero_point


@rule("q_per_channel_axis")
def q_per_channel_axis(func, t):
    return _read(t, "q_per_channel_axis", True)._axis


@rule("element_size", "get_device", "is_floating_point", "is_complex", "is_pinned", "is_inference")
def of_codes(func, t):
    return func(t._codes)
