"""Products with weights of 8 and 4 bits on ndarrays: csrc/kernels/weight_only.c."""

from __future__ import annotations

import numpy

from . import blas, kernels

__all__ = ["BLOCK", "multiply", "pack"]

BLOCK = 32  # weights of four bits that lie in 16 bytes: the first half in the low halves, the second in the high ones


def multiply(x, weight, scales, group: int):
    """x W^T, float32 (M, N). ``weight`` int8 (N, K) with ``scales`` (N) and ``group`` 0; or uint8 (N, K / 2) as :func:`pack` leaves it
    with ``scales`` (K / group, N, 2), scale and zero of each group. x and the scales are read as float32; a weight is w * scale or
    (w - 8) * scale + zero."""
    blas.share_threads()
    x, scales = (numpy.ascontiguousarray(a, numpy.float32) for a in (x, scales))
    out = numpy.empty((x.shape[0], weight.shape[0]), numpy.float32)
    kernels.weight_only([x, numpy.ascontiguousarray(weight), scales], [out], group=group)
    return out


def pack(weight):
    """Integers 0 to 15 (N, K), K a multiple of 32, two to a byte: uint8 (N, K / 2)."""
    n, k = weight.shape
    low, high = numpy.moveaxis((weight & 15).astype(numpy.uint8).reshape(n, k // BLOCK, 2, BLOCK // 2), 2, 0)
    return (low | high << 4).reshape(n, k // 2)
