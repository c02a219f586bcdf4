"""Functions of NumPy that our kernels compute faster, with NumPy's bits, warnings and errors: what they don't cover they hand to NumPy.

Graphs and native loops that call NumPy ask :func:`served` first. The kernels are in csrc/kernels/statistics.c.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from . import kernels

__all__ = ["served"]

EXACT = 2.0**52  # integers of less than this are float64


def _lines(a):
    """An array as float64 in C order. None where it isn't an array, or its numbers aren't float64."""
    if type(a) is not numpy.ndarray or a.dtype != numpy.float64 or not a.dtype.isnative:
        return None
    return numpy.ascontiguousarray(a)


def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    lines = _lines(a)
    if lines is not None and lines.size and out is None and not overwrite_input and not keepdims:
        if axis is None or (type(axis) is int and a.ndim == 1 and axis in (0, -1)):
            made = numpy.empty(1)
            kernels.middles([lines.reshape(1, -1)], [made])
            if math.isfinite(made[0]):  # of other numbers NumPy may tell
                return made[0]
        elif type(axis) is int and a.ndim > 1 and -a.ndim <= axis < a.ndim:
            lines = numpy.ascontiguousarray(numpy.moveaxis(a, axis, -1))
            made = numpy.empty(lines.shape[:-1])
            kernels.middles([lines.reshape(-1, lines.shape[-1])], [made.reshape(-1)])
            if numpy.isfinite(made).all():
                return made
    return numpy.median(a, axis=axis, out=out, overwrite_input=overwrite_input, keepdims=keepdims)


def histogram(a, bins=10, range=None, density=None, weights=None):
    lines = _lines(a)
    summed = _lines(weights)
    if (
        lines is None
        or type(bins) is not int
        or density
        or (weights is not None and (summed is None or summed.shape != lines.shape))
        or not (range is None or _exact(range))
    ):
        return numpy.histogram(a, bins=bins, range=range, density=density, weights=weights)
    edges = numpy.histogram_bin_edges(lines, bins, range)
    if edges.dtype != numpy.float64 or not math.isfinite(float(edges[-1]) - float(edges[0])):
        return numpy.histogram(a, bins=bins, range=range, density=density, weights=weights)
    made = numpy.empty(bins, numpy.int64 if weights is None else numpy.float64)
    kernels.uniform_histogram([lines, edges, summed], [made])
    return made, edges


def _exact(ends) -> bool:
    """Whether the ends of a range are numbers of Python's that float64 holds."""
    return (
        type(ends) in (tuple, list)
        and len(ends) == 2
        and all(type(x) is float or (type(x) is int and abs(x) < EXACT) for x in ends)
    )


_SERVED: dict[Any, Callable] = {numpy.median: median, numpy.histogram: histogram}


def served(f) -> Callable:
    """What computes a function of NumPy: it itself where there is no kernel."""
    return _SERVED.get(f, f)
