"""Sorting of ndarrays along one dimension by csrc/order.c: stable, nan the greatest, zeros of both signs equal."""

from __future__ import annotations

import math

import numpy

from .. import _runtime

__all__ = ["FIRST", "KINDS", "MEDIAN", "NANMEDIAN", "RANK", "WHOLE", "arrange"]

WHOLE, FIRST, RANK, MEDIAN, NANMEDIAN = range(5)

# What the kernels know, by the dtype's name in NumPy.
KINDS = {
    **{"float32": 0, "float64": 1, "int64": 2, "int32": 3, "int16": 4, "int8": 5, "uint8": 6, "bool": 6},
    **{"float16": 7, "bfloat16": 8},
}
LONGEST = 2**31 - 1  # elements of a line


def arrange(what: int, a, dim: int, descending=False, k: int = 0, strides=None, sorted=True):
    """(values, places) of lines of ``a`` along ``dim`` (not negative): the WHOLE line in order, its FIRST ``k``, or one element: that of RANK ``k``
    (from 0), the MEDIAN (of an even number the lower one; the first nan where there is one) or the NANMEDIAN. ``strides``: of the results in
    elements, C order without. None for a dtype, or a length, that there is no kernel for."""
    kind = KINDS.get(a.dtype.name)
    if kind is None or not a.dtype.isnative or a.shape[dim] > LONGEST:
        return None
    if not a.flags.aligned:
        a = numpy.ascontiguousarray(a)
    count = {WHOLE: a.shape[dim], FIRST: k}.get(what, 1)
    shape = (*a.shape[:dim], count, *a.shape[dim + 1 :])
    outs = [_blank(shape, strides, t) for t in (a.dtype, numpy.dtype(numpy.int64))]
    if math.prod(shape):
        _runtime.native("order", (a, *outs), (dim, what, kind, bool(descending), k, bool(sorted)))
    return tuple(outs)


def _blank(shape, strides, dtype):
    if strides is None:
        return numpy.empty(shape, dtype)
    size = numpy.empty(math.prod(shape), dtype)
    return numpy.ndarray(shape, dtype, size, 0, [s * dtype.itemsize for s in strides])
