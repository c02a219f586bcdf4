"""Packed weights in a trace: records of weights, whose fields capture reads like those of any object. See ../packed.py and ../embeddings.py."""

from __future__ import annotations

from ....base import dtypes
from ....core.operator import namespace
from ....core.quantized import PACKED
from ..embeddings import EmbeddingPackedParams
from ..packed import HALF_MAX, ConvPackedParams, LinearPackedParams
from ..tracing import quantised_of, uncaptured_codes
from . import layers
from .record import is_codes
from .rules import operator

aten, quantized = namespace("aten"), namespace("quantized")


def _packed(name: str, x, kind):
    if not isinstance(x, kind):
        uncaptured_codes(f"quantized::{name} of something that isn't a packed weight")
    return x


def _check_weight(name: str, weight):
    if not is_codes(weight):
        raise RuntimeError(f"quantized::{name}: expected a quantised weight, got one of {weight.dtype}")


# ---- linear ------------------------------------------------------------------------------------------------------------------


@operator("quantized::linear_prepack")
def linear_prepack(W, B=None):
    _check_weight("linear_prepack", W)
    return LinearPackedParams(W, B)


@operator("quantized::linear_unpack")
def linear_unpack(W_prepack):
    p = _packed("linear_unpack", W_prepack, LinearPackedParams)
    return p.weight, p.bias


@operator("quantized::linear")
def linear(X, W_prepack, Y_scale_i, Y_zero_point_i):
    p = _packed("linear", W_prepack, LinearPackedParams)
    return layers.linear(X, p.weight, p.bias, Y_scale_i, Y_zero_point_i, False)


@operator("quantized::linear_relu")
def linear_relu(X, W_prepack, Y_scale_i, Y_zero_point_i):
    p = _packed("linear_relu", W_prepack, LinearPackedParams)
    return layers.linear(X, p.weight, p.bias, Y_scale_i, Y_zero_point_i, True)


@operator("quantized::linear_dynamic")
def linear_dynamic(X, W_prepack, reduce_range=False):
    return _dynamic_products("linear_dynamic", X, W_prepack, reduce_range, False)


@operator("quantized::linear_relu_dynamic")
def linear_relu_dynamic(X, W_prepack, reduce_range=False):
    return _dynamic_products("linear_relu_dynamic", X, W_prepack, reduce_range, True)


def _dynamic_products(name: str, x, packed, reduce_range, relu):
    p = _packed(name, packed, LinearPackedParams)
    if is_codes(p.weight):
        return layers.linear_dynamic(x, p.weight, p.bias, reduce_range, relu)
    made = aten.linear(x.detach(), p.weight.detach(), None if p.bias is None else p.bias.detach())
    return aten.relu(made) if relu else made


@operator("quantized::linear_prepack_fp16")
def linear_prepack_fp16(W, B=None):
    if is_codes(W) or not W.dtype.is_floating_point:
        raise RuntimeError(f"quantized::linear_prepack_fp16: expected a weight of floats, got one of {W.dtype}")
    return LinearPackedParams(aten.clamp(W, -HALF_MAX, HALF_MAX).to(dtypes.float16).to(dtypes.float32), B)


@operator("quantized::linear_unpack_fp16")
def linear_unpack_fp16(W_prepack):
    p = _packed("linear_unpack_fp16", W_prepack, LinearPackedParams)
    return p.weight, p.bias


@operator("quantized::linear_dynamic_fp16")
def linear_dynamic_fp16(X, W_prepack):
    return _dynamic_products("linear_dynamic_fp16", X, W_prepack, False, False)


@operator("quantized::linear_relu_dynamic_fp16")
def linear_relu_dynamic_fp16(X, W_prepack):
    return _dynamic_products("linear_relu_dynamic_fp16", X, W_prepack, False, True)


# ---- convolutions ------------------------------------------------------------------------------------------------------------


def _prepack(n: int):
    @operator(f"quantized::conv{n}d_prepack")
    def prepack(weight, bias, stride, padding, dilation, groups):
        _check_weight(f"conv{n}d_prepack", weight)
        for sizes in (stride, padding, dilation):
            if len(sizes) != n:
                raise RuntimeError(f"a size should contain {n} elements for {n}D convolution.")
        return ConvPackedParams(
            weight, bias, list(stride), list(padding), [0] * n, list(dilation), int(groups), transpose=False
        )


def _convolution(x, packed):
    """The record of a convolution of the input's dimensions: see ConvPackedParams.of_dimensions."""
    p = _packed("conv", packed, ConvPackedParams)
    w = p.weight
    if x.dim() != 3 or w.dim() != 4:
        return p
    sizes = [v[1:] for v in (p.stride, p.padding, p.output_padding, p.dilation)]
    weight = quantised_of(w._codes.squeeze(2), w._scale, w._zero_point, w._axis)
    return ConvPackedParams(weight, p.bias, *sizes, p.groups, p.transpose)


@operator("quantized::conv1d", "quantized::conv2d", "quantized::conv3d")
def conv(qx, packed_weight, output_scale, output_zero_point):
    p = _convolution(qx, packed_weight)
    return layers.convolution(
        qx, p.weight, p.bias, p.stride, p.padding, p.dilation, p.groups, output_scale, output_zero_point, False
    )


