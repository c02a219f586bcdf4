"""``torch.tensor`` of nested sequences whose elements have no value yet: tensors without data and symbolic numbers. Operators put them together."""

from __future__ import annotations

import math

from .. import _C
from ..base import dtypes
from ..base.dtypes import DType
from ..base.symint import NUMBERS, SymFloat, SymInt
from .nested import element_of, inferred, is_sequence, sizes_of
from .operator import namespace

__all__ = ["made_of_operators"]

aten = namespace("aten")


def made_of_operators(data, dtype: DType | None):
    """The tensor of ``data``. Errors as :func:`~.nested.array_of` has them; TypeError for a tensor of several elements among the numbers."""
    sizes = sizes_of(data)
    dtype = _dtype_of(data) if dtype is None else dtype
    elements: list = []
    _collect(data, sizes, 0, elements)
    made = [_element(x, dtype) for x in elements]
    return (
        aten.reshape.default(aten.stack.default(made), sizes) if made else aten.empty.memory_format(sizes, dtype=dtype)
    )


def _dtype_of(data) -> DType:
    if isinstance(data, SymInt):
        return dtypes.int64
    if isinstance(data, NUMBERS):
        return dtypes.get_default_dtype() if isinstance(data, SymFloat) else dtypes.bool_
    if type(data) not in (list, tuple) or not data:
        return inferred(data)
    found = _dtype_of(data[0])
    for x in data[1:]:
        found = dtypes.promote_types(found, _dtype_of(x))
    return found


def _collect(data, sizes: list[int], dim: int, out: list) -> None:
    if dim == len(sizes):
        out.append(data)
        return
    if not is_sequence(data):
        raise TypeError("not a sequence")
    if len(data) != sizes[dim]:
        raise ValueError(f"expected sequence of length {sizes[dim]} at dim {dim} (got {len(data)})")
    for x in data:
        _collect(x, sizes, dim + 1, out)


def _element(x, dtype: DType):
    """A tensor of no dimensions."""
    if isinstance(x, NUMBERS):
        return aten.scalar_tensor.default(x, dtype=dtype)
    if not isinstance(x, _C.TensorBase):
        return aten.scalar_tensor.default(element_of(x, dtype), dtype=dtype)
    if math.prod(x._shape) != 1 or (dtype.category < 2 <= x._dtype.category):
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return aten._to_copy.default(aten.reshape.default(aten.detach.default(x), ()), dtype=dtype)
