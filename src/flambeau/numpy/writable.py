"""Values that are written into an array, and how sizes compare while they may be symbols."""

from __future__ import annotations

from ..base.dtypes import DType, bool_, float64, int64
from ..base.shape_env import GuardOnDataDependentSymNode
from ..core.operator import namespace
from ..core.tensor import Tensor
from .promotion import is_tensor

__all__ = ["as_value", "equal", "same_shape"]

aten = namespace("aten")
_NUMBERS = {float64: (int, float), int64: (int,), bool_: (bool,)}


def as_value(v, dtype: DType) -> Tensor | None:
    """What is written as a tensor of the array's dtype, where that rounds and refuses nothing."""
    if is_tensor(v):
        return v if v.dtype is dtype and not v.requires_grad else None
    fits = type(v) in _NUMBERS.get(dtype, ()) and not (type(v) is int and not -(2**63) <= v < 2**63)
    return aten.scalar_tensor.default(v, dtype=dtype) if fits else None


def equal(m, n) -> bool:
    """Whether two sizes are equal; False where only data tells."""
    try:
        return bool(m == n)
    except GuardOnDataDependentSymNode:
        return False


def same_shape(a, b) -> bool:
    return len(a) == len(b) and all(map(equal, a, b))
