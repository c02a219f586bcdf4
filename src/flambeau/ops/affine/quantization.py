"""Quantised tensors made from numbers."""

from __future__ import annotations

from ... import _C
from ...base import affine, dtypes
from ...base.records import replace
from ...core.operator import namespace
from ...core.quantized import CODES, PACKED, make, quantised
from .declaration import quantized_operator
from .parameters import by_channel, check_zero_point, codes_dtype, limits

aten = namespace("aten")


def _check_floats(t):
    if t._dtype is not dtypes.float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {t._dtype.scalar_type}")


@quantized_operator(
    "quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor", variants="function"
)
def quantize_per_tensor(self, scale, zero_point, dtype):
    _check_floats(self)
    codes_dtype("quantize_per_tensor", dtype)
    check_zero_point("quantize_tensor_per_tensor_affine", zero_point, dtype)
    return quantised(self._array, scale, zero_point, dtype)


@quantized_operator(
    "quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, ScalarType dtype) -> Tensor",
    variants="function",
)
def quantize_by_tensors(self, scale, zero_point, dtype):
    return aten.quantize_per_tensor.default(self, scale.item(), zero_point.item(), dtype)


@quantized_operator(
    "quantize_per_tensor.tensors(Tensor[] tensors, Tensor scales, Tensor zero_points, ScalarType dtype) -> Tensor[]",
    variants="function",
)
def quantize_each(tensors, scales, zero_points, dtype):
    rows = zip(tensors, scales.tolist(), zero_points.tolist(), strict=True)
    return [aten.quantize_per_tensor.default(t, scale, zero, dtype) for t, scale, zero in rows]


@quantized_operator(
    "quantize_per_tensor_dynamic(Tensor self, ScalarType dtype, bool reduce_range) -> Tensor", variants="function"
)
def quantize_dynamic(self, dtype, reduce_range):
    _check_floats(self)
    if dtype not in (dtypes.qint8, dtypes.quint8):
        raise RuntimeError(f"dtype {dtype} not supported; quantize_per_tensor_dynamic takes qint8 and quint8")
    scale, zero_point = affine.chosen(self._array, CODES[dtype].np, reduce_range)
    return quantised(self._array, scale, zero_point, dtype)


@quantized_operator(
    "quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype) -> Tensor",
    variants="function",
)
def quantize_per_channel(self, scales, zero_points, axis, dtype):
    _check_floats(self)
    code = codes_dtype("quantize_per_channel", dtype)
    record = by_channel(self, None, scales, zero_points, axis)
    if record.zero_point._dtype is dtypes.int64:
        for zero_point in (record.zero_point._array.min(initial=0), record.zero_point._array.max(initial=0)):
            check_zero_point("quantize_tensor_per_channel_affine", int(zero_point), dtype)
    spread = (affine.along(p._array, record.axis, self._ndim) for p in (record.scale, record.zero_point))
    made = affine.codes(self._array, *spread, code.np, limits(dtype))
    if dtype is PACKED:
        return make(replace(record, codes=_C.from_array(affine.packed(made)), packed=tuple(self._shape)))
    return make(replace(record, codes=_C.from_array(made)))
