"""Running extremes, logarithms of sums, places of what isn't zero, places in sorted sequences and histograms of ndarrays by csrc/kernels/select.c."""

from __future__ import annotations

import numpy

from . import dtypes, kernels
from .kernels import ORDERED, Order, element
from .order import arrange

__all__ = [
    "SEARCHED",
    "between",
    "categories",
    "common_dtype",
    "histogram",
    "logcumsumexp",
    "mode",
    "nonzero",
    "running",
    "search",
]

SEARCHED = ("float32", "float64", "int64")  # dtypes that sequences are searched in; others are turned into one of these


def running(a, dim: int, least: bool):
    """(the greatest, or least, element so far, its last place) along ``dim`` (not negative), both in C order; None for a dtype without a kernel."""
    kind = element(a.dtype, ORDERED)
    if kind is None or not a.dtype.isnative or not a.ndim:
        return None
    a = numpy.ascontiguousarray(a)
    outs = numpy.empty_like(a), numpy.empty(a.shape, numpy.int64)
    kernels.running([a], outs, dim=dim, least=least, element=kind)
    return outs


def logcumsumexp(a, dim: int):
    """log of the running sum of exp(a) along ``dim`` (not negative) of float32 or float64, carried on in float64."""
    a = numpy.ascontiguousarray(a)
    out = numpy.empty_like(a)
    kernels.logcumsumexp([a], [out], dim=dim, f64=a.itemsize == 8)
    return out


def nonzero(a):
    """Coordinates (count, dimensions), int64, of the elements that aren't zero, in their order; those of one dimension lie together."""
    holds = numpy.ascontiguousarray(a if a.dtype == numpy.bool_ else a != 0).reshape(a.shape)
    out = numpy.empty((int(numpy.count_nonzero(holds)), a.ndim), numpy.int64, order="F")
    kernels.nonzero([holds], [out], fill=0)
    return out


def common_dtype(*tensors):
    """The dtype of SEARCHED in which NumPy compares elements of these."""
    if any(t.dtype.is_complex for t in tensors):
        raise NotImplementedError("complex numbers have no order")
    kinds = {dtypes.float32 if t.dtype in (dtypes.float16, dtypes.bfloat16) else t.dtype for t in tensors}
    if kinds == {dtypes.float32}:
        return dtypes.float32
    if any(t.is_floating_point for t in kinds):
        return dtypes.float64
    if dtypes.uint64 in kinds:
        raise NotImplementedError("integers beyond those of int64")
    return dtypes.int64


def search(sequence, values, right: bool, kind=numpy.int64):
    """Places of ``values`` in sorted sequences (one of one dimension for all, or one a row of values); both of a dtype of ``SEARCHED``. ``kind``:
    int64 or int32. nan is the greatest."""
    out = numpy.empty(values.shape, kind)
    arrays = [numpy.ascontiguousarray(x).reshape(x.shape) for x in (sequence, values)]
    kernels.search(arrays, [out], right=right, narrow=out.itemsize == 4, element=element(sequence.dtype, SEARCHED))
    return out


def histogram(a, bins: int, low: float, high: float):
    """Counts in ``bins`` equal intervals of [low, high], a finite range, of float32 or float64, in that dtype."""
    out = numpy.empty(bins, a.dtype)
    kernels.histogram([numpy.ascontiguousarray(a)], [out], f64=a.itemsize == 8, low=low, high=high)
    return out


def between(a, edges, weight=None, equal=True):
    """How many numbers, or the sums of their weights, lie between ``edges`` in ascending order (the last interval is closed), in float64.
    All arrays are of one dtype, float32 or float64. ``equal``: the intervals are about equal, which makes it faster."""
    out = numpy.empty(len(edges) - 1)
    operands = [x if x is None else numpy.ascontiguousarray(x) for x in (a, edges, weight)]
    kernels.cells(operands, [out], f64=a.itemsize == 8, equal=equal)
    return out


def categories(p, draws):
    """The first of the categories whose cumulative probability reaches each draw: ``p`` (rows, categories), floating, ``draws`` (rows,
    samples) float64. The sums are made in float32, of float64 in float64."""
    p = numpy.ascontiguousarray(p if p.dtype == numpy.float64 else p.astype(numpy.float32))
    out = numpy.empty(draws.shape, numpy.int64)
    if out.size:
        kernels.categories([p, numpy.ascontiguousarray(draws)], [out], f64=p.itemsize == 8)
    return out


def mode(lines):
    """The last place of the least of the most frequent numbers of each line; lines are along the last dimension and not empty.
    None for a dtype without a kernel."""
    made = arrange(Order.WHOLE, lines, lines.ndim - 1)
    if made is None:
        return None
    out = numpy.empty(lines.shape[:-1], numpy.int64)
    rows = [x.reshape(-1, x.shape[-1]) for x in made]
    kernels.mode(rows, [out.reshape(-1)], element=element(lines.dtype, ORDERED))
    return out
