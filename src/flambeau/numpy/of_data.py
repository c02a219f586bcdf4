"""Functions whose results have sizes that depend on data. A graph holds them where symbols may stand for such sizes (``fullgraph=True`` or
``torch._dynamo.config.capture_dynamic_output_shape_ops``); elsewhere it ends before them, and NumPy computes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..core.operator import namespace
from ..core.tensor import Tensor
from .promotion import as_tensor, cast, dtype_of, is_tensor, result_dtype
from .table import implements

aten = namespace("aten")


def _array(x, name: str):
    """An array with dimensions. TypeError for numbers and lists, and for what has none."""
    if not is_tensor(x) or x.ndim == 0:
        raise TypeError(f"np.{name} of what isn't an array with dimensions")
    return x


def _flat(x):
    return aten.reshape.default(x, [-1])


def _places(flat):
    """Where a tensor of one dimension isn't zero."""
    return aten.select.int(aten.nonzero.default(flat), 1, 0)


@implements(np.nonzero, method="nonzero")
def nonzero(a: ArrayLike) -> tuple[Tensor, ...]:
    """np.nonzero: the coordinates of what isn't zero, an array a dimension."""
    return tuple(aten.unbind.int(aten.nonzero.default(_array(a, "nonzero")), 1))


@implements(np.flatnonzero)
def flatnonzero(a: ArrayLike) -> Tensor:
    """np.flatnonzero: the places of what isn't zero in the flattened array."""
    return _places(_flat(_array(a, "flatnonzero")))


@implements(np.argwhere)
def argwhere(a: ArrayLike) -> Tensor:
    """np.argwhere: the coordinates of what isn't zero, a row an element."""
    return aten.nonzero.default(_array(a, "argwhere"))


@implements(np.extract)
def extract(condition: ArrayLike, arr: ArrayLike) -> Tensor:
    """np.extract: the elements where the condition holds."""
    places = _places(_flat(_array(condition, "extract")))
    return aten.index_select.default(_flat(_array(arr, "extract")), 0, places)


@implements(np.compress)
def compress(
    condition: ArrayLike, a: ArrayLike, axis: int | Sequence[int] | None = None, out: Tensor | None = None
) -> Tensor:
    """np.compress: the slices along an axis where the condition holds."""
    if out is not None or _array(condition, "compress").ndim != 1:
        raise TypeError("np.compress with out=, or a condition of several dimensions")
    a = _array(a, "compress")
    if axis is None:
        a, axis = _flat(a), 0
    return aten.index_select.default(a, axis, _places(condition))


@implements(np.bincount)
def bincount(x: ArrayLike, /, weights: ArrayLike | None = None, minlength: int = 0) -> Tensor:
    """np.bincount: how often each number occurs, or the sum of its weights."""
    kind = dtype_of(_array(x, "bincount"))
    if kind.kind not in "bi" and kind.name not in ("uint8", "uint16", "uint32"):
        raise TypeError(f"elements of {kind}")
    if weights is not None:
        weights = cast(_array(weights, "bincount"), np.dtype(np.float64))
        if not x.shape[0] > 0:  # of nothing NumPy counts in integers
            weights = None
    return aten.bincount.default(cast(x, np.dtype(np.int64)), weights, minlength)


def _whole(name: str, *xs):
    """Flat tensors of a common dtype, of integers or truth values: what else compares equal isn't always one number."""
    d = result_dtype(*(_array(x, name) for x in xs))
    if d.kind not in "biu":
        raise TypeError(f"elements of {d}")
    return [cast(_flat(x), d) for x in xs]


def _distinct(flat):
    return aten._unique2.default(flat, True, False, False)[0]


def _within(a, b, inside: bool):
    """The elements of ``a`` that are, or aren't, elements of ``b``."""
    found = aten.isin.Tensor_Tensor(a, b)
    return aten.index_select.default(a, 0, _places(found if inside else aten.logical_not.default(found)))


@implements(np.unique)
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | Sequence[int] | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Tensor | tuple[Tensor, ...]:
    """np.unique of integers, in order."""
    if return_index or axis is not None or sorted is not True:
        raise TypeError("np.unique with return_index=, axis= or sorted=")
    (flat,) = _whole("unique", ar)
    values, inverse, counts = aten._unique2.default(flat, True, bool(return_inverse), bool(return_counts))
    found = [values]
    if return_inverse:
        found.append(aten.reshape.default(inverse, list(ar.shape)))
    if return_counts:
        found.append(counts)
    return tuple(found) if len(found) > 1 else values


@implements(method="compress")
def _compress_method(
    a: ArrayLike, condition: ArrayLike, axis: int | Sequence[int] | None = None, out: Tensor | None = None
) -> Tensor:
    """ndarray.compress."""
    return compress(as_tensor(condition) if isinstance(condition, (list, tuple)) else condition, a, axis, out)


@implements(np.union1d)
def union1d(ar1: ArrayLike, ar2: ArrayLike) -> Tensor:
    """np.union1d of integers."""
    return _distinct(aten.cat.default(_whole("union1d", ar1, ar2)))


@implements(np.intersect1d)
def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False) -> Tensor:
    """np.intersect1d of integers."""
    if assume_unique or return_indices:
        raise TypeError("np.intersect1d with assume_unique= or return_indices=")
    a, b = _whole("intersect1d", ar1, ar2)
    return _within(_distinct(a), b, True)


@implements(np.setdiff1d)
def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False) -> Tensor:
    """np.setdiff1d of integers."""
    if assume_unique or dtype_of(as_tensor(ar1)) != result_dtype(ar1, ar2):
        raise TypeError("np.setdiff1d with assume_unique=, or of a lesser dtype")
    a, b = _whole("setdiff1d", ar1, ar2)
    return _within(_distinct(a), b, False)


@implements(np.setxor1d)
def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False) -> Tensor:
    """np.setxor1d of integers."""
    if assume_unique:
        raise TypeError("np.setxor1d with assume_unique=")
    a, b = _whole("setxor1d", ar1, ar2)
    apart = aten.cat.default([_within(_distinct(a), b, False), _within(_distinct(b), a, False)])
    return aten.sort.default(apart)[0]
