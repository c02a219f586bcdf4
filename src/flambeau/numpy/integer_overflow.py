"""NumPy tells of it when an operator of its integer scalars overflows (arrays of integers wrap around silently). In a graph this function stands
beside the operator: it raises the processor's overflow flag then, for which a call is made again plainly (dynamo/numpy/floating_errors.py)."""

from __future__ import annotations

import operator
from typing import Any

from ..base import dtypes
from ..core.operator import namespace
from ..core.tensor import Tensor
from .promotion import is_tensor

__all__ = ["overflow_of_integers"]

aten = namespace("aten")
OPERATORS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg, "abs": abs}
# Doubled it is infinite.
HUGE = 1.7e308


def overflow_of_integers(name: str, result: Tensor, *operands: Any) -> Tensor:
    """A float: infinite where the operator ``name`` of ``operands`` gave a ``result`` that is wrapped around, which differs from the exact one by
    multiples of 2**bits; else at most rounding errors of float64 remain, which are far smaller."""

    def exact(x):
        return x.to(dtypes.float64) if is_tensor(x) else x

    difference = OPERATORS[name](*map(exact, operands)) - exact(result)
    return aten.mul(difference, HUGE / 2.0 ** (8 * result.dtype.itemsize - 1))
