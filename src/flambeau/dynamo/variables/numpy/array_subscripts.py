"""Subscripts of ndarrays: what their parts are, and which of them NumPy takes otherwise than tensors do."""

from __future__ import annotations

import numpy as np

from ...exc import unsupported
from ...numpy import numpy_bridge
from ..containers.sequences import TupleVariable
from ..tensors.tensor import TensorVariable
from ..values.constant import ConstantVariable

__all__ = ["element_key", "is_element", "is_small_integer", "is_whole", "parts_of", "runs_backwards"]

MOST_PARTS = 32
"""Of an index that is captured: each may be a dimension of its own beside those of the array."""


def parts_of(key, shape) -> list:
    """The parts of an index of an array of this shape. A mask has to be of the shape of the dimensions that it stands for."""
    parts = key.elements if hasattr(key, "elements") and key.python_type() is tuple else [key]
    if len(parts) > MOST_PARTS:
        unsupported(
            "numpy", f"an index of {len(parts)} parts", "NumPy's arrays have 64 dimensions at most, on the way as well."
        )
    at = 0
    for part in parts:
        if part.is_constant() and part.as_constant() is ...:
            break
        if part.is_constant() and part.as_constant() in (None, True, False) and type(part.as_constant()) is not int:
            continue
        mask = _mask_shape(part)
        if mask is not None and tuple(mask) != tuple(shape[at : at + len(mask)]):
            unsupported("numpy", f"a mask of shape {tuple(mask)} for {tuple(shape[at:])}", "NumPy raises an error.")
        at += 1 if mask is None else len(mask)
    return parts


def is_element(part) -> bool:
    """Whether a part of an index is a number."""
    return getattr(part, "scalar", False) or part.is_symbol or (part.is_constant() and type(part.as_constant()) is int)


def _mask_shape(part):
    """The shape of a part of an index that is an array of booleans, or a list of them; None of others."""
    if isinstance(part, TensorVariable):
        return part.val.shape if part.val.dtype.np is np.bool_ or np.dtype(part.val.dtype.np) == np.bool_ else None
    elements = getattr(part, "elements", None)
    if elements and all(e.is_constant() and type(e.as_constant()) is bool for e in elements):
        return (len(elements),)
    return None


def runs_backwards(part) -> bool:
    """Whether a part of a key is a slice with a step below zero."""
    step = part.parts[2] if part.python_type() is slice and len(getattr(part, "parts", ())) == 3 else None
    return step is not None and step.is_constant() and type(step.as_constant()) is int and step.as_constant() < 0


def is_whole(part) -> bool:
    """Whether a part of a key is ``:`` or ``::-1``."""
    return (
        part.python_type() is slice
        and part.can_constant()
        and part.as_constant() in (slice(None), slice(None, None, -1))
    )


def is_small_integer(part) -> bool:
    """Whether a part is an array of uint8: a mask to PyTorch, numbers to NumPy."""
    return isinstance(part, TensorVariable) and numpy_bridge.np_dtype(part.val) == np.uint8


def element_key(tx, key, parts, ndim: int):
    """(key, whether it has a dimension of one element in front): that of an element whose place is data is an index by arrays of one element."""
    parts = [tx.realize(p) for p in parts]
    data = [isinstance(p, TensorVariable) and p.val.ndim == 0 and _is_integer(p.val) for p in parts]
    if not any(data) or len(parts) != ndim or not all(d or _is_int_constant(p) for d, p in zip(data, parts)):
        return key, False
    parts = [TensorVariable.getitem(p, tx, ConstantVariable(None)) if d else p for d, p in zip(data, parts)]
    return TupleVariable(parts), True


def _is_integer(val) -> bool:
    return not (val.dtype.is_floating_point or val.dtype.is_complex) and numpy_bridge.np_dtype(val).kind in "iu"


def _is_int_constant(v) -> bool:
    return v.is_constant() and type(v.as_constant()) is int
