"""Right operands of matrix products that are packed once for many calls: csrc/prepack.c and csrc/product_bf16.c.

What is packed depends on the CPU and on the number of rows that the products have; it belongs to this process."""

from __future__ import annotations

import numpy

from .. import _runtime
from . import blas, dtypes

__all__ = ["elements", "multiply", "pack"]

_TYPES = {dtypes.float32.np: 0, dtypes.float64.np: 1, dtypes.bfloat16.np: 2}


def elements(dtype, rows: int, columns: int, deep: int, turned: bool) -> tuple[int, int]:
    """(elements that a matrix (deep, columns) takes packed, the way), where (rows, deep) multiplies it from the left; (0, 0): it stays as it is.
    ``turned``: columns are contiguous, not rows. ``dtype``: NumPy's."""
    if dtype not in _TYPES:
        return 0, 0
    blas.share_threads()
    return _runtime.packed_elements(_TYPES[dtype], turned, rows, columns, deep)


def pack(b: numpy.ndarray, size: int, turned: bool, way: int) -> numpy.ndarray:
    """``b`` (deep, columns) in panels: ``size`` elements."""
    blas.share_threads()
    out = numpy.empty(size, b.dtype)
    if _TYPES[b.dtype] == 2:
        _runtime.native("prepack_bf16", (b, out), ())
    else:
        _runtime.native("prepack", (b, out), (turned, _TYPES[b.dtype], way))
    return out


def multiply(
    a: numpy.ndarray, packed: numpy.ndarray, columns: int, turned: bool, way: int, addend=None
) -> numpy.ndarray:
    """``a`` (rows, deep) times what was packed; see csrc/product.c for its bits. ``addend``: of bfloat16, added before the result is rounded."""
    blas.share_threads()
    out = numpy.empty((a.shape[0], columns), a.dtype)
    a = numpy.ascontiguousarray(a)
    if _TYPES[a.dtype] == 2:
        more = () if addend is None else (numpy.broadcast_to(addend, out.shape),)
        _runtime.native("product_bf16_packed", (a, packed, *more, out), _ONES if more else ())
    else:
        _runtime.native("product_packed", (a, packed, out), (turned, _TYPES[a.dtype], way))
    return out


_ONES = (numpy.float64(1).view(numpy.int64).item(),) * 2  # alpha and beta
