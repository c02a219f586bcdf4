"""Fourier transforms, and elements at other strides."""

from __future__ import annotations

import math

from ...base import dtypes, fft, kernels
from ...base.kernels import Sharing, Transform
from ...base.result_spec import ResultSpec
from ...base.sizes import dense_strides, sizes

__all__ = ["restride", "transform"]


def restride(h, val, x, source, made, sharing: Sharing):
    """Elements of ``x`` put into memory by the strides and offset ``source``, and read from there by ``made``; see csrc/kernels/strides.c."""
    (source_strides, source_offset), (made_strides, made_offset) = source, made
    shape = sizes(val.shape)
    numbers = [*x.shape, *shape, *source_strides, *made_strides, source_offset, made_offset]
    if x.dtype not in (dtypes.float32, dtypes.float64) or max(x.ndim, len(shape)) > 8:
        raise NotImplementedError(f"there are no views by strides of {x.ndim} dimensions of {x.dtype}")
    if not all(type(n) is int for n in numbers):
        raise NotImplementedError("strides that aren't known")
    out = ResultSpec(shape, dense_strides(shape), x.dtype, val.device)
    places = {"source_strides": tuple(source_strides), "made_strides": tuple(made_strides)}
    offsets = {"source_offset": source_offset, "made_offset": made_offset}
    flops = math.prod(x.shape) + 2 * math.prod(shape)
    part = h.contiguous(x)
    return h.launch(
        kernels.restride, [part], [out], flops, sharing=sharing, f64=x.dtype is dtypes.float64, **places, **offsets
    )[0]


def transform(h, kind: Transform, x, dims, shape, strides, dtype, scale):
    """A kind of transform of base/fft.py along ``dims`` in its order, of lengths that its ``suits`` takes; strides and dtype: the result's."""
    out = ResultSpec(sizes(shape), sizes(strides), dtype, x.device)
    numbers = fft.numbers(kind, dtype.np, dims, scale)
    return h.launch(kernels.fft, [h.realize(x)], [out], 60 * math.prod(out.shape), **numbers)[0]
