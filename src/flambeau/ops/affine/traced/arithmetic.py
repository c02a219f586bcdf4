"""``torch.ops.quantized``: arithmetic and activations whose results have a scale and a zero point that are given; see ../arithmetic.py."""

from __future__ import annotations

from .... import _C
from ....base import dtypes
from ....core.operator import namespace
from ..tracing import quantised_of, uncaptured_codes
from . import numbers
from .elements import whole
from .record import is_codes, like
from .rules import operator

aten = namespace("aten")
float32, float64, int32, int64 = dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64


def _offset_values(t):
    """``scale * code`` rounded together with the product of scale and zero point."""
    scale = numbers.number(whole("quantized", t)._scale, float32)
    offset = -numbers.number(t._zero_point, float32) * scale
    return (t._codes.to(float64) * scale.to(float64) + offset.to(float64)).to(float32)


def _rounded(x, scale, zero_point, kind):
    """``x`` quantised as kernels of binary operators do: rounded before the zero point is added."""
    inverse = aten.reciprocal(numbers.number(scale, float32))
    return quantised_of(numbers.requantised(x, inverse, zero_point, kind), scale, zero_point)


def _check_pair(name: str, a, b):
    for t in (a, b):
        if not is_codes(t):
            raise RuntimeError(f"quantized::{name}: expected quantised tensors, got one of {t.dtype}")
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"quantized::{name}: Both operands need to be of the same dtype, got {a.dtype} and {b.dtype}"
        )


def _sum(qa, qb, scale, zero_point, relu):
    _check_pair("add", qa, qb)
    made = _offset_values(qa) + _offset_values(qb)
    return _rounded(aten.clamp_min(made, 0) if relu else made, scale, zero_point, qa._codes.dtype)


def _product(qa, qb, scale, zero_point, relu):
    """Whole numbers, scaled once."""
    _check_pair("mul", qa, qb)
    a, b = (whole("quantized::mul", t)._codes.to(int32) - numbers.number(t._zero_point, int32) for t in (qa, qb))
    each = numbers.number(qa._scale, float32) * numbers.number(qb._scale, float32)
    each = each * aten.reciprocal(numbers.number(scale, float32))
    made = (a * b).to(float32)
    made = aten.clamp_min(made, 0) if relu else made
    return quantised_of(numbers.requantised(made, each, zero_point, qa._codes.dtype), scale, zero_point)


@operator("quantized::add")
def add(qa, qb, scale, zero_point):
    return _sum(qa, qb, scale, zero_point, False)


@operator("quantized::add_relu")
def add_relu(qa, qb, scale, zero_point):
    return _sum(qa, qb, scale, zero_point, True)


@operator("quantized::mul")
def mul(qa, qb, scale, zero_point):
    return _product(qa, qb, scale, zero_point, False)


@operator("quantized::mul_relu")
def mul_relu(qa, qb, scale, zero_point):
    return _product(qa, qb, scale, zero_point, True)


@operator("quantized::matmul")
def matmul(qa, qb, scale, zero_point):
    _check_pair("matmul", qa, qb)
    return numbers.quantised(aten.matmul(numbers.values(qa), numbers.values(qb)), scale, zero_point, qa.dtype)


def _numbers_only(name: str, t):
    whole(f"quantized::{name}", t)
    if isinstance(t._scale, _C.TensorBase) or isinstance(t._zero_point, _C.TensorBase):
        uncaptured_codes(f"{name} of a tensor whose scale is data")
    return t


@operator("quantized::add_scalar")
def add_scalar(qa, b):
    codes = _numbers_only("add_scalar", qa)._codes
    low, high = numbers.LIMITS[codes.dtype]
    zero = qa._zero_point - round(b / qa._scale)
    if low <= zero <= high:
        return quantised_of(codes.clone(), qa._scale, zero)
    scale = (high - zero if zero < low else zero - low) / (high - low) * qa._scale
    bound = low if zero < low else high
    shifted = (codes.to(int64) - zero).to(float64)
    moved = aten.clamp(aten.round(shifted * (qa._scale / scale)) + bound, low, high)
    return quantised_of(moved.to(codes.dtype), scale, bound)


