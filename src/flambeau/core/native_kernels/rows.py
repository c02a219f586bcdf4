"""Kernels by rows, in eager calls."""

from __future__ import annotations

import math

from ...base import dtypes, kernels
from ...base.result_spec import ResultSpec
from ...base.shapes import normalize_dim
from ...base.sizes import dense_strides
from .computing import single

__all__ = ["grid_sample", "layer_norm", "softmax"]


def softmax(h, x, dim, logarithm: bool):
    """Softmax, or its logarithm, along a dimension, see csrc/kernels/normal.c."""
    kind, shape = single(x.dtype), tuple(x.shape)
    if not math.prod(shape) or not shape:
        raise NotImplementedError("there is nothing to normalize")
    d = normalize_dim(dim, len(shape))
    rows = (math.prod(shape[:d]), shape[d], math.prod(shape[d + 1 :]))
    part = h.part(h.contiguous(h.as_dtype(x, kind)), rows, dense_strides(rows))
    out = ResultSpec(rows, dense_strides(rows), kind, x.device)
    made = h.launch(
        kernels.softmax, [part], [out], 20 * math.prod(shape), logarithm=logarithm, f64=kind is dtypes.float64
    )
    return h.as_dtype(h.part(made[0], shape, dense_strides(shape)), x.dtype)


def grid_sample(h, image, grid, nearest: bool, border: bool, corners: bool):
    """Images (N, C, H, W) at the points of a grid (N, h, w, 2): see csrc/kernels/grid_sample.c."""
    kind, (n, channels, height, width), points = image.dtype, tuple(image.shape), tuple(grid.shape[1:3])
    if kind not in (dtypes.float32, dtypes.float64) or not math.prod((*image.shape, *points)):
        raise NotImplementedError(f"images of {kind} and sizes {list(image.shape)} aren't sampled here")
    if height * width >= 1 << 31:
        raise NotImplementedError("places in an image are 32-bit numbers")
    line, shape = (n, math.prod(points), 2), (n, channels, *points)
    operands = [h.contiguous(image), h.part(h.contiguous(grid), line, dense_strides(line))]
    out = ResultSpec(shape, dense_strides(shape), kind, image.device)
    numbers = {"nearest": nearest, "border": border, "corners": corners, "f64": kind is dtypes.float64}
    return h.launch(kernels.grid_sample, operands, [out], 20 * math.prod(shape), **numbers)[0]


def layer_norm(h, x, count: int, weight, bias, eps: float):
    """[output, mean, reciprocal deviation] over the last ``count`` dimensions; weight and bias of their sizes, or None."""
    kind, shape = single(x.dtype), tuple(x.shape)
    if not math.prod(shape):
        raise NotImplementedError("there is nothing to normalize")
    lead = shape[: len(shape) - count]
    rows, each = (math.prod(lead), math.prod(shape[len(lead) :])), (*lead, *[1] * count)
    part = h.part(h.contiguous(h.as_dtype(x, kind)), rows, dense_strides(rows))
    affine = [t and h.part(h.contiguous(h.as_dtype(t, kind)), rows[1:], (1,)) for t in (weight, bias)]
    outs = [ResultSpec(s, dense_strides(s), kind, x.device) for s in (rows, rows[:1], rows[:1])]
    made = h.launch(
        kernels.layer_norm, [part, *affine], outs, 10 * math.prod(shape), eps=float(eps), f64=kind is dtypes.float64
    )
    shapes = (shape, each, each)
    return [h.as_dtype(h.part(m, s, dense_strides(s)), x.dtype) for m, s in zip(made, shapes)]
