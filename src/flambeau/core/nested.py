"""Arrays of nested sequences: the sizes, the dtype and the elements are what PyTorch finds in them.

The first element of each level says the sizes. A tensor of any shape is an element; NumPy arrays are sequences of their rows."""

from __future__ import annotations

import cmath
import functools
import math
import operator

import numpy as np

from .. import _C
from ..base import dtypes
from ..base.dtypes import DType, as_element, check_number
from ..base.quiet import errstate
from ..base.shapes import Size
from ..base.symint import NUMBERS

__all__ = [
    "array_from",
    "array_of",
    "element_of",
    "has_no_values",
    "inferred",
    "is_plain",
    "is_sequence",
    "old_style",
    "sizes_of",
]

_MOST_DIMENSIONS = 128
_NUMBERS = frozenset((int, float, bool, complex))
_LISTS = frozenset((list, tuple))
_HOLDS_COMPLEX = (None, dtypes.bool_, *(d for d in dtypes.ALL if d.is_complex))


def has_no_values(data, depth: int = 64) -> bool:
    """Whether an element is a symbolic number or a tensor without data. What is nested deeper is an error anyway."""
    if isinstance(data, _C.TensorBase):
        return not data._has_data
    if type(data) not in (list, tuple):
        return isinstance(data, NUMBERS)
    return depth > 0 and any(has_no_values(x, depth - 1) for x in data)


def is_plain(data, depth: int = 64) -> bool:
    """Whether nested lists and tuples hold Python's own numbers alone, which NumPy converts as PyTorch does."""
    if type(data) not in _LISTS:
        return type(data) in _NUMBERS
    types = set(map(type, data))
    if types <= _NUMBERS:
        return True
    return depth > 0 and types <= _LISTS and all(is_plain(x, depth - 1) for x in data)


def is_sequence(x) -> bool:
    """Whether ``x`` counts as a level of nesting; a tensor is an element."""
    if isinstance(x, (_C.TensorBase, np.generic, dict, set)):
        return False
    return hasattr(x, "__getitem__") and hasattr(x, "__len__")


def sizes_of(data) -> list[int]:
    """The length at each level, as the first elements say it. ValueError for text and for more levels than a tensor has dimensions."""
    sizes = []
    while is_sequence(data):
        sizes.append(len(data))
        if len(sizes) > _MOST_DIMENSIONS or (isinstance(data, str) and data):
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        if not sizes[-1]:
            break
        data = data[0]
    return sizes


def inferred(x) -> DType:
    """The dtype that holds ``x``, a number, a tensor or a sequence of them. TypeError for text, RuntimeError for other objects."""
    if isinstance(x, (_C.TensorBase, np.generic, np.ndarray)):
        return x.dtype if isinstance(x, _C.TensorBase) else dtypes.from_numpy(x.dtype)
    if isinstance(x, bool):
        return dtypes.bool_
    if isinstance(x, int):
        return dtypes.int64
    if isinstance(x, float):
        return dtypes.get_default_dtype()
    if isinstance(x, complex):
        return dtypes.get_default_dtype().to_complex()
    if isinstance(x, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(x).__name__}'")
    if not is_sequence(x):
        raise RuntimeError(f"Could not infer dtype of {type(x).__name__}")
    return functools.reduce(dtypes.promote_types, map(inferred, x)) if len(x) else dtypes.get_default_dtype()


def element_of(x, dtype: DType):
    """``x`` as a Python number that ``dtype`` holds. TypeError for what is no such number, ValueError or RuntimeError for one that is too great."""
    if dtype.category == 0:
        return bool(operator.index(x) if isinstance(x, _C.TensorBase) else x)
    if dtype.category == 1:
        if isinstance(x, (float, np.floating)):
            check_number(float(x), dtype)
            return int(x)
        number = operator.index(x)
        if dtype.name == "uint64":
            if number < 0:
                raise OverflowError("can't convert negative int to unsigned")
            if number >= 2**64:
                raise OverflowError("int too big to convert")
        elif not -(2**63) <= number < 2**63:
            raise ValueError("Overflow when unpacking long long")
        check_number(number, dtype)
        return number
    if dtype.category == 2:
        if isinstance(x, _C.TensorBase):
            return float(x)
        math.fabs(x)  # float() would read text
        return float(x)
    if isinstance(x, (str, bytes)) or x is None:
        cmath.isnan(x)  # its TypeError: complex() would read text
    return complex(x)


