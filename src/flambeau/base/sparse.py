"""Sparse matrices as ndarrays: products by rows, grouping and sorting of coordinates, by csrc/kernels/sparse.c.

A matrix here is (ranges, columns, values): row ``r`` stores ``columns[ranges[r]:ranges[r + 1]]``. IndexError for ranges or columns that lead outside.
"""

from __future__ import annotations

import numpy

from . import kernels
from .kernels import element

__all__ = ["COMPUTED", "combine", "expand", "group", "times_dense", "times_sparse", "widened"]

COMPUTED = ("float32", "float64", "complex64", "complex128", "int64")  # dtypes that the kernels compute in
_COMPUTED = frozenset(map(numpy.dtype, COMPUTED))  # NumPy makes the name of a dtype anew each time


def widened(a):
    """``a`` in a dtype that the kernels know: 16-bit floating point as float32, other integers as int64, which wraps around."""
    if a.dtype in _COMPUTED:
        return a
    floating = a.dtype.kind in "fV" and a.dtype.itemsize == 2
    return a.astype(numpy.float32 if floating else numpy.int64)


def _index(a):
    return numpy.ascontiguousarray(a, numpy.int64)


def expand(ranges):
    """The row of each column stored."""
    return numpy.repeat(numpy.arange(len(ranges) - 1), numpy.diff(ranges))


def group(keys, count: int, in_order=False):
    """(ranges of equal keys of [0, count), the stable order of keys); the order is empty where the keys are ``in_order``."""
    ranges, order = numpy.empty(count + 1, numpy.int64), numpy.empty(0 if in_order else len(keys), numpy.int64)
    kernels.sparse_group([_index(keys)], [ranges, order])
    return ranges, order


def times_dense(matrix, dense):
    """(rows, k) by rows times (k, n): (rows, n) in C order, of the dtype that the operands are widened to (they have the same)."""
    ranges, columns, values = matrix
    out = numpy.empty((len(ranges) - 1, dense.shape[1]), values.dtype)
    arrays = _index(ranges), _index(columns), numpy.ascontiguousarray(values), numpy.ascontiguousarray(dense)
    kernels.sparse_dense(arrays, [out], element=element(values.dtype, COMPUTED))
    return out


def times_sparse(a, b, n: int):
    """The product of two matrices by rows, of which the right one has ``n`` columns; columns in order, what cancels out is stored as zero."""
    (ar, ac, av), (br, bc, bv) = [(_index(r), _index(c), numpy.ascontiguousarray(v)) for r, c, v in (a, b)]
    ranges = numpy.zeros(len(ar), numpy.int64)
    kernels.sparse_count([ar, ac, br, bc], [ranges[1:]], n=n)
    numpy.cumsum(ranges, out=ranges)
    columns, values = numpy.empty(int(ranges[-1]), numpy.int64), numpy.empty(int(ranges[-1]), av.dtype)
    kind = element(av.dtype, COMPUTED)
    kernels.sparse_sparse([ar, ac, av, br, bc, bv, ranges], [columns, values], n=n, element=kind)
    return ranges, columns, values


def combine(coordinates, values):
    """Coordinates (dims, n) in lexicographic order, each once, and the sums of the values (n, ...) that stand at each, in their dtype."""
    coordinates = _index(coordinates)
    stored = coordinates.shape[1]
    order, starts, count = (
        numpy.empty(stored, numpy.int64),
        numpy.empty(stored + 1, numpy.int64),
        numpy.empty(1, numpy.int64),
    )
    kernels.sparse_order([coordinates], [order, starts, count])
    count = int(count[0])
    wide = numpy.ascontiguousarray(widened(values)).reshape(stored, -1 if values.size else 0)
    places, sums = numpy.empty((len(coordinates), count), numpy.int64), numpy.empty((count, wide.shape[1]), wide.dtype)
    kernels.sparse_sums([coordinates, wide, order, starts], [places, sums], element=element(wide.dtype, COMPUTED))
    if sums.dtype != values.dtype:
        sums = sums.astype(values.dtype)
    return places, sums.reshape(count, *values.shape[1:])
