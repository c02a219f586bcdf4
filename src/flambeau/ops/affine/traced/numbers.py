"""The arithmetic of base/affine.py in plain operators, bit for bit."""

from __future__ import annotations

from .... import _C
from ....base import dtypes
from ....core.operator import namespace
from ....core.quantized import CODES, PACKED
from ....core.tensor import CPU
from ..tracing import quantised_of

aten = namespace("aten")
float32, float64, int32, int64 = dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64
LIMITS = {dtypes.int8: (-128, 127), dtypes.uint8: (0, 255), dtypes.int32: (-(2**31), 2**31 - 1)}


def number(x, dtype):
    """A number, or a tensor of one element, as a tensor without dimensions."""
    if isinstance(x, _C.TensorBase):
        return x.reshape([]).to(dtype)
    return aten.scalar_tensor(x, dtype=dtype, device=CPU)


def spread(t, x, dtype):
    """The scale or the zero point of ``t``, to broadcast with its codes."""
    if t._axis is None:
        return number(x, dtype)
    shape = [1] * t.dim()
    shape[t._axis] = -1
    return x.to(dtype).reshape(shape)


def limits(dtype):
    """The least and the greatest code of a quantised dtype."""
    return (0, 15) if dtype is PACKED else LIMITS[CODES[dtype]]


def whole_numbers(t):
    """The codes of ``t``, one an element."""
    if t._packed is None:
        return t._codes
    count = 1
    for n in t._packed:
        count *= n
    both = aten.stack([t._codes & 15, t._codes >> 4], -1)
    return both.reshape([-1])[:count].reshape(t._packed)


def away(t, wide=int32):
    """The codes less the zero point."""
    codes = whole_numbers(t)
    kind = int64 if codes.dtype is int32 else wide
    return codes.to(kind) - spread(t, t._zero_point, kind)


def values(t):
    """What the codes stand for, in float32."""
    scale = spread(t, t._scale, float32)
    if t._axis is not None and t._zero_point.dtype is float32:
        return (whole_numbers(t).to(float32) - spread(t, t._zero_point, float32)) * scale
    return away(t).to(float32) * scale


def within(x, kind, low, high):
    """Whole numbers of float32 as codes; nan is the greatest one."""
    if kind is int32:
        x = x.to(float64)
    return aten.nan_to_num(aten.clamp(x, low, high), float(high)).to(kind)


def codes_of(x, scale, zero_point, kind, low, high):
    """Codes of floats. ``scale``, ``zero_point``: tensors of float32 that broadcast."""
    if scale.dim():
        scale = aten.where(scale == 0, 1.0, scale)
    return within(aten.round(zero_point + x * aten.reciprocal(scale)), kind, low, high)


def quantised(x, scale, zero_point, dtype):
    """The floats ``x``, quantised as a whole."""
    kind = CODES[dtype]
    low, high = limits(dtype)
    codes = codes_of(x.to(float32), number(scale, float32), number(zero_point, float32), kind, low, high)
    if dtype is PACKED:
        return quantised_of(packed(codes), scale, zero_point, None, tuple(x.shape))
    return quantised_of(codes, scale, zero_point)


def packed(codes):
    """Codes of four bits, two a byte, as one row."""
    flat = codes.reshape([-1])
    if flat.shape[0] % 2:
        flat = aten.constant_pad_nd(flat, [0, 1])
    return flat[0::2] | flat[1::2] << 4


def requantised(sums, scale, zero_point, kind):
    """Codes of sums of products (float32), of which one stands for ``scale``."""
    low, high = LIMITS[kind]
    return within(aten.round(aten.round(sums * scale) + number(zero_point, float32)), kind, low, high)