@operator("quantized::conv1d_relu", "quantized::conv2d_relu", "quantized::conv3d_relu")
def conv_relu(qx, packed_weight, output_scale, output_zero_point):
    p = _convolution(qx, packed_weight)
    return layers.convolution(
        qx, p.weight, p.bias, p.stride, p.padding, p.dilation, p.groups, output_scale, output_zero_point, True
    )


@operator("quantized::conv_transpose1d", "quantized::conv_transpose2d", "quantized::conv_transpose3d")
def conv_transpose(qx, packed_weight, output_scale, output_zero_point):
    p = _convolution(qx, packed_weight)
    sizes = p.stride, p.padding, p.output_padding, p.dilation
    return layers.convolution_transpose(qx, p.weight, p.bias, *sizes, p.groups, output_scale, output_zero_point)


@operator(
    *(f"quantized::conv{n}d_dynamic" for n in (1, 2, 3)), *(f"quantized::conv_transpose{n}d_dynamic" for n in (1, 2, 3))
)
def conv_dynamic(qx, packed_weight, reduce_range=False):
    p = _convolution(qx, packed_weight)
    sizes = p.stride, p.padding, p.output_padding, p.dilation
    return layers.convolution_dynamic(qx, p.weight, p.bias, *sizes, p.groups, p.transpose, reduce_range)


for _n in (1, 2, 3):
    _prepack(_n)


# ---- embeddings --------------------------------------------------------------------------------------------------------------


@operator("quantized::embedding_bag_prepack")
def embedding_bag_prepack(weight):
    name = "quantized::embedding_bag_prepack"
    if not is_codes(weight) or (weight.dtype is not dtypes.quint8 and weight.dtype is not PACKED):
        raise RuntimeError(f"{name}: Currently quantized embedding supports quint8 and quint4x2, got {weight.dtype}")
    if weight._axis != 0 or weight._zero_point.dtype is not dtypes.float32:
        raise RuntimeError(
            f"{name}: Expect embedding_bag weights to be quantized using kPerChannelAffineFloatQParams, got {weight.qscheme()}"
        )
    if weight.dim() != 2:
        raise RuntimeError(f"{name}: Expected weight of two dimensions, got {weight.dim()}")
    return EmbeddingPackedParams(weight)


@operator("quantized::embedding_bag_unpack")
def embedding_bag_unpack(W_prepack):
    return _packed("embedding_bag_unpack", W_prepack, EmbeddingPackedParams).weight


def _table(name: str, packed, dtype):
    """The parts of a table of rows as kernels take them, and the number of columns."""
    w = _packed(name, packed, EmbeddingPackedParams).weight
    if w.dtype is not dtype:
        raise RuntimeError(f"quantized::{name}: expected a weight of {dtype}, got {w.dtype}")
    return (w._codes, w._scale, w._zero_point), w.shape[1]


def _lookup(name: str, weight, indices, pruned_weights, dtype):
    if pruned_weights:
        raise RuntimeError(f"quantized::{name}: pruned_weights takes a mapping of indices, which only bags have")
    table, columns = _table(name, weight, dtype)
    return quantized._code_rows(*table, indices, columns, dtype is PACKED)


@operator("quantized::embedding_byte")
def embedding_byte(weight, indices, pruned_weights=False):
    return _lookup("embedding_byte", weight, indices, pruned_weights, dtypes.quint8)


@operator("quantized::embedding_4bit")
def embedding_4bit(weight, indices, pruned_weights=False):
    return _lookup("embedding_4bit", weight, indices, pruned_weights, PACKED)


def _bags(name: str, weight, dtype, indices, offsets, per_sample_weights, mapping, pruned, include_last_offset):
    table, columns = _table(name, weight, dtype)
    if indices.dim() == 1 and offsets is None:
        uncaptured_codes(f"{name} of indices in a row without offsets")
    weights = None if per_sample_weights is None else per_sample_weights.detach()
    given = indices, offsets, weights, mapping
    return quantized._code_bags(*table, *given, columns, dtype is PACKED, pruned, include_last_offset)


@operator("quantized::embedding_bag_byte")
def embedding_bag_byte(
    weight, indices, offsets=None, scale_grad_by_freq=False, mode=0, pruned_weights=False, per_sample_weights=None,
    compressed_indices_mapping=None, include_last_offset=False,
):  # fmt: skip
    given = indices, offsets, per_sample_weights, compressed_indices_mapping
    return _bags("embedding_bag_byte", weight, dtypes.quint8, *given, pruned_weights, include_last_offset)


@operator("quantized::embedding_bag_4bit")
def embedding_bag_4bit(
    weight, indices, offsets=None, scale_grad_by_freq=False, mode=0, pruned_weights=False, per_sample_weights=None,
    compressed_indices_mapping=None, include_last_offset=False,
):  # fmt: skip
    given = indices, offsets, per_sample_weights, compressed_indices_mapping
    return _bags("embedding_bag_4bit", weight, PACKED, *given, pruned_weights, include_last_offset)
