"""``torch.ops.quantized``: arithmetic and activations of quantised tensors whose results have a scale and a zero point that are given.

Values are computed in float32 and quantised once. Shapes broadcast as those of the plain operators.
"""

from __future__ import annotations

import functools

import numpy as np

from ... import _C
from ...base import affine
from ...base.records import replace
from ...core.operator import namespace
from ...core.quantized import CODES, Affine, dequantized, is_quantized, make, parts, quantised, whole
from .declaration import quantized_operator

aten = namespace("aten")


def operator(schema: str):
    """Declare an operator of the namespace ``quantized``."""
    return quantized_operator(schema, ns="quantized")


def _offset_values(t) -> np.ndarray:
    """The values as kernels of binary operators compute them: ``scale * code`` rounded together with the product of scale and zero point."""
    p = whole("quantized", t)
    scale = np.float32(p.scale)
    away = np.float64(-np.float32(p.zero_point) * scale)
    return (p.codes._array.astype(np.float64) * np.float64(scale) + away).astype(np.float32)


def _rounded(x: np.ndarray, scale: float, zero_point: int, dtype):
    """``x`` quantised as those kernels do: rounded before the zero point is added."""
    codes = affine.requantized(x, np.float32(1) / np.float32(scale), zero_point, CODES[dtype].np)
    return make(Affine(_C.from_array(codes), float(scale), int(zero_point)))


def _check_pair(name: str, a, b) -> None:
    for t in (a, b):
        if not is_quantized(t):
            raise RuntimeError(f"quantized::{name}: expected quantised tensors, got one of {t._dtype}")
    if a._dtype is not b._dtype:
        raise RuntimeError(
            f"quantized::{name}: Both operands need to be of the same dtype, got {a._dtype} and {b._dtype}"
        )


def _laid_out(x: np.ndarray, t) -> np.ndarray:
    """``x`` in the layout of the first operand, where it has its shape."""
    like = parts(t).codes._array
    if x.shape != like.shape:
        return x
    out = np.empty_like(like, dtype=x.dtype)
    if out.strides == x.strides:
        return x
    out[...] = x
    return out


def _sum(a, b, scale, zero_point, least):
    _check_pair("add", a, b)
    made = np.maximum(_offset_values(a) + _offset_values(b), least)
    return _rounded(_laid_out(made, a), scale, zero_point, a._dtype)


def _product(a, b, scale, zero_point, least):
    """Whole numbers, scaled once."""
    _check_pair("mul", a, b)
    p, q = whole("quantized::mul", a), whole("quantized::mul", b)
    wide = [r.codes._array.astype(np.int32) - np.int32(r.zero_point) for r in (p, q)]
    each = np.float32(p.scale) * np.float32(q.scale) * (np.float32(1) / np.float32(scale))
    made = _laid_out(np.maximum((wide[0] * wide[1]).astype(np.float32), least), a)
    codes = affine.requantized(made, each, zero_point, CODES[a._dtype].np)
    return make(Affine(_C.from_array(codes), float(scale), int(zero_point)))


for _name, _compute in (("add", _sum), ("mul", _product)):
    for _suffix, _least in (("", -np.inf), ("_relu", 0)):
        operator(f"{_name}{_suffix}(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc")(
            functools.partial(_compute, least=np.float32(_least))
        )


@operator("matmul(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc")
def matmul(qa, qb, scale, zero_point):
    _check_pair("matmul", qa, qb)
    return quantised(np.matmul(dequantized(qa), dequantized(qb)), scale, zero_point, qa._dtype)


@operator("add_scalar(Tensor qa, Scalar b) -> Tensor qc")
def add_scalar(qa, b):
    """The zero point moves; where it would leave the range of codes, the scale grows until 0 is a code again."""
    p = whole("quantized::add_scalar", qa)
    low, high = affine.range_of(p.codes._dtype.np)
    zero = p.zero_point - round(b / p.scale)
    if low <= zero <= high:
        return make(replace(p, codes=p.codes.clone(), zero_point=zero))
    scale = (high - zero if zero < low else zero - low) / (high - low) * p.scale
    bound = low if zero < low else high
    shifted = p.codes._array.astype(np.int64) - zero
    codes = np.clip(np.rint(shifted * (p.scale / scale)) + bound, low, high).astype(p.codes._dtype.np)
    return make(Affine(_C.from_array(codes), scale, bound))


