"""Fourier transforms of ndarrays (float32, float64, complex64, complex128) by csrc/kernels/fft.c, over the thread pool."""

from __future__ import annotations

import functools
import math

from . import kernels
from .kernels import Transform

__all__ = ["numbers", "run", "suits"]

_SHORT = 64  # points up to which a vector with a few lines in it is as fast as anything
_LINES = 4  # that make longer vectors worth while
_SPLIT = 256  # of whose multiples even one line fills vectors


@functools.cache
def _points(n: int, real: bool) -> int:
    """Complex points that a line of n takes, 0 for a length with a prime factor above 13."""
    points = n // 2 if real and n % 2 == 0 else n
    rest = points
    for p in (2, 3, 5, 7, 11, 13):
        while rest and rest % p == 0:
            rest //= p
    return points if rest == 1 else 0


def suits(shape, dims, real: bool) -> bool:
    """Whether :func:`run` has these dimensions, the first of ``dims`` of real numbers or of complex ones, and is the fastest way known here."""
    total = math.prod(shape)
    for d in dims:
        points = _points(shape[d], real)
        if not points or (points > _SHORT and points % _SPLIT and total < _LINES * shape[d]):
            return False
        real = False
    return True


def numbers(kind: Transform, dtype, dims, scale: float) -> dict:
    """Those of the kernel `fft`: ``dtype`` is the result's, ``scale`` a factor. Of real numbers (FROM_REAL: the first half of the result;
    FROM_REAL_WHOLE: all of it) the first of ``dims`` is the real one; TO_REAL has one, of which the first half is given."""
    return {"kind": kind, "f64": dtype.char in "dD", "scale": scale, "dims": dims}


def run(a, out, kind: Transform, dims, scale: float) -> None:
    """Write to ``out`` the transform of ``a``; neither is empty, both have any strides."""
    kernels.fft([a], [out], **numbers(kind, out.dtype, dims, scale))
