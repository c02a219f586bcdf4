"""Reductions and running sums."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..base.symint import sym_float, sym_max
from ..core.operator import namespace
from ..core.tensor import Tensor
from .layout import kept
from .promotion import as_tensor, cast, dtype_of, numpy_dtype, result_dtype
from .table import implements, into, later

aten = namespace("aten")
_FLOAT = "fd"


def axes_of(x: Tensor, axis: int | Sequence[int] | None) -> list[int]:
    """Non-negative axes (all for None). AxisError as in NumPy."""
    if axis is None:
        return list(range(x.ndim))
    given = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    out = []
    for a in map(operator.index, given):
        if not -x.ndim <= a < x.ndim:
            raise np.exceptions.AxisError(a, x.ndim)
        out.append(a % x.ndim)
    if len(set(out)) != len(out):
        raise ValueError("duplicate value in 'axis'")
    return out


def _default(x, dtype, wide=True):
    """dtype that sums and products are computed in: small integers in the default integer."""
    if dtype is not None:
        return numpy_dtype(dtype)
    d = dtype_of(x)
    if d.kind == "b" or (wide and d.kind == "i" and d.itemsize < 8):
        return np.dtype(np.int64)
    return d


def _covered(name, d):
    if d.char not in "?bhilqfd":
        raise TypeError(f"np.{name} in {d}")
    return d


def _plain(initial, where):
    if initial is not np._NoValue or where is not np._NoValue and where is not True:
        raise TypeError("reductions with initial= or where=")


@implements(np.sum, method="sum")
def sum(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    initial: Any = np._NoValue,
    where: ArrayLike = np._NoValue,
) -> Tensor:
    """np.sum."""
    _plain(initial, where)
    x = as_tensor(a)
    if dtype is None and dtype_of(x).kind == "u":
        raise TypeError(f"np.sum in {dtype_of(x)}")
    x = cast(x, _covered("sum", _default(x, dtype)))
    axes = axes_of(x, axis)
    if not axes and x.ndim:
        return into(out, x.clone())
    return into(
        out, kept(aten.sum.dim_IntList(x, axes, bool(keepdims), dtype=x.dtype), x, reduced=axes, keepdims=keepdims)
    )


@implements(np.prod, method="prod")
def prod(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    initial: Any = np._NoValue,
    where: ArrayLike = np._NoValue,
) -> Tensor:
    """np.prod."""
    _plain(initial, where)
    x = as_tensor(a)
    if dtype is None and dtype_of(x).kind == "u":
        raise TypeError(f"np.prod in {dtype_of(x)}")
    x = cast(x, _covered("prod", _default(x, dtype)))
    axes = axes_of(x, axis)
    if len(axes) == x.ndim:
        r = aten.prod.default(x, dtype=x.dtype)
        return into(out, r.reshape([1] * x.ndim) if keepdims else r)
    r = x
    for d in sorted(axes, reverse=True):
        r = aten.prod.dim_int(r, d, bool(keepdims), dtype=x.dtype)
    return into(out, kept(r, x, reduced=axes, keepdims=keepdims))


def _inexact(a, dtype, name):
    x = as_tensor(a)
    d = numpy_dtype(dtype) if dtype is not None else np.dtype(np.float64) if dtype_of(x).kind in "biu" else dtype_of(x)
    if d.char not in _FLOAT:
        raise TypeError(f"np.{name} in {d}")
    return cast(x, d)


def _count(x, axes, left_out=0):
    """How many elements a mean is of. TypeError where NumPy warns that there are too few."""
    n = math.prod(x.shape[d] for d in axes)
    if isinstance(left_out, (int, float)) and n <= left_out:
        raise TypeError("a mean of nothing")
    return n


def _is_without_elements(x) -> bool:
    return any(type(n) is int and n == 0 for n in x.shape)


@implements(np.mean, method="mean")
def mean(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike = np._NoValue,
) -> Tensor:
    """np.mean: in float64 for integers."""
    _plain(np._NoValue, where)
    x = _inexact(a, dtype, "mean")
    axes = axes_of(x, axis)
    if not axes and x.ndim:
        return into(out, x.clone())
    total = aten.sum.dim_IntList(x, axes, bool(keepdims))
    return into(out, kept(aten.div(total, sym_float(_count(x, axes))), x, reduced=axes, keepdims=keepdims))


@implements(np.var, method="var")
def var(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike = np._NoValue,
    mean: Any = np._NoValue,
    correction: Any = np._NoValue,
) -> Tensor:
    """np.var, in two passes."""
    _plain(np._NoValue, where)
    if mean is not np._NoValue:
        raise TypeError("np.var with mean=")
    if correction is not np._NoValue:
        if ddof != 0:
            raise TypeError("np.var with ddof= and correction=")
        ddof = correction
    x = _inexact(a, dtype, "var")
    axes = axes_of(x, axis)
    n = _count(x, axes, ddof)
    centred = (
        aten.sub(x, aten.div(aten.sum.dim_IntList(x, axes, True), sym_float(n)))
        if axes or not x.ndim
        else aten.sub(x, x)
    )
    squares = aten.mul(centred, centred)
    total = aten.sum.dim_IntList(squares, axes, bool(keepdims)) if axes or not x.ndim else squares
    return into(out, kept(aten.div(total, sym_float(sym_max(n - ddof, 0))), x, reduced=axes, keepdims=keepdims))


@implements(np.std, method="std")
def std(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike = np._NoValue,
    mean: Any = np._NoValue,
    correction: Any = np._NoValue,
) -> Tensor:
    """np.std, the root of np.var."""
    return into(
        out, aten.sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction))
    )


@implements(np.average)
def average(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Tensor:
    """np.average, with weights of the shape of ``a`` or along one axis."""
    if returned:
        raise TypeError("np.average with returned=True")
    x = as_tensor(a)
    if _is_without_elements(x):
        raise TypeError("np.average of nothing, of which NumPy warns or raises")
    if weights is None:
        return mean(x, axis, keepdims=keepdims)
    w = as_tensor(weights)
    d = result_dtype(x, w, np.float64) if dtype_of(x).kind in "biu" else result_dtype(x, w)
    x, w = _inexact(x, d, "average"), cast(w, d)
    if tuple(w.shape) != tuple(x.shape):
        if not isinstance(axis, int) or w.ndim != 1 or w.shape[0] != x.shape[axis]:
            raise TypeError("np.average with weights of another shape")
        w = w.reshape([-1 if k == axis % x.ndim else 1 for k in range(x.ndim)]).expand(x.shape)
    axes = axes_of(x, axis)
    return aten.div(
        aten.sum.dim_IntList(aten.mul(x, w), axes, bool(keepdims)), aten.sum.dim_IntList(w, axes, bool(keepdims))
    )


def _extreme(packet, name):
    def extreme(
        a: ArrayLike,
        axis: int | Sequence[int] | None = None,
        out: Tensor | None = None,
        keepdims: bool = False,
        initial: Any = np._NoValue,
        where: ArrayLike = np._NoValue,
    ) -> Tensor:
        _plain(initial, where)
        x = as_tensor(a)
        if dtype_of(x).char not in "?bhilqBHILQfd":
            raise TypeError(f"np.{name} in {dtype_of(x)}")
        axes = axes_of(x, axis)
        if _count(x, axes) == 0:
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        if not axes:
            return into(out, x.clone())
        return into(out, kept(packet.default(x, axes, bool(keepdims)), x, reduced=axes, keepdims=keepdims))

    extreme.__name__ = extreme.__qualname__ = name
    return extreme


max_ = implements(np.max, np.amax, method="max")(_extreme(aten.amax, "max"))
min_ = implements(np.min, np.amin, method="min")(_extreme(aten.amin, "min"))


@implements(np.ptp)
def ptp(
    a: ArrayLike, axis: int | Sequence[int] | None = None, out: Tensor | None = None, keepdims: bool = False
) -> Tensor:
    """np.ptp: the greatest minus the least."""
    if dtype_of(as_tensor(a)).kind == "b":
        raise TypeError("np.ptp of booleans")
    return into(out, aten.sub(max_(a, axis, keepdims=keepdims), min_(a, axis, keepdims=keepdims)))


def _position(packet, name):
    def position(a: ArrayLike, axis: int | None = None, out: Tensor | None = None, *, keepdims: bool = False) -> Tensor:
        x = as_tensor(a)
        if dtype_of(x).char not in "?bhilqBHILQfd":
            raise TypeError(f"np.{name} in {dtype_of(x)}")
        if axis is None:
            r = packet.default(aten.reshape.default(x, [-1]), 0)
            return into(out, r.reshape([1] * x.ndim) if keepdims else r)
        if isinstance(axis, (tuple, list)):
            raise TypeError(f"np.{name} takes one axis")
        return into(out, packet.default(x, axes_of(x, axis)[0], bool(keepdims)))

    position.__name__ = position.__qualname__ = name
    return position


implements(np.argmax, method="argmax")(_position(aten.argmax, "argmax"))
implements(np.argmin, method="argmin")(_position(aten.argmin, "argmin"))


def _truth(packet, name):
    def truth(
        a: ArrayLike,
        axis: int | Sequence[int] | None = None,
        out: Tensor | None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike = np._NoValue,
    ) -> Tensor:
        _plain(np._NoValue, where)
        x = cast(as_tensor(a), np.bool_)
        axes = axes_of(x, axis)
        if len(axes) == x.ndim:
            r = packet.default(x)
            return into(out, r.reshape([1] * x.ndim) if keepdims else r)
        r = x
        for d in sorted(axes, reverse=True):
            r = packet.dim(r, d, bool(keepdims))
        return into(out, kept(r, x, reduced=axes, keepdims=keepdims))

    truth.__name__ = truth.__qualname__ = name
    return truth


any_ = implements(np.any, method="any")(_truth(aten.any, "any"))
all_ = implements(np.all, method="all")(_truth(aten.all, "all"))


def _running(packet, name):
    def running(
        a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: Tensor | None = None
    ) -> Tensor:
        x = as_tensor(a)
        if dtype is None and dtype_of(x).kind == "u":
            raise TypeError(f"np.{name} in {dtype_of(x)}")
        x = cast(x, _covered(name, _default(x, dtype)))
        if axis is None:
            x, axis = aten.reshape.default(x, [-1]), 0
        if isinstance(axis, (tuple, list)):
            raise TypeError(f"np.{name} takes one axis")
        return into(out, kept(packet.default(x, axes_of(x, axis)[0], dtype=x.dtype), x))

    running.__name__ = running.__qualname__ = name
    return running


for _name in ("cumsum", "cumprod"):
    implements(getattr(np, _name), method=_name)(_running(later(_name), _name))


def _without_nan(name, reduce, neutral):
    def nan(
        a: ArrayLike,
        axis: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        out: Tensor | None = None,
        keepdims: bool = False,
    ) -> Tensor:
        x = as_tensor(a)
        if x.dtype.is_floating_point:
            x = aten.where.ScalarSelf(aten.isnan(x), neutral, x)
        return reduce(x, axis, dtype, out, keepdims)

    nan.__name__ = nan.__qualname__ = name
    return nan


implements(np.nansum)(_without_nan("nansum", sum, 0.0))
implements(np.nanprod)(_without_nan("nanprod", prod, 1.0))
