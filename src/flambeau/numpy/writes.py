"""Functions and methods that write into an argument and return nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..core.operator import namespace
from ..core.tensor import Tensor
from .manipulation import sort
from .promotion import as_tensor, can_cast, cast, dtype_of, is_tensor, number, refuse_overflow
from .table import implements

aten = namespace("aten")


def _contents(dst, value):
    """``value`` in the dtype of ``dst``. TypeError for numbers that NumPy would have to round or refuse."""
    d = dtype_of(dst)
    if is_tensor(value):
        if not can_cast(dtype_of(value), d, "same_kind"):
            raise TypeError(f"writing {dtype_of(value)} into {d}")
        return cast(value, d)
    kinds = {bool: "biufc", int: "iufc", float: "fc", complex: "c"}
    if d.kind not in kinds.get(type(value), ""):
        raise TypeError(f"writing a {type(value).__name__} into {d}")
    return as_tensor(number(value, d), d)


@implements(method="fill")
def fill(a: Tensor, value: ArrayLike) -> None:
    """ndarray.fill."""
    if is_tensor(value):
        refuse_overflow(dtype_of(a), dtype_of(value))
    value = _contents(a, value)
    if value.ndim:
        raise TypeError("ndarray.fill of an array")
    a.copy_(value)


@implements(method="sort")
def sort_in_place(
    a: Tensor,
    axis: int | None = -1,
    kind: str | None = None,
    order: str | None = None,
    *,
    stable: bool | None = None,
) -> None:
    """ndarray.sort."""
    if order is not None or axis is None:
        raise TypeError("ndarray.sort with order=")
    a.copy_(sort(a, axis, kind, stable=stable))


@implements(np.copyto)
def copyto(dst: Tensor, src: ArrayLike, casting: str = "same_kind", where: ArrayLike = True) -> None:
    """np.copyto."""
    if casting != "same_kind":
        raise TypeError("np.copyto with casting=")
    value = _contents(dst, src)
    if where is not True:
        value = aten.where.self(cast(as_tensor(where), np.bool_), value, dst.clone())
    if tuple(value.shape) != tuple(dst.shape) and value.ndim > dst.ndim:
        raise TypeError("np.copyto of an array with more dimensions")
    dst.copy_(value)


@implements(np.putmask)
def putmask(a: Tensor, mask: ArrayLike, values: ArrayLike) -> None:
    """np.putmask with one value, or as many as the array has elements."""
    value = _contents(a, values)
    mask = cast(as_tensor(mask), np.bool_)
    if tuple(mask.shape) != tuple(a.shape) or (value.ndim and tuple(value.shape) != tuple(a.shape)):
        raise TypeError("np.putmask with values that are repeated")
    a.copy_(aten.where.self(mask, value, a.clone()))


@implements(np.fill_diagonal)
def fill_diagonal(a: Tensor, val: ArrayLike, wrap: bool = False) -> None:
    """np.fill_diagonal of a matrix."""
    if wrap or a.ndim != 2:
        raise TypeError("np.fill_diagonal of other than a matrix, or with wrap=")
    value = _contents(a, val)
    if value.ndim:
        raise TypeError("np.fill_diagonal with an array")
    aten.diagonal(a, 0, 0, 1).copy_(value)