def _store(out, data, sizes, dtype: DType, dim: int = 0) -> None:
    if dim == len(sizes):
        element = element_of(data, dtype)
        out[...] = as_element(element, dtype) if dtype.category == 1 else element
        return
    if not is_sequence(data):
        raise TypeError("not a sequence")
    if len(data) != sizes[dim]:
        raise ValueError(f"expected sequence of length {sizes[dim]} at dim {dim} (got {len(data)})")
    if isinstance(data, np.ndarray) and data.shape == out.shape:
        out[...] = data
        return
    for k, x in enumerate(data):
        _store(out[k, ...], x, sizes, dtype, dim + 1)


def array_of(data, dtype: DType | None) -> np.ndarray:
    """A new array of ``data``. ValueError where its rows differ in length, TypeError and RuntimeError for elements that are no numbers."""
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    sizes = sizes_of(data)
    dtype = inferred(data) if dtype is None else dtype
    out = np.empty(sizes, dtype.np)
    # The first length of 0 ends the sizes; what lies deeper is not looked at.
    if out.size:
        with errstate(over="ignore"):
            _store(out, data, sizes, dtype)
    return out


def _cast(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A copy in ``dtype``. A number beyond it becomes infinite, as in PyTorch without a warning."""
    with errstate(over="ignore", invalid="ignore"):
        return a.astype(dtype)


def array_from(data, dtype, plain: bool | None = None):
    """A new array of numbers, NumPy data or nested sequences, with PyTorch's inference:
    Python floats become the default dtype, ints int64; NumPy data keeps its dtype. ``plain``: what ``is_plain`` says of it, where that is known."""
    if isinstance(data, (np.ndarray, np.generic)):
        a = np.array(data)
        return a if dtype is None else _cast(a, dtype.np)
    if not (is_plain(data) if plain is None else plain):
        return array_of(data, dtype)
    try:
        a = np.array(data)
    except ValueError:
        return array_of(data, dtype)
    # A complex number has no place among real ones; integers that int64 doesn't hold are uint64, floats or objects for NumPy.
    if a.dtype.kind in "uO" or (a.dtype.kind == "c" and dtype not in _HOLDS_COMPLEX):
        return array_of(data, dtype)
    if a.dtype.kind == "f" and dtype is None and a.size and not (np.vdot(a, a) < 2.0**126 or np.abs(a).max() < 2.0**63):
        return array_of(data, dtype)
    if dtype is not None:
        if dtype.category == 1 and a.size:
            if dtype.name == "uint64":
                return array_of(data, dtype)
            for extreme in (a.min(), a.max()):
                check_number(extreme.item(), dtype)
        return _cast(dtypes.saturated(a, dtype.np), dtype.np)
    if a.dtype.kind == "f":
        default = dtypes.get_default_dtype().np
        # What is larger than 2**63 went another way: float32 holds the rest.
        return a.astype(default) if default.itemsize >= 4 else _cast(a, default)
    if a.dtype.kind == "c":
        return _cast(a, dtypes.get_default_dtype().to_complex().np)
    return a


def old_style(args, dtype: DType) -> np.ndarray:
    """What ``torch.Tensor(*args)`` makes an array of: sizes (nothing is written), or one sequence; the memory of an array of ``dtype`` is shared.
    TypeError for a number that is no size."""
    if len(args) == 1 and isinstance(args[0], np.ndarray):
        return np.asarray(args[0], dtype.np)
    if len(args) == 1 and not isinstance(args[0], (int, Size)):
        if not (isinstance(args[0], (np.generic, str)) or is_sequence(args[0])):
            raise TypeError(f"new(): data must be a sequence (got {type(args[0]).__name__})")
        return array_from(args[0], dtype)
    if any(isinstance(n, bool) for n in args):
        raise TypeError("new(): data must be a sequence (got bool)")
    sizes = tuple(args[0]) if args and isinstance(args[0], Size) else tuple(map(operator.index, args)) if args else (0,)
    for n in sizes:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(sizes)}")
    return np.empty(sizes, dtype.np)
