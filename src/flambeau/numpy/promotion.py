"""NumPy's promotion (NEP 50) on tensors: Python numbers are weak, everything with a dtype is strong."""

from __future__ import annotations

import numpy as np

from flambeau import _C
from flambeau.base.dtypes import from_numpy as from_numpy_dtype
from flambeau.core.conversion import tensor as make_tensor

__all__ = ["as_tensor", "cast", "dtype_of", "floating", "result_dtype"]


def is_tensor(x) -> bool:
    return isinstance(x, _C.TensorBase)


def dtype_of(x):
    """NumPy dtype of a tensor or NumPy scalar; a Python number stands for itself."""
    if is_tensor(x):
        return np.dtype(x.dtype.np)
    if isinstance(x, (np.generic, np.ndarray)):
        return x.dtype
    return x


def result_dtype(*xs) -> np.dtype:
    return np.result_type(*[dtype_of(x) for x in xs])


def cast(x, dtype: np.dtype):
    """``x`` as a tensor of this dtype (a number stays one when that means the same)."""
    dtype = np.dtype(dtype)
    if is_tensor(x):
        return x if np.dtype(x.dtype.np) == dtype else x.to(from_numpy_dtype(dtype))
    return as_tensor(x, dtype)


def as_tensor(x, dtype=None):
    if is_tensor(x):
        return x if dtype is None else cast(x, dtype)
    if isinstance(x, (list, tuple)) and any(is_tensor(e) for e in x):
        from .table import stack

        return stack([as_tensor(e, dtype) for e in x])
    a = np.asarray(x, dtype=dtype)
    return make_tensor(a.tolist(), dtype=from_numpy_dtype(a.dtype))


def floating(x):
    """``x`` as NumPy's unary floating ufuncs take it: integers become float64 (small ones are left to NumPy)."""
    d = dtype_of(x) if is_tensor(x) else np.asarray(x).dtype
    if d.kind in "fc":
        return as_tensor(x)
    if d.kind in "iub" and (d.itemsize >= 4):
        return cast(x, np.float64)
    raise TypeError(f"a floating-point ufunc of {d}: NumPy computes it in a small float type")
