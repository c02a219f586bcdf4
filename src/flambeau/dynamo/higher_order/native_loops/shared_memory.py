"""Whether arrays of a loop share memory: one that is written may be no view of another, as results are arrays of their own."""

from __future__ import annotations

import numpy as np

from flambeau.loops.values import Declined

from ...numpy import numpy_bridge
from ...variables.numpy.ndarray import NumpyNdarrayVariable
from ...variables.values.symbolic import SymbolicVariable

__all__ = ["guarded_number", "refuse_shared_memory"]


def refuse_shared_memory(operands: list, written: list[int]) -> None:
    """Declined where an operand that is written is a view of the same elements as another one: results are arrays of their own."""
    for n in written:
        for k, other in enumerate(operands):
            if k != n and isinstance(other, NumpyNdarrayVariable) and _share_memory(operands[n].val, other.val):
                raise Declined("two of its arrays share memory, and one is written")


def _share_memory(a, b) -> bool:
    """Whether two tensors have elements in common."""
    if a._storage is not b._storage:
        return False
    try:
        return np.shares_memory(_Described(a).array(), _Described(b).array(), max_work=10_000)
    except np.exceptions.TooHardError:
        return True


class _Described:
    """Where the elements of a tensor lie, as NumPy's array interface tells it; nothing is read there. Sizes that are symbols become constants."""

    def __init__(self, t):
        dtype = numpy_bridge.np_dtype(t)
        shape, strides = (tuple(map(guarded_number, n)) for n in (t.shape, t.stride()))
        self.__array_interface__ = {
            "data": ((1 << 40) + guarded_number(t.storage_offset()) * dtype.itemsize, True),
            "shape": shape,
            "strides": tuple(dtype.itemsize * s for s in strides),
            "typestr": dtype.str,
            "version": 3,
        }

    def array(self) -> np.ndarray:
        return np.asarray(self)


def guarded_number(n) -> int:
    """A size as a number; one that varies is guarded to be what it is."""
    return n if type(n) is int else SymbolicVariable(n).as_constant()
