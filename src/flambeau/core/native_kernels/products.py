"""Products of few bits and of bfloat16, and the choice of a scale."""

from __future__ import annotations

import math

from ...base import dtypes, kernels
from ...base.result_spec import ResultSpec
from ...base.sizes import dense_strides, size, sizes
from ..messages import About

__all__ = ["chosen_parameters", "packed_product_bf16", "product_bf16", "product_bytes", "weight_only"]


def weight_only(h, val, x, weight, scales, group):
    """The product of x (M, K) with a weight of 8 bits (N, K), ``group`` 0, or of 4 (N, K / 2), and its scales: see csrc/kernels/weight_only.c."""
    shape, kind = sizes(val.shape), dtypes.float32
    parts = [h.contiguous(y) for y in (h.as_dtype(x, kind), weight, h.as_dtype(scales, kind))]
    out = ResultSpec(shape, dense_strides(shape), kind, val.device)
    made = h.launch(kernels.weight_only, parts, [out], 2 * math.prod(shape) * size(x.sizes[1]), group=group)[0]
    return h.as_dtype(made, val.dtype)


def product_bytes(h, val, x, weight, zero_point, weight_zero_point):
    """The exact product of codes x (..., K) with those of a weight (N, K), less their zero points: see csrc/kernels/product_bytes.c."""
    shape = sizes(val.shape)
    rows = (math.prod(shape[:-1]), size(x.sizes[-1]))
    parts = [h.contiguous(y) for y in (x, weight, zero_point)] + [h.realize(weight_zero_point)]
    parts[0] = h.part(parts[0], rows, dense_strides(rows))
    out = ResultSpec((rows[0], shape[-1]), dense_strides((rows[0], shape[-1])), val.dtype, val.device)
    signed = {"a_signed": x.dtype is dtypes.int8, "b_signed": weight.dtype is dtypes.int8}
    made = h.launch(kernels.product_bytes, parts, [out], math.prod(shape) * rows[1] // 8, **signed)[0]
    strides = dense_strides(shape)
    return h.in_memory(h.part(h.realize(made), shape, strides), val.dtype, strides, val.device)


def chosen_parameters(h, vals, x, low: int, high: int):
    """[scale, zero point] of codes from ``low`` to ``high`` for the whole of ``x``: see csrc/kernels/affine.c."""
    if x.dtype is not dtypes.float32:
        raise NotImplementedError(f"there is no kernel that chooses a scale for {x.dtype}")
    outs = [ResultSpec((), (), v.dtype, v.device) for v in vals]
    why = h.message("quantized: a scale can't be chosen for values that aren't finite", About.CONDITION)
    part = h.contiguous(x)
    flops = 4 * math.prod(part.shape)
    return h.launch(kernels.chosen_parameters, [part], outs, flops, low=low, high=high, not_finite=why)


def product_bf16(h, val, a, b, addend=None, beta=1, alpha=1):
    """``alpha * a @ b + beta * addend`` of what ``blas.takes_bf16`` takes, rounded once; without an addend, the product."""
    return _product_bf16(h, kernels.product_bf16, val, [_by_lines(h, a), _by_lines(h, b)], addend, beta, alpha)


def packed_product_bf16(h, val, a, packed, addend):
    """``a`` times what was packed (csrc/kernels/product_bf16.c) plus ``addend``, which may be None."""
    return _product_bf16(h, kernels.product_bf16_packed, val, [_by_lines(h, a), h.contiguous(packed)], addend, 1, 1)


def _by_lines(h, x):
    """A matrix in memory whose rows or columns are contiguous."""
    part = h.realize(x)
    by_lines = any(part.strides[d] == 1 or part.shape[d] == 1 for d in (-1, -2))
    return part if by_lines else h.contiguous(x)


def _product_bf16(h, kernel, val, given, addend, beta, alpha):
    shape = sizes(val.shape)
    if addend is not None:
        part = h.realize(addend)
        lead = len(shape) - len(part.shape)
        strides = [0 if n == 1 else s for n, s in zip(part.shape, part.strides)]
        given.append(h.part(part, shape, (*[0] * lead, *strides)))
    out = ResultSpec(shape, dense_strides(shape), dtypes.bfloat16, val.device)
    flops = 2 * math.prod(shape) * given[0].shape[-1]
    return h.launch(kernel, given, [out], flops, alpha=alpha, beta=beta)[0]
