"""Products of lines of ndarrays by csrc/kernels/products.c, and which arrays have them."""

from __future__ import annotations

import math

import numpy

from . import kernels
from .shapes import contiguous_strides

__all__ = ["line_products", "lines"]

_SHORT = 16  # terms that NumPy multiplies as fast


def lines(shape, strides, dtype: numpy.dtype, axes) -> tuple[int, int] | None:
    """(lines, terms) where products over ``axes`` are those of lines one after the other in memory, long enough for the kernel.
    ``strides``: in bytes."""
    count = len(axes)
    if dtype.char not in "fd" or sorted(axes) != list(range(len(shape) - count, len(shape))):
        return None
    terms = math.prod(shape[len(shape) - count :])
    if terms < _SHORT or strides != tuple(s * dtype.itemsize for s in contiguous_strides(shape)):
        return None
    return math.prod(shape) // terms, terms


def line_products(x, axes, dtype: numpy.dtype):
    """``numpy.multiply.reduce``, by partial products side by side where the terms are."""
    x = x if x.dtype == dtype else x.astype(dtype, order="C")
    found = lines(x.shape, x.strides, x.dtype, axes)
    if found is None:
        return numpy.multiply.reduce(x, axis=axes, dtype=dtype)
    out = numpy.empty(x.shape[: x.ndim - len(axes)], x.dtype)
    kernels.line_products([x.reshape(found)], [out.reshape(-1)], f64=x.itemsize == 8)
    return out
