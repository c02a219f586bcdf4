"""What collectives see of a tensor: its contiguous memory and the number of its dtype."""

from __future__ import annotations

import numpy as np

from .. import _C
from ..base import dtypes
from ..base.dtypes import DType

__all__ = ["TYPES", "address", "bytes_of", "contiguous", "plain", "reducible"]

# As numbered in csrc/distributed/exchange.h.
_ORDER = "uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128 bool_"
TYPES: dict[DType, int] = {getattr(dtypes, name): k for k, name in enumerate(_ORDER.split())}
_LOGICAL = range(5, 8)  # BAND, BOR, BXOR


def reducible(dtype: DType, op: int) -> bool:
    """Whether elements of this dtype can be reduced so."""
    if dtype not in TYPES:
        return False
    if dtype.is_complex:
        return op < 3
    return not (dtype.is_floating_point and op in _LOGICAL)


def plain(t, what: str) -> np.ndarray:
    """The array of a tensor. TypeError for what isn't a tensor, NotImplementedError for one without memory of its own."""
    if not isinstance(t, _C.TensorBase):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{what}` of type torch.Tensor but got {type(t)} instead."
        )
    array = t._array
    if array is None:
        raise NotImplementedError(
            f"`{what}` is a {type(t).__name__} ({t.layout}, {t.device}) that has no dense memory to communicate"
        )
    return array


def contiguous(array: np.ndarray) -> np.ndarray:
    """The array itself where its elements lie in row-major order without gaps, else a copy that does."""
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def bytes_of(array: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array as bytes."""
    return array.reshape(-1).view(np.uint8)
