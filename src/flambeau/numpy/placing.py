"""``np.place``: values one after the other where a mask holds, from the first again behind the last.

``numpy::placed(Tensor self, Tensor mask, Tensor values) -> Tensor`` gives the array with several values written. Compiled code looks for the
places of the mask and writes only these, into the memory itself.
"""

from __future__ import annotations

import numpy as np

from ..base.dtypes import DType, bool_
from ..base.shapes import contiguous_strides
from ..core.declare import extern
from ..core.definition import TensorMeta
from ..core.operator import namespace
from ..core.tensor import Tensor
from .promotion import is_tensor
from .writable import as_value, equal, same_shape

__all__ = ["place", "placed"]

aten = namespace("aten")


@extern(
    "numpy::placed(Tensor self, Tensor mask, Tensor values) -> Tensor",
    meta=lambda self, mask, values: TensorMeta(
        tuple(self.shape), contiguous_strides(self.shape), self.dtype, self.device
    ),
    variants="",
)
def placed(self: np.ndarray, mask: np.ndarray, values: np.ndarray) -> np.ndarray:
    out = np.array(self, order="C")
    np.place(out, mask, values)
    return out


placed.override("lower", lambda lowering, val, self, mask, values: lowering.placed(val, self, mask, values))


def place(arr: Tensor, mask, vals) -> bool:
    """np.place."""
    values = _in_a_row(vals, arr.dtype)
    if values is None or not is_tensor(mask) or mask.dtype is not bool_ or not same_shape(mask.shape, arr.shape):
        return False
    if equal(values.shape[0], 1):
        arr.copy_(aten.where.self(mask, aten.reshape.default(values, []), arr.clone()))
        return True
    if not all(type(n) is int and n for n in values.shape):
        return False
    if values._storage is arr._storage:
        raise TypeError("np.place of values that are overwritten meanwhile")
    if arr.is_contiguous():
        arr, mask = aten.view.default(arr, [-1]), aten.reshape.default(mask, [-1])
    arr.copy_(placed(arr, mask, values))
    return True


def _in_a_row(vals, dtype: DType) -> Tensor | None:
    """Values as a vector of the array's dtype, where that rounds and refuses nothing."""
    if type(vals) in (list, tuple):
        made = [None if is_tensor(v) else as_value(v, dtype) for v in vals]
        return aten.stack.default(made) if made and all(v is not None for v in made) else None
    value = as_value(vals, dtype)
    return None if value is None else aten.reshape.default(value, [-1])
