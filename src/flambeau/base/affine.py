"""Affine quantisation on ndarrays: a code ``c`` stands for ``(c - zero_point) * scale``.

Everything is computed in float32, as PyTorch's CPU kernels do: a code is ``rint(zero_point + x / scale)``, kept within its type. ``scale`` and
``zero_point`` are numbers, or arrays that broadcast with the codes (one entry a channel). Zero points may be floats.
"""

from __future__ import annotations

import math

import numpy as np

from . import kernels

__all__ = [
    "FOUR_BITS",
    "along",
    "chosen",
    "codes",
    "convolved",
    "dot",
    "packed",
    "range_of",
    "reach",
    "requantized",
    "requantized_sums",
    "unpacked",
    "values",
]

# The least and the greatest of the codes of which two share a byte.
FOUR_BITS = (0, 15)


def range_of(kind) -> tuple[int, int]:
    """The least and the greatest code of an integer dtype of NumPy's."""
    info = np.iinfo(kind)
    return int(info.min), int(info.max)


def reach(kind, reduce_range: bool) -> tuple[int, int]:
    """The least and the greatest code that a chosen scale uses."""
    low, high = range_of(kind)
    return (low // 2, high // 2) if reduce_range else (low, high)


def chosen(x: np.ndarray, kind, reduce_range: bool) -> tuple[float, int]:
    """Scale and zero point for which the codes reach from the least to the greatest of ``x``, and 0 is a code.

    ``kind`` is an integer dtype of NumPy's. ``reduce_range`` leaves out a bit, as kernels without 32-bit sums of products need."""
    low, high = reach(kind, reduce_range)
    if not np.isfinite(x).all():
        raise RuntimeError("quantized: a scale can't be chosen for values that aren't finite")
    least = min(float(x.min()), 0.0) if x.size else 0.0
    most = max(float(x.max()), 0.0) if x.size else 0.0
    scale = (most - least) / (high - low)
    # A scale that is 0, or whose reciprocal is infinite, stands for nothing.
    if scale == 0 or not np.isfinite(np.float32(1) / np.float32(scale)):
        scale = 0.1
    from_low, from_high = low - least / scale, high - most / scale
    nearer_low = abs(low) + abs(least / scale) < abs(high) + abs(most / scale)
    exact = from_low if nearer_low else from_high
    return scale, int(np.rint(min(max(exact, low), high)))


def along(x: np.ndarray, axis: int, ndim: int) -> np.ndarray:
    """``x`` of one dimension so that it broadcasts with arrays of ``ndim`` dimensions, along ``axis`` of them."""
    shape = [1] * ndim
    shape[axis] = -1
    return x.reshape(shape)


def codes(x, scale, zero_point, kind, limits=None) -> np.ndarray:
    """Codes of ``x`` in the integer dtype ``kind``, or between the ``limits``. A nan becomes the greatest one, as in PyTorch."""
    scale = np.asarray(scale, np.float32)
    inverse = np.float32(1) / (scale if scale.ndim == 0 else np.where(scale == 0, np.float32(1), scale))
    return _within(np.asarray(zero_point, np.float32) + np.asarray(x, np.float32) * inverse, kind, limits)


def values(x, scale, zero_point) -> np.ndarray:
    """What codes stand for, in float32."""
    zero_point = np.asarray(zero_point)
    if zero_point.dtype.kind == "f":
        away = x.astype(np.float32) - zero_point.astype(np.float32)
    else:
        away = x.astype(np.int64) - zero_point.astype(np.int64)
    return away.astype(np.float32) * np.asarray(scale, np.float32)


def requantized(sums, scale, zero_point: int, kind) -> np.ndarray:
    """Codes of sums of products (float32), of which one stands for ``scale``."""
    return _within(np.rint(sums * np.asarray(scale, np.float32)) + np.float32(zero_point), kind)


def dot(a, b, a_zero, b_zero) -> np.ndarray:
    """``(a - a_zero) (b - b_zero)^T`` in int32, exact: a (M, K) and b (N, K) of bytes, a_zero a number, b_zero a number or an array (N)."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    out = np.empty((a.shape[0], b.shape[0]), np.int32)
    # int32 and the like wrap around where a zero point is beyond them.
    zeros = [np.asarray(z).astype(np.int64, copy=False) for z in (a_zero, b_zero)]
    kernels.product_bytes([a, b, *zeros], [out], a_signed=a.dtype == np.int8, b_signed=b.dtype == np.int8)
    return out


def convolved(x, weight, x_zero, weight_zero, stride, padding, dilation, groups: int) -> np.ndarray:
    """Sums of a convolution of ``x - x_zero`` with ``weight - weight_zero`` in int32, exact.

    x (N, C, *sizes) of bytes, weight (O, C / groups, *kernel) of int8; x_zero a number, weight_zero a number or an array (O); one to three sizes."""
    n = len(stride)
    sizes = [
        (i + 2 * p - d * (k - 1) - 1) // s + 1
        for i, k, s, p, d in zip(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    ]
    fill = (1,) * (3 - n)
    out = np.empty((x.shape[0], weight.shape[0], *fill, *sizes), np.int32)
    a, b = (t.reshape(*t.shape[:2], *fill, *t.shape[2:]) for t in (x, np.ascontiguousarray(weight)))
    zeros = [np.asarray(z).astype(np.int64, copy=False) for z in (x_zero, weight_zero)]
    numbers = {"stride": (*fill, *stride), "padding": (*(0,) * (3 - n), *padding), "dilation": (*fill, *dilation)}
    kernels.conv_bytes([a, b, *zeros], [out], x_signed=a.dtype == np.int8, groups=groups, **numbers)
    return out.reshape(*x.shape[:1], weight.shape[0], *sizes)


def requantized_sums(sums, scale, shift, zero_point: int, kind, least=None) -> np.ndarray:
    """Codes of sums of products (rows, channels, ...) of int32, of which one stands for the ``scale`` of its channel.

    ``shift``: what is added to sums first, or None. ``kind`` is an integer dtype of a byte; codes below ``least`` become it."""
    out = np.empty(sums.shape, kind)
    low, high = range_of(kind)
    parts = (
        v if v is None else np.ascontiguousarray(np.broadcast_to(np.asarray(v, np.float32), sums.shape[1:2]))
        for v in (scale, shift)
    )
    shape = (*sums.shape[:2], math.prod(sums.shape[2:]))
    limits = {"low": low if least is None else max(low, least), "high": high}
    sums = np.ascontiguousarray(sums).reshape(shape)
    kernels.requantized([sums, *parts], [out.reshape(shape)], zero_point=zero_point, **limits)
    return out


def packed(x) -> np.ndarray:
    """Codes of four bits, two a byte, as one row: the first in the low half."""
    flat = np.ascontiguousarray(x, np.uint8).reshape(-1)
    if flat.size % 2:
        flat = np.append(flat, np.uint8(0))
    return flat[0::2] | flat[1::2] << np.uint8(4)


def unpacked(x, shape) -> np.ndarray:
    """What :func:`packed` packed, in this shape."""
    both = np.stack([x & np.uint8(15), x >> np.uint8(4)], -1)
    return both.reshape(-1)[: math.prod(shape)].reshape(shape)


def _within(x, kind, limits=None) -> np.ndarray:
    low, high = range_of(kind) if limits is None else limits
    # NOTE: the greatest int32 isn't a float32; float64 holds all of them.
    return np.nan_to_num(np.clip(np.rint(x).astype(np.float64), low, high), nan=high).astype(kind)
