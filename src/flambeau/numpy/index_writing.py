"""``np.put``, ``np.place``, ``np.put_along_axis`` and ``ufunc.at`` as operators that write into the array itself, once all indices are checked.

Each function says whether it has written. False: the arguments are others than it takes, or an index is out of bounds in a call that isn't traced;
nothing is written then, and NumPy's own call does it (:mod:`rewriting`).
"""

from __future__ import annotations

from collections.abc import Callable

from ..base.dtypes import DType, float32, float64, int32, int64
from ..core.operator import namespace
from ..core.tensor import Tensor
from .placing import place
from .promotion import is_tensor
from .writable import as_value, equal, same_shape

__all__ = ["WRITTEN_IN_PLACE", "updated_at"]

aten = namespace("aten")
_REDUCED = {"maximum": "amax", "minimum": "amin", "multiply": "prod"}


def _as_index(index) -> Tensor | None:
    """An index of integers as a tensor."""
    if type(index) is int and -(2**63) <= index < 2**63:
        return aten.full.default([1], index, dtype=int64)
    return index if is_tensor(index) and index.dtype in (int64, int32) and index.ndim else None


def _broadcasts(given, shape) -> bool:
    """Whether sizes are broadcast to ``shape``."""
    tail = shape[len(shape) - len(given) :]
    return len(given) <= len(shape) and all(equal(n, 1) or equal(n, m) for n, m in zip(given, tail))


def _unless_outside(write: Callable, *args) -> bool:
    try:
        write(*args)
    except IndexError:
        return False
    return True


def put(a: Tensor, ind, v, mode: str = "raise") -> bool:
    """np.put of as many values as indices, or one, into an array whose elements lie in order."""
    index, value = _as_index(ind), as_value(v, a.dtype)
    if mode != "raise" or index is None or value is None or not a.is_contiguous():
        return False
    if not all(equal(n, 1) for n in value.shape):
        if not same_shape(value.shape, index.shape):
            return False
        value = aten.reshape.default(value, [-1])
    else:
        value = aten.reshape.default(value, [])
    flat, index = aten.view.default(a, [-1]), aten.reshape.default(index, [-1])
    return _unless_outside(flat.index_put_, (index,), value)


def put_along_axis(arr: Tensor, indices, values, axis: int) -> bool:
    """np.put_along_axis."""
    value = as_value(values, arr.dtype)
    fits = is_tensor(indices) and indices.dtype in (int64, int32) and indices.ndim == arr.ndim
    if value is None or not fits or type(axis) is not int or not -arr.ndim <= axis < arr.ndim:
        return False
    axis %= arr.ndim
    others = [d for d in range(arr.ndim) if d != axis]
    if not all(equal(indices.shape[d], 1) or equal(indices.shape[d], arr.shape[d]) for d in others):
        return False
    shape = [indices.shape[d] if d == axis else n for d, n in enumerate(arr.shape)]
    if not _broadcasts(value.shape, shape):
        return False
    places = [
        indices
        if d == axis
        else aten.reshape.default(aten.arange.default(n), [1] * d + [-1] + [1] * (arr.ndim - d - 1))
        for d, n in enumerate(arr.shape)
    ]
    return _unless_outside(arr.index_put_, tuple(places), value)


WRITTEN_IN_PLACE = {"put": put, "put_along_axis": put_along_axis, "place": place}


def updated_at(name: str, a: Tensor, index, *operands) -> bool:
    """``np.NAME.at(a, index, *operands)`` for sums, differences, products and extremes."""
    if len(operands) != 1 or a.dtype not in (float64, float32, int64, int32):
        return False
    indices = [_as_index(i) for i in (index if type(index) is tuple else (index,))]
    if any(i is None for i in indices) or len(indices) > a.ndim:
        return False
    value = _operand(operands[0], a.dtype)
    if value is None:
        return False
    wide = max(indices, key=lambda i: i.ndim).shape
    shape = [*wide, *a.shape[len(indices) :]]
    if not all(same_shape(i.shape, wide) for i in indices) or not _broadcasts(value.shape, shape):
        return False
    if name in ("add", "subtract"):
        value = value if name == "add" else aten.neg.default(value)
        return _unless_outside(a.index_put_, tuple(indices), aten.expand.default(value, shape), True)
    if name not in _REDUCED or len(indices) != 1 or len(wide) != 1:
        return False
    index, source = indices[0], aten.expand.default(value, shape)
    index = aten.where.self(aten.lt.Scalar(index, 0), aten.add.Scalar(index, a.shape[0]), index)
    return _unless_outside(a.index_reduce_, 0, index, source, _REDUCED[name])


def _operand(v, dtype: DType) -> Tensor | None:
    """What is combined with an array's elements. NumPy computes with a Python number and float32 in float64."""
    if type(v) in (int, float):
        fits = dtype is float64 or (type(v) is int and dtype is not float32 and -(2**31) < v < 2**31)
        return aten.scalar_tensor.default(v, dtype=dtype) if fits else None
    return as_value(v, dtype)
