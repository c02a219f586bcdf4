"""Quantised tensors made from codes, and new ones whose codes are 0."""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base.records import replace
from ...core.quantized import PACKED, QUANTISED, Affine, make, parts, quantised
from .declaration import quantized_operator
from .parameters import by_channel, codes_dtype


def _check_codes(t):
    if t._dtype not in QUANTISED:
        raise RuntimeError(f"quantised tensors have codes of int8, uint8 or int32, got {t._dtype}")


@quantized_operator(
    "_make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor", variants="function"
)
def from_codes(self, scale, zero_point):
    _check_codes(self)
    return make(Affine(self.clone(), float(scale), int(zero_point)))


@quantized_operator(
    "_make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, int axis) -> Tensor",
    variants="function",
)
def from_codes_by_channel(self, scale, zero_point, axis):
    _check_codes(self)
    return make(by_channel(self, self.clone(), scale, zero_point, axis))


@quantized_operator(
    "_empty_affine_quantized(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "float scale=1, int zero_point=0, MemoryFormat? memory_format=contiguous_format) -> Tensor",
    variants="function",
)
def empty_whole(size, dtype, layout, device, pin_memory, scale, zero_point, memory_format):
    """Codes of 0."""
    codes_dtype("_empty_affine_quantized", dtype)
    return make(replace(parts(quantised(np.zeros(tuple(size), np.float32), scale, 0, dtype)), zero_point=zero_point))


@quantized_operator(
    "_empty_per_channel_affine_quantized(SymInt[] size, *, Tensor scales, Tensor zero_points, int axis, ScalarType? dtype=None, "
    "Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=contiguous_format) -> Tensor",
    variants="function",
)
def empty_by_channel(size, scales, zero_points, axis, dtype, layout, device, pin_memory, memory_format):
    """Codes of 0."""
    codes_dtype("_empty_per_channel_affine_quantized", dtype)
    zeros = _C.from_array(np.zeros(tuple(size), np.float32))
    record = by_channel(zeros, None, scales, zero_points, axis)
    codes = parts(quantised(zeros._array, 1.0, 0, dtype)).codes
    return make(replace(record, codes=codes, packed=tuple(size) if dtype is PACKED else None))
