"""``array[mask] *= number``: computed for all elements, and written where the mask says.

NumPy gathers the elements, computes, and scatters them. How many there are depends on data, which ends a graph; choosing between old and
new elements does not, and reads the array once."""

from __future__ import annotations

import operator

import numpy as np

from ....base.shapes import statically_equal
from ...exc import unsupported
from ...numpy import numpy_bridge
from ..base import Variable
from .ndarray import NumpyNdarrayVariable

__all__ = ["MaskedVariable", "selection"]

# Of numbers these have a value for every element: computing those that aren't chosen raises nothing.
TOTAL = {operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.iand, operator.ior, operator.ixor}
LOADS = {
    "LOAD_CONST",
    "LOAD_SMALL_INT",
    "LOAD_FAST",
    "LOAD_FAST_CHECK",
    "LOAD_FAST_BORROW",
    "LOAD_DEREF",
    "LOAD_GLOBAL",
}
STORE = ["SWAP", "SWAP", "STORE_SUBSCR"]


def selection(tx, array: Variable, mask: Variable, following: list, operators: list) -> MaskedVariable | None:
    """What ``array[mask]`` stands for where the instructions that follow write it back, changed by a number; None where they do otherwise.
    ``operators``: by the argument of BINARY_OP."""
    if len(following) < 5 or following[0].name not in LOADS or following[1].name != "BINARY_OP":
        return None
    if operators[following[1].arg] not in TOTAL or [i.name for i in following[2:5]] != STORE:
        return None
    array, mask = tx.realize(array), tx.realize(mask)
    arrays = all(type(v) is NumpyNdarrayVariable and not v.scalar and v.val.ndim for v in (array, mask))
    if not arrays or numpy_bridge.np_dtype(mask.val) != np.bool_:
        return None
    shapes = array.val.shape, mask.val.shape
    same = len(shapes[0]) == len(shapes[1]) and all(map(statically_equal, *shapes))
    return MaskedVariable(array, mask) if same else None


class MaskedVariable(Variable):
    """The elements of ``array`` that ``mask`` chooses, of which ``value`` has those that the statement computes, at all places."""

    def __init__(self, array: NumpyNdarrayVariable, mask: NumpyNdarrayVariable, value: Variable | None = None):
        super().__init__()
        self.array, self.mask, self.value = array, mask, value

    def python_type(self):
        return np.ndarray

    def reconstruct(self, cg):
        def arguments():
            cg(self.array)
            cg(self.mask)

        cg.call_function(operator.getitem, arguments, 2)

    def updated(self, tx, fn, other: Variable) -> MaskedVariable:
        """After the operator ``fn`` of an assignment."""
        other = tx.realize(other)
        number = other.is_constant() and isinstance(other.as_constant(), int | float | complex | np.number | np.bool_)
        if not number and not (type(other) is NumpyNdarrayVariable and (other.scalar or not other.val.ndim)):
            unsupported(
                "numpy",
                "array[mask] changed by something that is no number",
                "How many elements the mask chooses depends on the values of the arguments.",
            )
        whole = self.array.call_method(tx, "copy", [], {})
        return MaskedVariable(self.array, self.mask, tx.operators.binary(tx, fn, whole, other))

    def store(self, tx) -> None:
        """Write what was computed into the array."""
        tx.wrap_known(np.copyto).call(tx, [self.array, self.value], {"where": self.mask})
