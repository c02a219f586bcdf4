"""NumPy's promotion (NEP 50) on tensors: Python numbers are weak, everything with a dtype is strong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import _C
from ..base.dtypes import DType, may_overflow
from ..base.dtypes import from_numpy as from_numpy_dtype
from ..base.symint import NUMBERS, sym_float
from ..core.conversion import tensor as make_tensor
from ..core.operator import namespace
from ..core.tensor import Tensor

__all__ = [
    "as_tensor",
    "can_cast",
    "cast",
    "dtype_of",
    "is_tensor",
    "number",
    "numpy_dtype",
    "refuse_overflow",
    "result_dtype",
    "torch_dtype",
]

aten = namespace("aten")
can_cast = np.can_cast
_HALF = repr(("numpy", "positive", [("array", 0)], {"dtype": ("dtype", "<f2"), "casting": ("value", "unsafe")}))
_LIKE = {"int": 2, "float": 2.0, "bool": True}  # a number of the kind, which promotion takes for it


def is_tensor(x: object) -> bool:
    return isinstance(x, _C.TensorBase)


def numpy_dtype(d: Any) -> np.dtype:
    """np.dtype from whatever names one, a torch dtype included."""
    return np.dtype(d.np) if isinstance(d, DType) else np.dtype(d)


def torch_dtype(d: Any) -> DType:
    """The torch dtype of a NumPy one. TypeError when there is none."""
    d = numpy_dtype(d)
    if d.kind not in "biufc" or not d.isnative or d.itemsize > 16 or (d.kind == "f" and d.itemsize > 8):
        raise TypeError(f"tensors have no dtype {d}")
    return from_numpy_dtype(d)


def dtype_of(x: Any) -> np.dtype | bool | int | float | complex:
    """NumPy dtype of a tensor or NumPy value; a Python number stands for itself."""
    if is_tensor(x):
        return np.dtype(x.dtype.np)
    if isinstance(x, (np.generic, np.ndarray)):
        return x.dtype
    return _LIKE[x.__sym__] if isinstance(x, NUMBERS) else x


def result_dtype(*xs) -> np.dtype:
    """np.result_type of tensors, NumPy values, Python numbers and dtypes."""
    return np.result_type(*[dtype_of(as_tensor(x) if isinstance(x, (list, tuple)) else x) for x in xs])


def cast(x: Any, dtype: DTypeLike) -> Tensor:
    """``x`` as a tensor of this dtype, itself when it is one."""
    dtype = numpy_dtype(dtype)
    if not is_tensor(x):
        return as_tensor(x, dtype)
    if np.dtype(x.dtype.np) == dtype:
        return x
    if x.dtype.is_complex and dtype.kind not in "cb":
        raise TypeError("a cast that discards imaginary parts, of which NumPy warns")
    if dtype == np.float16 and x.dtype.np == np.float64 and not x.requires_grad:
        return namespace("numpy").call([x], _HALF)[0]  # rounded once; PyTorch goes by way of float32
    return x.to(torch_dtype(dtype))


def number(x: Any, dtype: np.dtype) -> bool | int | float | complex:
    """A scalar brought into ``dtype``, as a Python number. OverflowError when it doesn't fit, as in NumPy."""
    if isinstance(x, NUMBERS):
        return sym_float(x) if dtype.kind == "f" else x
    return dtype.type(x).item()


def as_tensor(x: Any, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor from a tensor, an array, a scalar or a nested list of them."""
    if is_tensor(x):
        return x if dtype is None else cast(x, dtype)
    if isinstance(x, (list, tuple)) and _has_tensor(x):
        parts = [as_tensor(e) for e in x]
        d = result_dtype(*parts) if dtype is None else dtype
        if dtype is not None:
            refuse_overflow(numpy_dtype(dtype), *(dtype_of(p) for p in parts if not p.ndim))
        return aten.stack.default([cast(p, d) for p in parts], 0)
    if isinstance(x, NUMBERS):
        return aten.full.default([], x, dtype=torch_dtype(np.result_type(dtype_of(x)) if dtype is None else dtype))
    a = np.asarray(x, dtype=None if dtype is None else numpy_dtype(dtype))
    if a.ndim == 0:
        return aten.full.default([], a.item(), dtype=torch_dtype(a.dtype))
    made = make_tensor(a.tolist(), dtype=torch_dtype(a.dtype))
    return made if made.shape == a.shape else made.reshape(a.shape)  # a list doesn't tell the shape of an empty array


def refuse_overflow(dtype: np.dtype, *given: np.dtype) -> None:
    """TypeError where a number of one of the dtypes ``given`` may not fit an element."""
    for d in given:
        if may_overflow(d, dtype):
            raise TypeError(
                f"a number of {d} written into an array of {dtype}, which NumPy refuses where it doesn't fit"
            )


def _has_tensor(x) -> bool:
    return any(is_tensor(e) or (isinstance(e, (list, tuple)) and _has_tensor(e)) for e in x)
