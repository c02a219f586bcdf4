"""Python's operators on tensors: what computes each, and which public function overrides are handed.

One table. The slots of the class, the rules of classes that go by functions (nested, masked and quantised tensors) and capture, which runs the slots
themselves, read it; ``torch.overrides`` lists what it hands over.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .. import _C
from .bindings import new_function
from .conversion import array_operand
from .operator import namespace
from .overrides import override_own, wrap_function
from .tensor import Tensor

__all__ = ["OPERATORS", "Handed", "Operator", "attach", "function_of"]


class Handed(enum.Enum):
    """What ``__torch_function__`` is handed for an operator."""

    # The method that computes it: ``Tensor.add`` for ``a + b``.
    METHOD = enum.auto()
    # Python's method of the class: ``Tensor.__and__`` for ``a & b``.
    OWN = enum.auto()
    # The same, and overrides of the tensor are asked whatever the other operand is: PyTorch has it in Python.
    OWN_OF_ANY = enum.auto()
    # Python's method, where the tensor overrides, whatever the other operand is; the method that computes it, where only the other operand does.
    OWN_OR_METHOD = enum.auto()


class Operator(NamedTuple):
    """What computes an operator of Python's, and what overrides are handed."""

    computed_by: str | Callable
    handed: Handed = Handed.METHOD


def _reversed(name: str):
    """``other OP self``, of the operator ``name`` of ATen's."""

    def run(self, other):
        return getattr(namespace("aten"), name)(other, self)

    return run


def _divided_by(self, other):
    """``other / self``, by the reciprocal, as PyTorch does it. An ndarray's product with it is NumPy's."""
    aten = namespace("aten")
    if isinstance(other, np.ndarray):
        return aten.reciprocal(self) * other
    return aten.reciprocal(self) if other == 1 else aten.mul(aten.reciprocal(self), other)


def _invert(self):
    if self._dtype.is_floating_point or self._dtype.is_complex:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return namespace("aten").bitwise_not(self)


_OWN = Handed.OWN
_OF_ANY = Handed.OWN_OF_ANY

# By the name of Python's method. A method with a tensor on its right is called with the tensor first.
OPERATORS = {
    "__add__": Operator("add"),
    "__radd__": Operator("add"),
    "__iadd__": Operator("add_"),
    "__sub__": Operator("sub"),
    "__rsub__": Operator("rsub", _OF_ANY),
    "__isub__": Operator("sub_"),
    "__mul__": Operator("mul"),
    "__rmul__": Operator("mul"),
    "__imul__": Operator("mul_"),
    "__truediv__": Operator("div"),
    "__rtruediv__": Operator(_divided_by, _OF_ANY),
    "__itruediv__": Operator("div_"),
    "__floordiv__": Operator("floor_divide", _OF_ANY),
    "__rfloordiv__": Operator(_reversed("floor_divide"), _OF_ANY),
    "__ifloordiv__": Operator("floor_divide_"),
    "__mod__": Operator("remainder"),
    "__rmod__": Operator(_reversed("remainder"), _OF_ANY),
    "__imod__": Operator("remainder_"),
    "__pow__": Operator("pow", _OF_ANY),
    "__rpow__": Operator(_reversed("pow"), _OF_ANY),
    "__ipow__": Operator("pow_", _OF_ANY),
    "__matmul__": Operator("matmul"),
    "__rmatmul__": Operator(_reversed("matmul"), _OF_ANY),
    "__and__": Operator("bitwise_and", _OWN),
    "__rand__": Operator("bitwise_and"),
    "__iand__": Operator("bitwise_and_", _OWN),
    "__or__": Operator("bitwise_or", _OWN),
    "__ror__": Operator("bitwise_or"),
    "__ior__": Operator("bitwise_or_", _OWN),
    "__xor__": Operator("bitwise_xor", _OWN),
    "__rxor__": Operator("bitwise_xor"),
    "__ixor__": Operator("bitwise_xor_", _OWN),
    "__lshift__": Operator("bitwise_left_shift", _OWN),
    "__rlshift__": Operator(_reversed("bitwise_left_shift"), _OF_ANY),
    "__ilshift__": Operator("bitwise_left_shift_", _OWN),
    "__rshift__": Operator("bitwise_right_shift", _OWN),
    "__rrshift__": Operator(_reversed("bitwise_right_shift"), _OF_ANY),
    "__irshift__": Operator("bitwise_right_shift_", _OWN),
    "__lt__": Operator("lt"),
    "__le__": Operator("le"),
    "__eq__": Operator("eq", Handed.OWN_OR_METHOD),
    "__ne__": Operator("ne"),
    "__gt__": Operator("gt"),
    "__ge__": Operator("ge"),
    "__neg__": Operator("neg"),
    "__abs__": Operator("abs"),
    "__invert__": Operator(_invert, _OWN),
}

# What is handed -> what computes it.
_FUNCTIONS: dict[Callable, _C.Function] = {}


def function_of(func: Callable) -> Callable:
    """What computes ``func``, a function that an override is handed: itself, but of Python's methods for operators the function behind."""
    try:
        return _FUNCTIONS.get(func, func)
    except TypeError:  # not hashable: none of them
        return func


def attach(methods: dict) -> None:
    """Give the slots of the class their functions, from its ``methods``."""
    functions, asked = {}, {}
    for name, (computed_by, handed) in OPERATORS.items():
        own = getattr(Tensor, name)
        if callable(computed_by):
            computed_by.__name__ = name
            made = wrap_function(computed_by)
        elif handed in (Handed.OWN, Handed.OWN_OF_ANY):
            made = new_function(computed_by, method=True)
        else:
            made = methods[computed_by]
        if handed is not Handed.METHOD:
            _FUNCTIONS[own] = made
            if handed is not Handed.OWN_OR_METHOD:
                made.handed = own
            if handed is not Handed.OWN:
                asked[name] = own
        functions[name] = made
    _C.set_operators(functions, asked, array_operand, override_own)
    Tensor.__div__, Tensor.__rdiv__, Tensor.__idiv__ = Tensor.__truediv__, Tensor.__rtruediv__, Tensor.__itruediv__
    # As in PyTorch these are the methods themselves.
    Tensor.__pos__, Tensor.__neg__, Tensor.__abs__ = methods["positive"], methods["neg"], methods["abs"]
