"""``x[...]`` and ``x[...] = v`` as ATen operators: select, slice, unsqueeze, index, index_put, copy_."""

from __future__ import annotations

import operator
import warnings

import numpy as np

from .. import _C
from ..base.device import CPU
from ..base.dtypes import bfloat16, bool_, check_number, float16, int64, uint8
from ..base.errors import ShapeMismatch
from ..base.quiet import errstate
from ..base.symbolic_queries import guard_or_false
from ..base.symint import SymInt, is_number, is_symbolic
from .device_memory import elements
from .keys import TRANSFORM
from .operator import namespace
from .tensor import Tensor

aten = namespace("aten")


BYTES_MASK = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."


def _is_index_tensor(x) -> bool:
    if isinstance(x, _C.TensorBase) and x._ndim == 0 and x._dtype.category == 1:
        # A whole number is read and selects, but one that vmap maps is another for each example.
        return bool(x._keys & TRANSFORM)
    return isinstance(x, (_C.TensorBase, np.ndarray))


def _bound(v):
    """An end of a slice, or an index: an int, a symbolic one, or None."""
    return v if v is None or isinstance(v, SymInt) else operator.index(v)


def _bounds(k: slice):
    try:
        return [_bound(v) for v in (k.start, k.stop, k.step)]
    except TypeError:
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None


def _stands_for_tuple(key) -> bool:
    """Whether a list is taken for the tuple of its elements: one that holds more than numbers is, as in PyTorch and in old versions of NumPy."""
    return (
        isinstance(key, list)
        and len(key) < 32
        and any(k is None or k is ... or isinstance(k, (_C.TensorBase, np.ndarray, list, tuple, slice)) for k in key)
    )


def _as_tensor(x):
    if isinstance(x, _C.TensorBase):
        return x
    a = np.asarray(x)
    return _C.from_array(a.astype(np.int64) if a.dtype.kind in "iu" or a.size == 0 else a)


def _is_known_flag(k) -> bool:
    """Whether ``k`` is a mask without dimensions whose element can be read: it is as good as True or False."""
    return (
        isinstance(k, _C.TensorBase) and k._ndim == 0 and k._dtype.name in ("bool", "uint8") and elements(k) is not None
    )


def _parts(x, key) -> tuple[list, int]:
    """The parts of a subscript, sequences as tensors, and how many dimensions of ``x`` they take."""
    if not isinstance(key, tuple):
        key = tuple(key) if _stands_for_tuple(key) else (key,)
    key = [
        _as_tensor(list(k) if isinstance(k, range) else k) if isinstance(k, (list, tuple, range, np.ndarray)) else k
        for k in key
    ]
    key = [k.item() != 0 if _is_known_flag(k) else k for k in key]
    used = sum(
        k._ndim
        if isinstance(k, _C.TensorBase) and k._dtype.name in ("bool", "uint8")
        else 0
        if k is None or k is ... or isinstance(k, bool)
        else 1
        for k in key
    )
    if used > x._ndim:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to a number"
            if x._ndim == 0 and isinstance(key[0], int)
            else f"too many indices for tensor of dimension {x._ndim}"
        )
    return key, used


def _steps(x, key):
    """Apply the basic part of ``key``; returns (view, index tensors by dimension or None)."""
    key, used = _parts(x, key)
    dim, tensors, passed_over = 0, {}, x._ndim - used
    # ``selected``: dimensions that are gone from ``x``, so that errors count those of the tensor that was given.
    selected = 0
    for k in key:
        if k is ...:
            dim += passed_over
        elif k is None:
            x = aten.unsqueeze.default(x, dim)
            dim += 1
            selected -= 1
        elif isinstance(k, bool):
            x = aten.unsqueeze.default(x, dim)
            # Whether the one element of that dimension is taken: by its number, for how many a mask takes would be data.
            tensors[dim] = _C.from_array(np.zeros(int(k), np.int64))
            dim += 1
            selected -= 1
        elif isinstance(k, slice):
            start, stop, step = _bounds(k)
            if step is not None and step <= 0:
                raise ValueError("step must be greater than zero")
            if not (start in (None, 0) and stop is None and step in (None, 1)):
                x = aten.slice.Tensor(
                    x,
                    dim,
                    start if start is not None else 0,
                    stop if stop is not None else 9223372036854775807,
                    step or 1,
                )
            dim += 1
        elif _is_index_tensor(k):
            if k._dtype.name == "uint8":
                warnings.warn(BYTES_MASK, stacklevel=3)
            tensors[dim] = k
            dim += k._ndim if k._dtype.name in ("bool", "uint8") else 1
        elif hasattr(k, "__index__"):
            i = _bound(k)
            n = x._shape[dim]
            if not -n <= i < n:
                raise IndexError(f"index {i} is out of bounds for dimension {dim + selected} with size {n}")
            x = aten.select.int(x, dim, i)
            selected += 1
        elif isinstance(k, str):
            raise TypeError("new(): invalid data type 'str'")
        else:
            raise IndexError(
                f"only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                f"(got {type(k).__name__})"
            )
    return x, tensors


