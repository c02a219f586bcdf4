"""Complex numbers of Python's that the graph computes.

Python's complex numbers answer operators first where NumPy's float64 stands on the right, since that is a float of Python's: ``1j * x[0]`` is a
complex, and ``1j / x[0]`` raises for a zero. Beside other operands it is NumPy that answers.
"""

from __future__ import annotations

import operator

import numpy as np

from ...exc import unsupported
from ...numpy import numpy_bridge
from ..base import Variable
from ..numpy.ndarray import NumpyNdarrayVariable
from .constant import ConstantVariable
from .graph_numbers import NumberVariable

__all__ = ["ComplexVariable", "as_numpys", "of_complex"]

SAME_AS_NUMPYS = {
    operator.add: operator.add, operator.iadd: operator.add, operator.sub: operator.sub, operator.isub: operator.sub,
    operator.mul: operator.mul, operator.imul: operator.mul, operator.eq: operator.eq, operator.ne: operator.ne,
}  # fmt: skip
NARROW = tuple(map(np.dtype, ("f2", "f4", "c8")))
"""Beside these a number of Python's takes their precision."""


class ComplexVariable(NumberVariable):
    def __init__(self, node, val):
        super().__init__(node, val, complex)

    def as_element(self):
        return NumpyNdarrayVariable(self.node, self.val)


def as_numpys(args: list[Variable]) -> list[Variable]:
    """The operands of a call of NumPy's with its own numbers for Python's complex ones, where it makes no difference."""
    if not any(type(a) is ComplexVariable for a in args):
        return args
    if any(isinstance(a, NumpyNdarrayVariable) and numpy_bridge.np_dtype(a.val) in NARROW for a in args):
        return args
    return [a.as_element() if type(a) is ComplexVariable else a for a in args]


def _is_complex(v: Variable) -> bool:
    return type(v) is ComplexVariable or (v.is_constant() and type(v.as_constant()) is complex)


def _is_pythons(v: Variable) -> bool:
    return _is_complex(v) or (v.is_constant() and type(v.as_constant()) in (bool, int, float))


def _is_float64(v: Variable) -> bool:
    plain = type(v) is NumpyNdarrayVariable and v.scalar
    return plain and numpy_bridge.np_dtype(v.val) == np.float64


def of_complex(tx, fn, a: Variable, b: Variable) -> Variable | None:
    """What Python gives for an operator of a complex number of its own; None where NumPy answers."""
    left = _is_complex(a) and (_is_pythons(b) or _is_float64(b))
    if not left and not (type(b) is ComplexVariable and _is_pythons(a)):
        return None
    base = SAME_AS_NUMPYS.get(fn)
    if base is None:
        unsupported("numpy", f"{fn.__name__} of complex numbers of Python's", "It raises where NumPy's doesn't.")
    numpy_bridge.load()
    given = as_numpys([ConstantVariable(x.as_constant()) if x.is_constant() else x for x in (a, b)])
    made = tx.output.call_in_graph(tx, "call_function", numpy_bridge.binary[base.__name__], given, {})
    if base in (operator.eq, operator.ne):
        return NumberVariable(made.node, made.val, bool)
    return ComplexVariable(made.node, made.val)
