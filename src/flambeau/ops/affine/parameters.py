"""What is checked of the dtype, the scales and the zero points of new quantised tensors."""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base import affine
from ...base.shapes import normalize_dim
from ...core.quantized import CODES, PACKED, Affine

__all__ = ["by_channel", "check_zero_point", "codes_dtype", "limits"]


def codes_dtype(name: str, dtype):
    """The element type of the codes of a quantised dtype. RuntimeError for another dtype, in the name of an operator."""
    if dtype not in CODES:
        raise RuntimeError(
            f"{name}: ScalarType {getattr(dtype, 'scalar_type', None)} is not a quantised dtype; it takes qint8, quint8, qint32 and quint4x2"
        )
    return CODES[dtype]


def limits(dtype) -> tuple[int, int]:
    """The least and the greatest code of a quantised dtype."""
    return affine.FOUR_BITS if dtype is PACKED else affine.range_of(CODES[dtype].np)


def check_zero_point(name: str, zero_point: int, dtype):
    """RuntimeError for a zero point that is no code of the quantised dtype, in the name of an operator."""
    low, high = limits(dtype)
    for outside, bound in ((zero_point > high, "above upper"), (zero_point < low, "below lower")):
        if outside:
            raise RuntimeError(f"{name} zero_point {zero_point} is {bound} bound.")


def by_channel(t, codes, scales, zero_points, axis) -> Affine:
    """The record of ``codes`` (None: not there yet) of a tensor of the shape of ``t`` whose channels along ``axis`` have their own parameters."""
    axis = normalize_dim(axis, t._ndim)
    for name, given in (("scale", scales), ("zero-points", zero_points)):
        if tuple(given._shape) != (t._shape[axis],):
            raise RuntimeError(
                f"quantize_per_channel: length of {name} must equal to channel, expected {t._shape[axis]} and got {tuple(given._shape)}"
            )
    if zero_points._dtype.is_floating_point:
        # Such scales and zero points stay floats: weights of embeddings have them.
        scale, zero = (_C.from_array(x._array.astype(np.float32)) for x in (scales, zero_points))
        return Affine(codes, scale, zero, axis)
    scale = _C.from_array(scales._array.astype(np.float64))
    return Affine(codes, scale, _C.from_array(zero_points._array.astype(np.int64)), axis)
