"""Overflows of NumPy's integer scalars: a node beside each operator whose result may have wrapped around (flambeau/numpy/integer_overflow.py)."""

from __future__ import annotations

from ...config import config
from ...numpy import numpy_bridge
from ..base import Variable
from ..tensors.tensor import TensorVariable
from ..values.constant import ConstantVariable
from .ndarray import NumpyNdarrayVariable

__all__ = ["tell_of_overflow"]

OPERATORS = ("add", "sub", "mul", "neg", "abs")
PLACES = frozenset("argmax argmin count_nonzero".split())
"""Functions, by their names in graphs, whose integers count elements."""
SMALL = 1 << 32


def tell_of_overflow(tx, name: str, operands: list[Variable], result: Variable) -> Variable:
    """``result``, of the operator ``name`` on these. Where it is an integer scalar of NumPy's, the graph notices that it has wrapped around."""
    if name not in OPERATORS or config.numpy_floating_point_errors == "off":
        return result
    if not isinstance(result, NumpyNdarrayVariable) or not result.scalar or any(map(_is_array, operands)):
        return result
    if numpy_bridge.np_dtype(result.val).kind not in "iu":
        return result
    if name in ("add", "sub", "mul") and result.val.dtype.itemsize == 8 and all(map(_is_small, operands)):
        return result
    check = numpy_bridge.binary["overflow_of_integers"]
    tx.output.call_in_graph(tx, "call_function", check, [ConstantVariable(name), result, *operands], {})
    return result


def _is_array(v: Variable) -> bool:
    return isinstance(v, TensorVariable) and not getattr(v, "scalar", False)


def _is_small(v: Variable) -> bool:
    """Whether an integer counts elements, or is a small constant."""
    if isinstance(v, NumpyNdarrayVariable):
        return getattr(v.node.target, "__name__", v.node.target) in PLACES
    return v.is_constant() and isinstance(v.as_constant(), int) and abs(v.as_constant()) < SMALL