@operator("quantized::mul_scalar")
def mul_scalar(qa, b):
    codes = _numbers_only("mul_scalar", qa)._codes
    low, high = numbers.LIMITS[codes.dtype]
    if b > 0:
        return quantised_of(codes.clone(), qa._scale * b, qa._zero_point)
    if b == 0:
        return quantised_of(aten.zeros_like(codes), 1.0, 0)
    turned = (high - (codes.to(int64) - low)).to(codes.dtype)
    return quantised_of(turned, qa._scale * -b, high - (qa._zero_point - low))


@operator("quantized::cat")
def cat(qx, dim, scale=None, zero_point=None):
    first = whole("quantized::cat", qx[0])
    joined = aten.cat([numbers.values(t) for t in qx], dim)
    scale, zero_point = (
        first._scale if scale is None else scale,
        first._zero_point if zero_point is None else zero_point,
    )
    return numbers.quantised(joined, scale, zero_point, first.dtype)


# ---- activations and norms ---------------------------------------------------------------------------------------------------


def _scaled(qx, made, scale, zero_point):
    return _rounded(made, scale, zero_point, qx._codes.dtype)


@operator("quantized::hardswish")
def hardswish(qx, output_scale, output_zero_point):
    return _scaled(qx, aten.hardswish(_offset_values(qx)), output_scale, output_zero_point)


@operator("quantized::sigmoid")
def sigmoid(qx, output_scale, output_zero_point):
    return _scaled(qx, aten.sigmoid(_offset_values(qx)), output_scale, output_zero_point)


@operator("quantized::leaky_relu")
def leaky_relu(qx, negative_slope, inplace, output_scale, output_zero_point):
    return _scaled(qx, aten.leaky_relu(_offset_values(qx), negative_slope), output_scale, output_zero_point)


@operator("quantized::softmax")
def softmax(qx, dim, output_scale, output_zero_point):
    return _scaled(qx, aten.softmax(_offset_values(qx), dim), output_scale, output_zero_point)


@operator("quantized::layer_norm")
def layer_norm(qx, normalized_shape, weight, bias, eps, output_scale, output_zero_point):
    made = aten.layer_norm(_offset_values(qx), normalized_shape, weight, bias, eps)
    return _scaled(qx, made, output_scale, output_zero_point)


@operator("quantized::group_norm")
def group_norm(qx, num_groups, weight, bias, eps, output_scale, output_zero_point):
    made = aten.group_norm(_offset_values(qx), num_groups, weight, bias, eps)
    return _scaled(qx, made, output_scale, output_zero_point)


@operator("quantized::instance_norm")
def instance_norm(qx, weight, bias, eps, output_scale, output_zero_point):
    made = aten.instance_norm(_offset_values(qx), weight, bias, None, None, True, 0.0, eps, False)
    return _scaled(qx, made, output_scale, output_zero_point)


@operator("quantized::batch_norm")
def batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point):
    made = aten.batch_norm(_offset_values(qx), weight, bias, mean, var, False, 0.0, eps, False)
    return _scaled(qx, made, output_scale, output_zero_point)


@operator("quantized::elu")
def elu(self, output_scale, output_zero_point, alpha=1, scale=1, input_scale=1):
    made = aten.elu(_offset_values(self), alpha, scale, input_scale)
    return _scaled(self, made, output_scale, output_zero_point)


@operator("quantized::celu")
def celu(self, output_scale, output_zero_point, alpha=1):
    return _scaled(self, aten.celu(_offset_values(self), alpha), output_scale, output_zero_point)


@operator("quantized::relu6")
def relu6(qx, inplace=False):
    made = numbers.quantised(
        aten.hardtanh(numbers.values(whole("hardtanh", qx)), 0, 6), qx._scale, qx._zero_point, qx.dtype
    )
    if not inplace:
        return like(qx, made._codes)
    qx._codes.copy_(made._codes)
    return qx
