"""The table: NumPy callables, ndarray methods, attributes and Python operators as functions on tensors.

An implementation takes tensors where NumPy takes arrays (Python numbers and NumPy scalars stay what they are) and
returns tensors. It raises TypeError for what it doesn't cover: the piece then runs in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core.operator import namespace
from ..core.tensor import Tensor
from .promotion import can_cast, cast, dtype_of, is_tensor

__all__ = ["ATTRIBUTES", "FUNCTIONS", "METHODS", "OPERATORS", "UFUNCS", "always", "implements", "into", "later"]

FUNCTIONS: list[tuple[Callable, Callable]] = []
METHODS: dict[str, Callable] = {}
ATTRIBUTES: dict[str, Callable] = {}
OPERATORS: dict[str, Callable] = {}  # by name in the operator module
# NumPy's namespace as it is: asking for each name of ``dir(np)`` would import all of NumPy's submodules.
UFUNCS = {name: f for name, f in sorted(vars(np).items()) if isinstance(f, np.ufunc) and f.__name__ == name}
"""NumPy's ufuncs by their names, without second names of the same."""


def implements(
    *callables,
    method: str | None = None,
    attribute: str | None = None,
    operator: str | None = None,
    gives_array: bool | Callable[..., bool] = False,
    read_only: Callable[..., bool] | None = None,
    keeps_scalars: bool = False,
) -> Callable[[Callable], Callable]:
    """Decorator: enter a function for these NumPy callables, and as a method, attribute or operator of ndarray.

    ``gives_array``, or what it says of the tensors: a result without dimensions is an array in NumPy too, and not a scalar.
    ``read_only(*tensors)``: whether NumPy lets nobody
    write into the result.
    """

    def enter(fn: Callable) -> Callable:
        fn.gives_array, fn.read_only, fn.keeps_scalars = gives_array, read_only, keeps_scalars  # type: ignore[attr-defined]
        FUNCTIONS.extend((c, fn) for c in callables)
        if method is not None:
            METHODS[method] = fn
        if attribute is not None:
            ATTRIBUTES[attribute] = fn
        if operator is not None:
            OPERATORS[operator] = fn
        return fn

    return enter


def always(*operands) -> bool:
    """For ``read_only``."""
    return True


def into(out: Tensor | tuple[Tensor] | None, result: Tensor, casting: str = "no") -> Tensor:
    """What a function with ``out=`` returns: the result, or ``out`` after the result was written into it. Only a ufunc computes in a dtype that
    doesn't depend on that of ``out``, and casts."""
    if out is None:
        return result
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if not is_tensor(out):
        raise TypeError("return arrays must be of ArrayType")
    if tuple(out.shape) != tuple(result.shape):
        raise TypeError(f"output array of shape {tuple(out.shape)} for a result of shape {tuple(result.shape)}")
    if not can_cast(dtype_of(result), dtype_of(out), casting):
        raise TypeError(f"Cannot cast output from {dtype_of(result)} to {dtype_of(out)} with casting rule '{casting}'")
    return out.copy_(cast(result, dtype_of(out)))


class later:
    """``aten.name``, looked up when it is first used: it may be of a family that loads then."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args):
        return getattr(namespace("aten"), self._name)(*args)

    def __getattr__(self, overload: str):
        found = getattr(getattr(namespace("aten"), self._name), overload)
        setattr(self, overload, found)
        return found
