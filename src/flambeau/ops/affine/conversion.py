"""Quantised tensors: made from numbers, read back, and asked for their codes, scales and zero points (core/quantized.py).

Fake tensors have no codes, so the shape rules of these operators refuse; capture goes by the rules in traced/.
"""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base import affine, dtypes
from ...base.errors import Uncaptured
from ...base.records import replace
from ...base.shapes import normalize_dim
from ...core.declare import explicit
from ...core.operator import namespace
from ...core.quantized import (
    CODES,
    PACKED,
    QUANTISED,
    Affine,
    dequantized,
    is_quantized,
    make,
    parts,
    quantised,
    quantized_rule,
)

aten = namespace("aten")
from_array = _C.from_array


def quantized_operator(schema: str, **kw):
    """Declare an operator that makes or reads quantised tensors by its kernel on tensors."""

    def no_shape_rule(*args):
        raise Uncaptured(f"aten::{schema.partition('(')[0]}: fake tensors have no codes")

    def wrap(fn):
        op = explicit(schema, meta=no_shape_rule, has_out=False, **kw)(fn)
        op.override("quantized", fn)
        return op

    return wrap


def _codes_dtype(name: str, dtype):
    if dtype not in CODES:
        raise RuntimeError(
            f"{name}: ScalarType {getattr(dtype, 'scalar_type', None)} is not a quantised dtype; it takes qint8, quint8, qint32 and quint4x2"
        )
    return CODES[dtype]


def _check_floats(t):
    if t._dtype is not dtypes.float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {t._dtype.scalar_type}")


def _limits(dtype) -> tuple[int, int]:
    return (0, 15) if dtype is PACKED else affine.range_of(CODES[dtype].np)


def _check_zero(name: str, zero_point: int, dtype):
    low, high = _limits(dtype)
    for outside, bound in ((zero_point > high, "above upper"), (zero_point < low, "below lower")):
        if outside:
            raise RuntimeError(f"{name} zero_point {zero_point} is {bound} bound.")


# ---- made from numbers -----------------------------------------------------------------------------------------------------


@quantized_operator(
    "quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor", variants="function"
)
def quantize_per_tensor(self, scale, zero_point, dtype):
    _check_floats(self)
    _codes_dtype("quantize_per_tensor", dtype)
    _check_zero("quantize_tensor_per_tensor_affine", zero_point, dtype)
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
    scale, zero_point = chosen(self._array, CODES[dtype].np, reduce_range)
    return quantised(self._array, scale, zero_point, dtype)


def chosen(x: np.ndarray, kind, reduce_range: bool) -> tuple[float, int]:
    """Scale and zero point for which the codes reach from the least to the greatest of ``x``, and 0 is a code.

    ``reduce_range`` leaves out a bit, as kernels without 32-bit sums of products need."""
    low, high = affine.range_of(kind)
    if reduce_range:
        low, high = low // 2, high // 2
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


@quantized_operator(
    "quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype) -> Tensor",
    variants="function",
)
def quantize_per_channel(self, scales, zero_points, axis, dtype):
    _check_floats(self)
    code = _codes_dtype("quantize_per_channel", dtype)
    record = _by_channel(self, None, scales, zero_points, axis)
    if record.zero_point._dtype is dtypes.int64:
        for zero_point in (record.zero_point._array.min(initial=0), record.zero_point._array.max(initial=0)):
            _check_zero("quantize_tensor_per_channel_affine", int(zero_point), dtype)
    made = affine.codes(self._array, *_spread(record, self._ndim), code.np, _limits(dtype))
    if dtype is PACKED:
        return make(replace(record, codes=from_array(affine.packed(made)), packed=tuple(self._shape)))
    return make(replace(record, codes=from_array(made)))


def _by_channel(t, codes, scales, zero_points, axis) -> Affine:
    axis = normalize_dim(axis, t._ndim)
    for name, given in (("scale", scales), ("zero-points", zero_points)):
        if tuple(given._shape) != (t._shape[axis],):
            raise RuntimeError(
                f"quantize_per_channel: length of {name} must equal to channel, expected {t._shape[axis]} and got {tuple(given._shape)}"
            )
    if zero_points._dtype.is_floating_point:
        # Such scales and zero points stay floats: weights of embeddings have them.
        scale, zero = (from_array(x._array.astype(np.float32)) for x in (scales, zero_points))
        return Affine(codes, scale, zero, axis)
    scale = from_array(scales._array.astype(np.float64))
    return Affine(codes, scale, from_array(zero_points._array.astype(np.int64)), axis)


def _spread(record: Affine, ndim: int):
    shape = [1] * ndim
    shape[record.axis] = -1
    return record.scale._array.reshape(shape), record.zero_point._array.reshape(shape)


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
    return make(_by_channel(self, self.clone(), scale, zero_point, axis))


@quantized_operator(
    "_empty_affine_quantized(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "float scale=1, int zero_point=0, MemoryFormat? memory_format=contiguous_format) -> Tensor",
    variants="function",
)
def empty_whole(size, dtype, layout, device, pin_memory, scale, zero_point, memory_format):
    """Codes of 0."""
    _codes_dtype("_empty_affine_quantized", dtype)
    return make(replace(_of(quantised(np.zeros(tuple(size), np.float32), scale, 0, dtype), ""), zero_point=zero_point))


