"""Running extremes, logarithms of sums, places of what isn't zero, places in sorted sequences and histograms of ndarrays by csrc/select.c."""

from __future__ import annotations

import struct

import numpy

from .. import _runtime
from .order import KINDS, WHOLE, arrange

__all__ = ["SEARCHED", "between", "categories", "histogram", "logcumsumexp", "mode", "nonzero", "running", "search"]

# Kinds of element that sequences are searched in, by name; others are turned into one of these.
SEARCHED = {name: KINDS[name] for name in ("float32", "float64", "int64")}


def running(a, dim: int, least: bool):
    """(the greatest, or least, element so far, its last place) along ``dim`` (not negative), both in C order; None for a dtype without a kernel."""
    kind = KINDS.get(a.dtype.name)
    if kind is None or not a.dtype.isnative or not a.ndim:
        return None
    a = numpy.ascontiguousarray(a)
    outs = numpy.empty_like(a), numpy.empty(a.shape, numpy.int64)
    _runtime.native("running", (a, *outs), (dim, kind, least))
    return outs


def logcumsumexp(a, dim: int):
    """log of the running sum of exp(a) along ``dim`` (not negative) of float32 or float64, carried on in float64."""
    a = numpy.ascontiguousarray(a)
    out = numpy.empty_like(a)
    _runtime.native("logcumsumexp", (a, out), (dim, a.itemsize == 8))
    return out


def nonzero(a):
    """Coordinates (count, dimensions), int64, of the elements that aren't zero, in their order; those of one dimension lie together."""
    holds = numpy.ascontiguousarray(a if a.dtype == numpy.bool_ else a != 0).reshape(a.shape)
    out = numpy.empty((int(numpy.count_nonzero(holds)), a.ndim), numpy.int64, order="F")
    _runtime.native("nonzero", (holds, out), (0,))
    return out


def search(sequence, values, right: bool, kind=numpy.int64):
    """Places of ``values`` in sorted sequences (one of one dimension for all, or one a row of values); both of a dtype of ``SEARCHED``. ``kind``:
    int64 or int32. nan is the greatest."""
    out = numpy.empty(values.shape, kind)
    arrays = [numpy.ascontiguousarray(x).reshape(x.shape) for x in (sequence, values)]
    _runtime.native("search", (*arrays, out), (SEARCHED[sequence.dtype.name], right, out.itemsize == 4))
    return out


def histogram(a, bins: int, low: float, high: float):
    """Counts in ``bins`` equal intervals of [low, high], a finite range, of float32 or float64, in that dtype."""
    out = numpy.empty(bins, a.dtype)
    _runtime.native("histogram", (numpy.ascontiguousarray(a), out), (a.itemsize == 8, *map(bits, (low, high)), 0))
    return out


def between(a, edges, weight=None, equal=True):
    """How many numbers, or the sums of their weights, lie between ``edges`` in ascending order (the last interval is closed), in float64.
    All arrays are of one dtype, float32 or float64. ``equal``: the intervals are about equal, which makes it faster."""
    out = numpy.empty(len(edges) - 1)
    views = [numpy.ascontiguousarray(x) for x in (a, edges, *([] if weight is None else [weight]))]
    _runtime.native("cells", (*views, out), (a.itemsize == 8, equal))
    return out


def categories(p, draws):
    """The first of the categories whose cumulative probability reaches each draw: ``p`` (rows, categories), floating, ``draws`` (rows,
    samples) float64. The sums are made in float32, of float64 in float64."""
    p = numpy.ascontiguousarray(p if p.dtype == numpy.float64 else p.astype(numpy.float32))
    out = numpy.empty(draws.shape, numpy.int64)
    if out.size:
        _runtime.native("categories", (p, numpy.ascontiguousarray(draws), out), (p.itemsize == 8, 0, 0, 0))
    return out


def mode(lines):
    """The last place of the least of the most frequent numbers of each line; lines are along the last dimension and not empty.
    None for a dtype without a kernel."""
    made = arrange(WHOLE, lines, lines.ndim - 1)
    if made is None:
        return None
    out = numpy.empty(lines.shape[:-1], numpy.int64)
    _runtime.native("mode", (*(x.reshape(-1, x.shape[-1]) for x in made), out.reshape(-1)), (KINDS[lines.dtype.name],))
    return out


def bits(x: float) -> int:
    """A double as an integer of 64 bits with a sign."""
    return struct.unpack("q", struct.pack("d", x))[0]
