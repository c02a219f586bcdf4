"""Tensors whose values have to fit another dtype, as numbers have to that are written into a tensor."""

from __future__ import annotations

import math

import numpy as np

from ...base import dtypes
from ...core.declare import pointwise
from ...core.operator import namespace

__all__ = ["held"]

aten = namespace("aten")


@pointwise(
    "_check_between(Tensor self, Scalar low, Scalar high, bool infinite, str message) -> Tensor",
    variants="",
    operands=("self",),
    inplace=False,
    has_out=False,
)
def check_between(s, self, low, high, infinite, message):
    """The same values. RuntimeError with the message unless all lie between the two; infinities and nan may be allowed."""
    return self


@check_between.override("eager")
def _eager(self, low, high, infinite, message):
    x = self._array
    inside = (low <= x) & (x <= high)
    if not (inside | ~np.isfinite(x) if infinite else inside).all():
        raise RuntimeError(message)
    return aten.clone.default(self)


@check_between.override("lower")
def _lower(lowering, val, self, low, high, infinite, message):
    def seen(s, x):
        inside = s.logical_and(s.ge(x, low), s.le(x, high))
        if infinite:
            inside = s.logical_or(inside, s.logical_or(s.ne(x, x), s.eq(s.abs(x), math.inf)))
        return s.where(lowering.expect(inside, message), x, 0)

    return lowering.mapped(seen, self, val)


def held(t, dtype):
    """``t``, a tensor without dimensions. RuntimeError where ``dtype`` doesn't hold its value: at once, or when the graph runs."""
    of = t.dtype
    if of is dtype or of.category == 0 or dtype.category == 0:
        return t
    if getattr(t, "_array", None) is not None:
        dtypes.check_number(t.item(), dtype)
        return t
    if dtype.category == 3 or of.category == 3:
        return t
    (least, most), (low, high) = _range(of), dtypes.limits(dtype)
    if of.category == 2 and dtype.category == 1 and dtype.np.kind == "u":
        low = 0  # only integers wrap to unsigned numbers
    if low <= least and most <= high:
        return t
    low, high = max(low, least), min(high, most)
    if of.category == 2 and dtype.category == 1:
        high = _below(high, np.dtype(np.float64 if of is dtypes.float64 else np.float32))
    return aten._check_between.default(t, low, high, dtype.category == 2, dtypes.overflow(dtype))


def _range(dtype) -> tuple:
    found = dtypes.iinfo(dtype) if dtype.category == 1 else dtypes.finfo(dtype)
    return found.min, found.max


def _below(limit: int, dtype: np.dtype) -> float:
    """The largest number of a floating ``dtype`` that isn't above the limit."""
    near = dtype.type(limit)
    return float(near if int(near) <= limit else np.nextafter(near, dtype.type(0)))
