"""What kernels compute in."""

from __future__ import annotations

from ...base import dtypes

__all__ = ["FLOATS", "single"]

FLOATS = {dtypes.float32: "f32", dtypes.float64: "f64"}  # as base/blas.py names them


def single(dtype):
    """What a kernel computes in."""
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return dtypes.float32
    if dtype not in (dtypes.float32, dtypes.float64):
        raise NotImplementedError(f"there is no kernel for {dtype}")
    return dtype
