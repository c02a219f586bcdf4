"""Sorting of ndarrays along one dimension by csrc/kernels/order.c: stable, nan the greatest, zeros of both signs equal."""

from __future__ import annotations

import math

import numpy

from . import kernels
from .kernels import ORDERED, Order, element

__all__ = ["LONGEST", "arrange"]

LONGEST = 2**31 - 1  # elements of a line


def arrange(part: Order, a, dim: int, descending=False, k: int = 0, strides=None, sorted=True):
    """(values, places) of ``part`` of the lines of ``a`` along ``dim`` (not negative): the WHOLE line in order, its FIRST ``k``, or one element,
    that of RANK ``k`` (from 0), the MEDIAN (of an even number the lower one; the first nan where there is one) or the NANMEDIAN. ``strides``: of
    the results in elements, C order without. None for a dtype, or a length, that there is no kernel for."""
    kind = element(a.dtype, ORDERED)
    if kind is None or not a.dtype.isnative or a.shape[dim] > LONGEST:
        return None
    if not a.flags.aligned:
        a = numpy.ascontiguousarray(a)
    count = {Order.WHOLE: a.shape[dim], Order.FIRST: k}.get(part, 1)
    shape = (*a.shape[:dim], count, *a.shape[dim + 1 :])
    outs = [_blank(shape, strides, t) for t in (a.dtype, numpy.dtype(numpy.int64))]
    if math.prod(shape):
        numbers = {"descending": bool(descending), "sorted": bool(sorted), "element": kind}
        kernels.order([a], outs, dim=dim, part=part, k=k, **numbers)
    return tuple(outs)


def _blank(shape, strides, dtype):
    if strides is None:
        return numpy.empty(shape, dtype)
    size = numpy.empty(math.prod(shape), dtype)
    return numpy.ndarray(shape, dtype, size, 0, [s * dtype.itemsize for s in strides])
