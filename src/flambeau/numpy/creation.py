"""Arrays from shapes and numbers. Default dtypes are NumPy's: float64 and int64."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..base.memory_format import contiguous_format
from ..base.symint import SymInt
from ..core.operator import namespace
from ..core.tensor import Tensor
from .layout import in_order, laid_out
from .promotion import as_tensor, cast, dtype_of, is_tensor, numpy_dtype, torch_dtype
from .table import implements

aten = namespace("aten")


def _shape(shape) -> list[int]:
    sizes = shape if isinstance(shape, (tuple, list)) else [shape]
    return [n if isinstance(n, SymInt) else operator.index(n) for n in sizes]


def _full(shape: list[int], value, dtype, axes: list[int]):
    """``value`` everywhere (None: anything), ``axes`` of it following each other in memory."""
    sizes = [shape[axis] for axis in axes]
    made = (
        aten.empty.memory_format(sizes, dtype=dtype) if value is None else aten.full.default(sizes, value, dtype=dtype)
    )
    return made if axes == sorted(axes) else aten.permute(made, sorted(range(len(axes)), key=axes.__getitem__))


def _c_or_f(order, ndim: int) -> list[int]:
    if order not in ("C", "F"):
        raise TypeError(f"memory order {order!r}")
    return in_order(ndim, order)


def _filled(name, value):
    def filled(
        shape: int | Sequence[int],
        dtype: DTypeLike | None = None,
        order: str | None = "C",
        *,
        device: str | None = None,
        like: Tensor | None = None,
    ) -> Tensor:
        if like is not None or device not in (None, "cpu"):
            raise TypeError(f"np.{name} with device= or like=")
        shape = _shape(shape)
        return _full(shape, value, torch_dtype(np.float64 if dtype is None else dtype), _c_or_f(order, len(shape)))

    filled.__name__ = filled.__qualname__ = name
    return filled


def _like(name, value):
    def like(
        a: ArrayLike,
        dtype: DTypeLike | None = None,
        order: str | None = "K",
        subok: bool = True,
        shape: int | Sequence[int] | None = None,
        *,
        device: str | None = None,
    ) -> Tensor:
        if device not in (None, "cpu"):
            raise TypeError(f"np.{name} with device=")
        x = as_tensor(a)
        shape = list(x.shape) if shape is None else _shape(shape)
        return _full(shape, value, x.dtype if dtype is None else torch_dtype(dtype), in_order(len(shape), order, x))

    like.__name__ = like.__qualname__ = name
    return like


for _name, _value in {"zeros": 0, "ones": 1, "empty": None}.items():
    implements(getattr(np, _name), gives_array=True)(_filled(_name, _value))
    implements(getattr(np, f"{_name}_like"), gives_array=True)(_like(f"{_name}_like", _value))


@implements(np.full, gives_array=True)
def full(
    shape: int | Sequence[int], fill_value: ArrayLike, dtype: DTypeLike | None = None, order: str | None = "C"
) -> Tensor:
    """np.full; the value may be a tensor, which is broadcast."""
    shape = _shape(shape)
    return _filled_with(shape, fill_value, dtype, _c_or_f(order, len(shape)))


def _filled_with(shape, fill_value, dtype, axes):
    if is_tensor(fill_value):
        x = fill_value if dtype is None else cast(fill_value, dtype)
        return laid_out(x.expand(shape).clone(memory_format=contiguous_format), axes)
    d = np.asarray(fill_value).dtype if dtype is None else numpy_dtype(dtype)
    # NOTE: np.bool_() takes what an array of truth values refuses: numbers of more than 64 bits.
    if d.kind == "b":
        return _full(shape, bool(np.full((), fill_value, d)), torch_dtype(d), axes)
    return _full(shape, d.type(fill_value).item(), torch_dtype(d), axes)


@implements(np.full_like, gives_array=True)
def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = "K",
    subok: bool = True,
    shape: int | Sequence[int] | None = None,
) -> Tensor:
    """np.full_like."""
    x = as_tensor(a)
    shape = list(x.shape) if shape is None else _shape(shape)
    return _filled_with(shape, fill_value, dtype_of(x) if dtype is None else dtype, in_order(len(shape), order, x))


@implements(np.arange)
def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: DTypeLike | None = None,
    *,
    device: str | None = None,
) -> Tensor:
    """np.arange of known numbers: start + i * ((start + step) - start), as NumPy computes it."""
    if stop is None:
        start, stop = 0, start
    if any(is_tensor(v) for v in (start, stop, step)):
        raise TypeError("np.arange whose length depends on the data")
    probe = np.arange(start, stop, step, dtype)  # type: ignore[call-overload]
    d = probe.dtype
    if d.kind == "i":
        first = int(d.type(start))
        delta = int(d.type(start + step)) - first
        return cast(aten.add(aten.mul(aten.arange(len(probe)), delta), first), d)
    if d.char not in "fd":
        raise TypeError(f"np.arange of {d}")
    if not math.isfinite(step):
        raise TypeError("np.arange of an infinite step")
    delta = d.type(d.type(start + step) - d.type(start))
    index = aten.arange(len(probe), dtype=torch_dtype(d))
    return aten.add(aten.mul(index, float(delta)), float(d.type(start)))


@implements(np.linspace)
def linspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """np.linspace of known numbers; the last value is exactly ``stop``."""
    num = operator.index(num)
    if retstep or axis != 0 or any(is_tensor(v) or not np.isscalar(v) for v in (start, stop)):
        raise TypeError("np.linspace with retstep=, axis= or bounds that are arrays")
    if np.result_type(start, stop, 1.0) != np.float64:
        raise TypeError("np.linspace of NumPy's scalars in their own precision")
    d = np.dtype(np.float64) if dtype is None else numpy_dtype(dtype)
    div = num - 1 if endpoint else num
    index = aten.arange(num, dtype=torch_dtype(np.float64))
    delta = float(stop) - float(start)
    if div > 0 and delta / div != 0:
        y = aten.mul(index, delta / div)
    else:
        y = aten.mul(index, delta) if div <= 0 else aten.mul(aten.div(index, div), delta)
    y = aten.add(y, float(start))
    if endpoint and num > 1:
        y = aten.where(aten.eq(index, num - 1), float(stop), y)
    return cast(aten.floor(y) if d.kind in "iu" else y, d)


@implements(np.eye)
def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float, order: str | None = "C") -> Tensor:
    """np.eye with its diagonal moved by ``k``."""
    rows, columns = operator.index(N), operator.index(N if M is None else M)
    difference = aten.sub(aten.arange(columns), aten.unsqueeze(aten.arange(rows), 1))
    return laid_out(cast(aten.eq(difference, operator.index(k)), dtype), _c_or_f(order, 2))


@implements(np.identity)
def identity(n: int, dtype: DTypeLike | None = None) -> Tensor:
    """np.identity."""
    return eye(n, dtype=float if dtype is None else dtype)


@implements(np.tri)
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float) -> Tensor:
    """np.tri: ones at and below the k-th diagonal."""
    rows, columns = operator.index(N), operator.index(N if M is None else M)
    return cast(aten.le(aten.sub(aten.arange(columns), aten.unsqueeze(aten.arange(rows), 1)), operator.index(k)), dtype)


@implements(np.array, gives_array=True)
def array(
    object: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
) -> Tensor:
    """np.array: a copy, or with ``copy=None`` one where needed."""
    x = _ordered(as_tensor(object, dtype), order, object, copy)
    return x.reshape([1] * (ndmin - x.ndim) + list(x.shape)) if ndmin > x.ndim else x


def _ordered(x, order, given, copy):
    """``x`` made of ``given`` in this memory order, copied if asked to."""
    if order not in ("C", "F", "A", "K", None):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    if isinstance(copy, str):
        raise ValueError("strings are not allowed for 'copy' keyword. Use True/False/None instead.")
    y = laid_out(x, in_order(x.ndim, order, given if is_tensor(given) else None)) if order in ("C", "F", "A") else x
    if isinstance(copy, np._CopyMode):
        copy = {np._CopyMode.NEVER: False, np._CopyMode.IF_NEEDED: None}.get(copy, True)
    # The array may stand for a scalar.
    if copy is False and (y is not given or not x.ndim):
        raise TypeError("an array that NumPy may have to copy with copy=False")
    return y.clone() if copy and y is given else y


@implements(np.asarray, np.asanyarray, gives_array=True)
def asarray(
    a: ArrayLike, dtype: DTypeLike | None = None, order: str | None = None, *, copy: bool | None = None
) -> Tensor:
    """np.asarray: the same array where possible."""
    return _ordered(as_tensor(a, dtype), order, a, copy)


@implements(np.copy, gives_array=True)
def copy(a: ArrayLike, order: str | None = "K") -> Tensor:
    """np.copy."""
    x = as_tensor(a)
    return laid_out(x.clone(), in_order(x.ndim, order, x))


@implements(method="copy", gives_array=True)
def _copy_method(a, order="C"):
    return as_tensor(a).clone(memory_format=contiguous_format) if order == "C" else copy(a, order)


@implements(np.ascontiguousarray)
def ascontiguousarray(a: ArrayLike, dtype: DTypeLike | None = None) -> Tensor:
    """np.ascontiguousarray: at least one dimension."""
    x = as_tensor(a, dtype)
    return (x if x.ndim else x.reshape(1)).contiguous()


@implements(np.asfortranarray, gives_array=True)
def asfortranarray(a: ArrayLike, dtype: DTypeLike | None = None) -> Tensor:
    """np.asfortranarray: at least one dimension, the array itself where its first index moves fastest."""
    x = as_tensor(a, dtype)
    return _ordered(x if x.ndim else x.reshape(1), "F", a, None)


@implements(np.astype, method="astype", gives_array=True)
def astype(
    a: ArrayLike,
    dtype: DTypeLike,
    order: str | None = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool | None = True,
) -> Tensor:
    """ndarray.astype."""
    x, d = as_tensor(a), numpy_dtype(dtype)
    if not np.can_cast(dtype_of(x), d, casting):
        raise TypeError(f"Cannot cast array data from {dtype_of(x)!r} to {d!r} according to the rule '{casting}'")
    y = laid_out(cast(x, d), in_order(x.ndim, order, x)) if order != "K" else cast(x, d)
    return y.clone() if copy and y is x else y