@operator("mul_scalar(Tensor qa, Scalar b) -> Tensor qc")
def mul_scalar(qa, b):
    """The scale is multiplied; a negative number turns the codes around, and 0 leaves zeros of scale 1."""
    p = whole("quantized::mul_scalar", qa)
    low, high = affine.range_of(p.codes._dtype.np)
    if b > 0:
        return make(replace(p, codes=p.codes.clone(), scale=p.scale * b))
    if b == 0:
        return make(Affine(aten.zeros_like.default(p.codes), 1.0, 0))
    turned = (high - (p.codes._array.astype(np.int64) - low)).astype(p.codes._dtype.np)
    return make(Affine(_C.from_array(turned), p.scale * -b, high - (p.zero_point - low)))


@operator("cat(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor")
def cat(qx, dim, scale, zero_point):
    first = whole("quantized::cat", qx[0])
    joined = np.concatenate([dequantized(t) for t in qx], dim)
    scale, zero_point = first.scale if scale is None else scale, first.zero_point if zero_point is None else zero_point
    return quantised(joined, scale, zero_point, qx[0]._dtype)


# ---- activations and norms ---------------------------------------------------------------------------------------------------


def _scaled(name: str, parameters: str, compute) -> None:
    """Declare ``quantized::name(qx, parameters, scale, zero_point)``; ``compute`` is a function on plain tensors."""
    names = ", ".join(p.split("=")[0].split()[-1] for p in parameters.split(", ") if p)
    gap = ", " if parameters else ""

    def run(qx, *rest):
        *given, scale, zero_point = rest
        made = compute(_C.computed(_offset_values(qx)), *given)
        return _rounded(made._array, scale, zero_point, qx._dtype)

    run.__doc__ = f"{name}({names})"
    operator(f"{name}(Tensor qx{gap}{parameters}, float output_scale, int output_zero_point) -> Tensor")(run)


_scaled("hardswish", "", lambda x: aten.hardswish.default(x))
_scaled("sigmoid", "", lambda x: aten.sigmoid.default(x))
_scaled(
    "leaky_relu",
    "Scalar negative_slope, bool inplace",
    lambda x, slope, inplace: aten.leaky_relu.default(x, slope),
)
_scaled("softmax", "int dim", lambda x, dim: aten.softmax.int(x, dim))
_scaled(
    "layer_norm",
    "int[] normalized_shape, Tensor? weight, Tensor? bias, float eps",
    lambda x, *given: aten.layer_norm.default(x, *given),
)
_scaled(
    "group_norm",
    "int num_groups, Tensor? weight, Tensor? bias, float eps",
    lambda x, *given: aten.group_norm.default(x, *given),
)
_scaled(
    "instance_norm",
    "Tensor? weight, Tensor? bias, float eps",
    lambda x, weight, bias, eps: aten.instance_norm.default(x, weight, bias, None, None, True, 0.0, eps, False),
)
_scaled(
    "batch_norm",
    "Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps",
    lambda x, weight, bias, mean, var, eps: aten.batch_norm.default(x, weight, bias, mean, var, False, 0.0, eps, False),
)


@operator(
    "elu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor"
)
def elu(self, output_scale, output_zero_point, alpha, scale, input_scale):
    made = aten.elu.default(_C.computed(_offset_values(self)), alpha, scale, input_scale)
    return _rounded(made._array, output_scale, output_zero_point, self._dtype)


@operator("celu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1) -> Tensor")
def celu(self, output_scale, output_zero_point, alpha):
    made = aten.celu.default(_C.computed(_offset_values(self)), alpha)
    return _rounded(made._array, output_scale, output_zero_point, self._dtype)


@operator("relu6(Tensor qx, bool inplace=False) -> Tensor")
def relu6(qx, inplace):
    made = aten.hardtanh.default(qx, 0, 6)
    return aten.copy_.default(qx, made) if inplace else made