@quantized_operator(
    "_empty_per_channel_affine_quantized(SymInt[] size, *, Tensor scales, Tensor zero_points, int axis, ScalarType? dtype=None, "
    "Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=contiguous_format) -> Tensor",
    variants="function",
)
def empty_by_channel(size, scales, zero_points, axis, dtype, layout, device, pin_memory, memory_format):
    """Codes of 0."""
    _codes_dtype("_empty_per_channel_affine_quantized", dtype)
    zeros = from_array(np.zeros(tuple(size), np.float32))
    record = _by_channel(zeros, None, scales, zero_points, axis)
    return make(replace(record, codes=_of(quantised(zeros._array, 1.0, 0, dtype), "").codes,
                        packed=tuple(size) if dtype is PACKED else None))  # fmt: skip


def _check_codes(t):
    if t._dtype not in QUANTISED:
        raise RuntimeError(f"quantised tensors have codes of int8, uint8 or int32, got {t._dtype}")


# ---- read back -------------------------------------------------------------------------------------------------------------


@quantized_operator("dequantize.self(Tensor self) -> Tensor", variants="function method")
def dequantize(self):
    if not is_quantized(self):
        return self.to(dtypes.float32)
    return _C.computed(dequantized(self))


@quantized_operator("dequantize.tensors(Tensor[] tensors) -> Tensor[]", variants="function")
def dequantize_each(tensors):
    return [aten.dequantize.self(t) for t in tensors]


@quantized_operator("int_repr(Tensor self) -> Tensor", variants="function method")
def int_repr(self):
    return _of(self, "int_repr").codes.clone()


def _of(t, name: str) -> Affine:
    p = parts(t)
    if p is None:
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: it takes quantised tensors, got {t._dtype}"
        )
    return p


def _whole(t, name: str) -> Affine:
    p = _of(t, name)
    if p.axis is not None:
        raise RuntimeError(f"{name}: Expected quantizer->qscheme() == kPerTensorAffine to be true, but got {p.scheme}")
    return p


def _by_axis(t, name: str) -> Affine:
    p = _of(t, name)
    if p.axis is None:
        raise RuntimeError(f"{name}: Expected quantizer->qscheme() == kPerChannelAffine to be true, but got {p.scheme}")
    return p


@quantized_operator("q_scale(Tensor self) -> float", variants="function method")
def q_scale(self):
    return _whole(self, "q_scale").scale


@quantized_operator("q_zero_point(Tensor self) -> int", variants="function method")
def q_zero_point(self):
    return _whole(self, "q_zero_point").zero_point


@quantized_operator("q_per_channel_scales(Tensor self) -> Tensor", variants="function method")
def q_per_channel_scales(self):
    return _by_axis(self, "q_per_channel_scales").scale


@quantized_operator("q_per_channel_zero_points(Tensor self) -> Tensor", variants="function method")
def q_per_channel_zero_points(self):
    return _by_axis(self, "q_per_channel_zero_points").zero_point


@quantized_operator("q_per_channel_axis(Tensor self) -> int", variants="function method")
def q_per_channel_axis(self):
    return _by_axis(self, "q_per_channel_axis").axis


# ---- copies ----------------------------------------------------------------------------------------------------------------


@quantized_rule(aten.clone.default)
def clone(self, memory_format=None):
    p = parts(self)
    if p.packed is not None:
        return make(replace(p, codes=p.codes.clone()))
    return make(replace(p, codes=aten.clone.default(p.codes, memory_format=memory_format)))


@quantized_rule(aten.copy_.default)
def copy_(self, src, non_blocking=False):
    p, q = parts(self), parts(src)
    if p is None:
        raise RuntimeError(
            "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a float Tensor"
        )
    if q is None:
        if src._dtype is not dtypes.float32:
            raise RuntimeError(f"Quantized copy only works with kFloat as source Tensor, got {src._dtype.scalar_type}")
        made = affine.codes(src._array, *p.parameters, p.codes._dtype.np, p.limits)
        p.codes.copy_(from_array(made if p.packed is None else affine.packed(np.broadcast_to(made, p.packed))))
        return self
    if self._dtype is not src._dtype or q.axis != p.axis or (p.packed is not None and p.packed != q.packed):
        raise RuntimeError("Quantized Copy only works with Tensors with the same dtype and scheme")
    p.codes.copy_(q.codes)
    # As in PyTorch, what is copied keeps its meaning: its scale comes with it.
    self._payload = replace(p, scale=q.scale, zero_point=q.zero_point)
    return self


@quantized_rule(aten.equal.default)
def equal(self, other):
    p, q = parts(self), parts(other)
    if p is None or q is None or self._dtype is not other._dtype or p.axis != q.axis or p.packed != q.packed:
        return False
    pairs = zip((p.codes, *p.parameters), (q.codes, *q.parameters), strict=True)
    return all(np.array_equal(getattr(a, "_array", a), getattr(b, "_array", b)) for a, b in pairs)


@quantized_rule(aten._local_scalar_dense.default)
def local_scalar(self):
    return dequantized(self).item()