def _list_of(tensors):
    out, dim = [], 0
    while tensors and dim <= max(tensors):
        out.append(tensors.get(dim))
        step = tensors[dim]._ndim if dim in tensors and tensors[dim]._dtype.name in ("bool", "uint8") else 1
        dim += max(step, 1)
    return out


def getitem(self, key):
    """Basic indexing gives views; index tensors and masks gather. The general way: csrc/core/subscript.c knows the common keys."""
    x, tensors = _steps(self, key)
    if tensors:
        return aten.index.Tensor(x, _list_of(tensors))
    return aten.alias.default(x) if x is self else x


def _fills(tensors, value) -> bool:
    """Whether index_put_ with these indices is a fill by one number: one mask, and a tensor of one element."""
    return len(tensors) == 1 and next(iter(tensors.values()))._dtype.name in ("bool", "uint8") and value.numel() == 1


def _check_values(selected, given) -> None:
    """ShapeMismatch for values that don't fit what is selected. Told before their dtype, which is index_put_'s to refuse."""
    if len(given) > len(selected) or any(n not in (1, m) for n, m in zip(reversed(given), reversed(selected))):
        raise ShapeMismatch(
            f"shape mismatch: value tensor of shape {list(given)} cannot be broadcast to indexing result of shape {list(selected)}"
        )


_HALVES = (float16, bfloat16)


def _rounded(value, dtype) -> float:
    """A number as an element of 16 bits: beyond the greatest it is infinite, where other dtypes refuse it (a mask's -1e9 in float16)."""
    with errstate(over="ignore"):
        return float(np.float64(value).astype(np.float32).astype(dtype.np))


_PLACES = (bool_, int64)  # dtypes of index tensors that need no preparation


def setitem(self, key, value):
    """Write into the part that ``key`` selects. The general way: csrc/core/subscript.c knows the common keys."""
    if key is False:
        # Nothing is selected, and nothing asks whether the value would fit.
        return
    if key is True:
        # All of it: a value is written as into a view, of any dtype.
        x, tensors = aten.unsqueeze.default(self, 0), {}
    elif isinstance(key, _C.TensorBase) and 0 < key._ndim <= self._ndim and key._dtype in _PLACES:
        x, tensors = self, {0: key}
    else:
        x, tensors = _steps(self, key)
    if not isinstance(value, _C.TensorBase):
        if isinstance(value, np.integer):
            value = int(value)
        real = value.__class__ is float or value.__class__ is int and -(2**63) <= value < 2**63
        if real and self._dtype in _HALVES:
            value = _rounded(value, self._dtype)
        if is_number(value) and not tensors:
            aten.fill_.Scalar(x, value)
            return
        if not (is_number(value) or is_symbolic(value)):
            module = "numpy." if isinstance(value, (np.ndarray, np.generic)) else ""
            raise TypeError(f"can't assign a {module}{type(value).__name__} to a torch.{self._dtype.scalar_type}Tensor")
        value = aten.scalar_tensor.default(value, dtype=self._dtype)
    if tensors:
        # They have been warned of.
        tensors = {d: aten._to_copy.default(t, dtype=bool_) if t._dtype is uint8 else t for d, t in tensors.items()}
        if value._dtype is not self._dtype and _fills(tensors, value):
            if value._dtype.is_complex and not self._dtype.is_complex:
                check_number(value.item(), self._dtype)
            value = aten._to_copy.default(value, dtype=self._dtype)
        # A size that depends on data is taken for more than 1, as in PyTorch.
        while value._ndim > 1 and guard_or_false(value._shape[0] == 1):
            value = aten.squeeze.dim(value, 0)
        if value._dtype is not self._dtype and x._array is not None:
            _check_values(aten.index.Tensor(x, _list_of(tensors))._shape, value._shape)
        aten.index_put_.default(x, _list_of(tensors), value)
        return
    if not value._ndim and x._ndim and value._device == CPU:
        # Read before anything is written: `x[0] = x[0][0]`.
        aten.fill_.Tensor(x, aten.clone.default(value) if value._storage is x._storage else value)
        return
    while value._ndim > x._ndim and guard_or_false(value._shape[0] == 1):
        value = aten.squeeze.dim(value, 0)
    aten.copy_.default(x, value)


def attach() -> None:
    """Give Tensor item access. Run once, after ops/ is imported."""
    operators = (
        aten.select.int, aten.slice.Tensor, aten.unsqueeze.default, aten.alias.default, aten.index.Tensor,
        aten.index_put_.default, aten.copy_.default, aten.masked_fill_.Scalar,
    )  # fmt: skip
    _C.set_subscript(operators, getitem, setitem)
    Tensor.__getitem__ = _C.Method("__getitem__", _C.getitem)
    Tensor.__setitem__ = _C.Method("__setitem__", _C.setitem)
