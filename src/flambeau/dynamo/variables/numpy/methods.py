"""Attributes and methods of ndarray that tell of its layout, or give numbers of Python's."""

from __future__ import annotations

import math

import numpy as np

from ...exc import unsupported
from ...numpy import numpy_bridge
from ..base import Variable
from ..containers.lists import ListVariable
from ..tensors.tensor import TensorVariable
from ..values.complex_numbers import ComplexVariable
from ..values.constant import ConstantVariable
from ..values.graph_numbers import NumberVariable
from .ndarray import ATTRIBUTES, METHODS_IN_PYTHON, NumpyNdarrayVariable

__all__ = ["FlagsVariable", "strides_of"]

MOST_NUMBERS = 64
"""Of an array that becomes a list."""
PYTHONS = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64, "c": np.complex128}
"""The dtype in which a number of a kind becomes Python's."""


def strides_of(array: NumpyNdarrayVariable) -> tuple[int, ...]:
    """In bytes, as NumPy counts."""
    item, strides = numpy_bridge.np_dtype(array.val).itemsize, tuple(array.val.stride())
    if any(type(n) is not int for n in (*strides, *array.val.shape)):
        unsupported("numpy", "the strides of an array of a size that isn't known", "They follow from its sizes.")
    return tuple(item * s for s in strides)


def _in_order(array: NumpyNdarrayVariable, backwards: bool) -> bool:
    shape, strides = tuple(array.val.shape), strides_of(array)
    if 0 in shape:
        return True
    step = numpy_bridge.np_dtype(array.val).itemsize
    for n, s in zip(reversed(shape) if backwards else shape, reversed(strides) if backwards else strides):
        if n != 1 and s != step:
            return False
        step *= n
    return True


class FlagsVariable(Variable):
    """``array.flags``: what of it follows from the strides."""

    def __init__(self, array: NumpyNdarrayVariable):
        super().__init__()
        self.array = array

    def __repr__(self):
        return "the flags of an array"

    def python_type(self):
        return type(np.empty(0).flags)

    def getattr(self, tx, name):
        c, f = _in_order(self.array, True), _in_order(self.array, False)
        told = {"c_contiguous": c, "f_contiguous": f, "contiguous": c, "fortran": f, "fnc": f and not c, "forc": f or c}
        if name not in told:
            unsupported("numpy", f"ndarray.flags.{name}", "It is about memory that a graph has of its own.")
        return ConstantVariable(told[name])

    def getitem(self, tx, key):
        names = {
            "C_CONTIGUOUS": "c_contiguous",
            "C": "c_contiguous",
            "F_CONTIGUOUS": "f_contiguous",
            "F": "f_contiguous",
        }
        name = key.as_constant() if key.can_constant() else None
        return self.getattr(tx, names.get(name, name))


ATTRIBUTES["strides"] = lambda tx, array: ConstantVariable(strides_of(array))
ATTRIBUTES["flags"] = lambda tx, array: FlagsVariable(array)
ATTRIBUTES["device"] = lambda tx, array: ConstantVariable("cpu")


def _number(tx, array: NumpyNdarrayVariable) -> Variable | None:
    """A number of Python's for an array of one element."""
    dtype = numpy_bridge.np_dtype(array.val)
    # Complex numbers and uint64 have no symbols.
    if dtype == np.uint64:
        return NumberVariable(array.node, array.val, int)
    wide = PYTHONS.get(dtype.kind)
    if wide is None:
        return None
    whole = array.call_method(tx, "astype", [ConstantVariable(np.dtype(wide))], {})
    if wide is np.complex128:
        return ComplexVariable(whole.node, whole.val)
    return TensorVariable.call_method(whole, tx, "item", [], {})


def item(tx, array: NumpyNdarrayVariable, args, kwargs) -> Variable | None:
    """ndarray.item: of its only element, or of one at a place that is known."""
    if kwargs or not all(a.can_constant() for a in args):
        return None
    at = [a.as_constant() for a in args]
    at = list(at[0]) if len(at) == 1 and isinstance(at[0], tuple) else at
    shape = tuple(array.val.shape)
    if any(type(n) is not int for n in (*at, *shape)):
        return None
    if not at:
        if math.prod(shape) != 1:
            return tx.raise_user(ValueError("can only convert an array of size 1 to a Python scalar"))
        at = [0]
    if len(at) == 1:
        size = math.prod(shape)
        if not -size <= at[0] < size:
            return tx.raise_user(IndexError(f"index {at[0]} is out of bounds for size {size}"))
        at = list(map(int, np.unravel_index(at[0] % size, shape))) if shape else []
    elif len(at) != len(shape):
        return tx.raise_user(ValueError("incorrect number of indices for array"))
    element = array.getitem(tx, ConstantVariable(tuple(at))) if shape else array
    return _number(tx, element)


def tolist(tx, array: NumpyNdarrayVariable, args, kwargs) -> Variable | None:
    """ndarray.tolist of few elements: a number of Python's for each."""
    shape = tuple(array.val.shape)
    if args or kwargs or any(type(n) is not int for n in shape) or math.prod(shape) > MOST_NUMBERS:
        return None
    if not shape:
        return _number(tx, array)
    rows = [tolist(tx, array.getitem(tx, ConstantVariable(k)), [], {}) for k in range(shape[0])]
    return None if any(r is None for r in rows) else ListVariable(rows)


def itself(tx, array: NumpyNdarrayVariable, args, kwargs) -> Variable | None:
    """ndarray.__array__() and to_device("cpu")."""
    return array if not kwargs and all(a.can_constant() and a.as_constant() == "cpu" for a in args) else None


METHODS_IN_PYTHON |= {"item": item, "tolist": tolist, "to_device": itself}
