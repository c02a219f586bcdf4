"""Kernels on plain tensors of codes, scales and zero points, which are what graphs hold of layers on codes (traced/)."""

from __future__ import annotations

import numpy as np

from ... import _C
from ...base import affine, dtypes
from ...core.quantized import Affine
from . import embeddings, layers
from .plain import below, fresh, operator

# ---- sums of products ------------------------------------------------------------------------------------------------------


@operator(
    "_code_products(Tensor x, Tensor weight, Tensor zero_point, Tensor weight_zero_point) -> Tensor",
    meta=lambda x, weight, *zero: fresh((*x.shape[:-1], weight.shape[0]), dtypes.int32),
)
def code_products(x, weight, zero_point, weight_zero_point):
    """x (..., K) and weight (N, K) of bytes: (..., N), exact. Zero points: of no dimension, or (N) for the weight."""
    rows = x.reshape(-1, x.shape[-1]) if x.size else x.reshape(int(np.prod(x.shape[:-1])), x.shape[-1])
    made = affine.dot(rows, weight, int(zero_point), weight_zero_point)
    return made.reshape(*x.shape[:-1], weight.shape[0])


@code_products.override("lower")
def _(lowering, val, x, weight, zero_point, weight_zero_point):
    return lowering.product_bytes(val, x, weight, zero_point, weight_zero_point)


def _windows(x, weight, zero_point, weight_zero_point, stride, padding, dilation, groups):
    sizes = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    ]
    return fresh((x.shape[0], weight.shape[0], *sizes), dtypes.int32)


def _record(codes, zero_point) -> Affine:
    """Codes of which only the zero point is told."""
    if zero_point.ndim:
        return Affine(_C.from_array(codes), _C.from_array(np.ones(len(zero_point))), _C.from_array(zero_point), 0)
    return Affine(_C.from_array(codes), 1.0, int(zero_point))


@operator(
    "_code_convolution(Tensor x, Tensor weight, Tensor zero_point, Tensor weight_zero_point, int[] stride, int[] padding, int[] dilation, "
    "int groups) -> Tensor",
    meta=_windows,
)
def code_convolution(x, weight, zero_point, weight_zero_point, stride, padding, dilation, groups):
    """Sums of a convolution, exact."""
    return affine.convolved(x, weight, int(zero_point), weight_zero_point, stride, padding, dilation, groups)


@code_convolution.override("lower")
def _(lowering, val, x, weight, zero_point, weight_zero_point, *sizes):
    return lowering.conv_bytes(val, x, weight, zero_point, weight_zero_point, *sizes)


def _spread_windows(x, weight, zero_point, weight_zero_point, stride, padding, output_padding, dilation, groups):
    sizes = [
        (n - 1) * s - 2 * p + d * (k - 1) + o + 1
        for n, k, s, p, o, d in zip(x.shape[2:], weight.shape[2:], stride, padding, output_padding, dilation)
    ]
    return fresh((x.shape[0], weight.shape[1] * groups, *sizes), dtypes.int32)


@operator(
    "_code_convolution_transpose(Tensor x, Tensor weight, Tensor zero_point, Tensor weight_zero_point, int[] stride, int[] padding, "
    "int[] output_padding, int[] dilation, int groups) -> Tensor",
    meta=_spread_windows,
)
def code_convolution_transpose(
    x, weight, zero_point, weight_zero_point, stride, padding, output_padding, dilation, groups
):
    """Sums of a transposed convolution, exact."""
    w = _record(weight, weight_zero_point)
    if w.axis is not None:
        w = Affine(w.codes, w.scale, w.zero_point, 1)
    with below():
        made = layers._transposed_sums(
            "quantized::conv_transpose", _record(x, zero_point), w, stride, padding, output_padding, dilation, groups
        )
    return np.ascontiguousarray(made).astype(np.int32)


@operator(
    "_chosen_parameters(Tensor x, bool signed, bool reduce_range) -> (Tensor scale, Tensor zero_point)",
    meta=lambda x, *how: (fresh((), dtypes.float64), fresh((), dtypes.int64)),
)
def chosen_parameters(x, signed, reduce_range):
    """Scale and zero point for the whole of ``x``."""
    scale, zero_point = affine.chosen(x, np.int8 if signed else np.uint8, reduce_range)
    return np.array(scale, np.float64), np.array(zero_point, np.int64)


@chosen_parameters.override("lower")
def _(lowering, vals, x, signed, reduce_range):
    return lowering.chosen_parameters(vals, x, *affine.reach(np.int8 if signed else np.uint8, reduce_range))


# ---- rows of tables --------------------------------------------------------------------------------------------------------


def _rows(codes, scale, zero_point, columns, four_bits) -> embeddings.Rows:
    codes = affine.unpacked(np.ascontiguousarray(codes), (len(scale), columns)) if four_bits else codes
    scale = scale[:, None]
    return embeddings.rows_of(codes, scale, -zero_point[:, None] * scale, four_bits)


@operator(
    "_code_rows(Tensor codes, Tensor scale, Tensor zero_point, Tensor indices, int columns, bool four_bits) -> Tensor",
    meta=lambda codes, scale, zero_point, indices, columns, four_bits: fresh((*indices.shape, columns), dtypes.float32),
)
def code_rows(codes, scale, zero_point, indices, columns, four_bits):
    """The values of the rows ``indices``."""
    rows = _rows(codes, scale, zero_point, columns, four_bits)
    return embeddings._lookup(rows, _C.from_array(indices))._array


@operator(
    "_code_bags(Tensor codes, Tensor scale, Tensor zero_point, Tensor indices, Tensor? offsets, Tensor? per_sample_weights, "
    "Tensor? mapping, int columns, bool four_bits, bool pruned, bool include_last_offset) -> Tensor",
    meta=lambda codes, scale, zero_point, indices, offsets, weights, mapping, columns, four_bits, pruned, last: fresh(
        (embeddings.bag_count(indices, offsets, last), columns), dtypes.float32
    ),
)
def code_bags(codes, scale, zero_point, indices, offsets, weights, mapping, columns, four_bits, pruned, last):
    """Sums of the values of rows, by bags."""
    rows = _rows(codes, scale, zero_point, columns, four_bits)
    given = [None if a is None else _C.from_array(a) for a in (indices, offsets, weights, mapping)]
    name = "embedding_bag_4bit" if four_bits else "embedding_bag_byte"
    return embeddings._bags(name, rows, *given[:3], embeddings._mapping(pruned, given[3]), last)._array
