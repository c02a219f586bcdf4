"""Right operands of matrix products that are packed once for many calls: csrc/kernels/prepack.c and csrc/kernels/product_bf16.c.

What is packed depends on the CPU and on the number of rows that the products have; it belongs to this process."""

from __future__ import annotations

import numpy

from .. import _runtime
from . import blas, dtypes, kernels

__all__ = ["elements", "multiply", "pack"]

_TYPES = {dtypes.float32.np: 0, dtypes.float64.np: 1, dtypes.bfloat16.np: 2}


def elements(dtype, rows: int, columns: int, deep: int, transposed: bool) -> tuple[int, int]:
    """(elements that a matrix (deep, columns) takes packed, the way), where (rows, deep) multiplies it from the left; (0, 0): it stays as it is.
    ``transposed``: columns are contiguous, not rows. ``dtype``: NumPy's."""
    if dtype not in _TYPES:
        return 0, 0
    blas.share_threads()
    return _runtime.packed_elements(_TYPES[dtype], transposed, rows, columns, deep)


def pack(b: numpy.ndarray, size: int, transposed: bool, way: int) -> numpy.ndarray:
    """``b`` (deep, columns) in panels: ``size`` elements."""
    blas.share_threads()
    out = numpy.empty(size, b.dtype)
    if _TYPES[b.dtype] == 2:
        kernels.prepack_bf16([b], [out])
    else:
        kernels.prepack([b], [out], transposed=transposed, f64=b.itemsize == 8, way=way)
    return out


def multiply(
    a: numpy.ndarray, packed: numpy.ndarray, columns: int, transposed: bool, way: int, addend=None
) -> numpy.ndarray:
    """``a`` (rows, deep) times what was packed; see csrc/kernels/product.c for its bits. ``addend``: of bfloat16, added before the result is
    rounded."""
    blas.share_threads()
    out = numpy.empty((a.shape[0], columns), a.dtype)
    a = numpy.ascontiguousarray(a)
    if _TYPES[a.dtype] == 2:
        spread = None if addend is None else numpy.broadcast_to(addend, out.shape)
        kernels.product_bf16_packed([a, packed, spread], [out], alpha=1.0, beta=1.0)
    else:
        kernels.product_packed([a, packed], [out], transposed=transposed, f64=a.itemsize == 8, way=way)
    return out
