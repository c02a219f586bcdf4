"""``torch.tensor`` of sequences that hold tensors and arrays: they are its elements and rows, and what eager refuses of their values is checked."""

from __future__ import annotations

import operator
from collections.abc import Iterator

import numpy as np

from flambeau.base import dtypes, shape_checks
from flambeau.base.dtypes import DType

from ...rules import trace_rules
from ..base import Variable
from ..containers.lists import ListVariable
from ..containers.sequences import TupleVariable
from ..numpy.ndarray import NumpyNdarrayVariable
from ..values.constant import ConstantVariable
from ..values.symbolic import CheckVariable, SymbolicVariable, arithmetic, require_element
from .tensor import TensorVariable
from .torch_functions import special

__all__ = ["check_values"]

REFUSED = "a value cannot be converted without overflow"


@special("tensor")
def _(tx, var, args, kwargs):
    """A list of arrays is one of their rows; tensors are elements of it."""
    given = args[0].unwrap() if args else None
    if isinstance(given, SymbolicVariable):
        check_values(tx, [given], kwargs.get("dtype"))
    if type(given) not in (ListVariable, TupleVariable) or not given.elements:
        return None
    arrays = [tx.realize(v) for v in given.elements]
    if not all(isinstance(a, NumpyNdarrayVariable) and a.val.ndim for a in arrays):
        elements = list(elements_of(tx, given))
        if any(
            isinstance(v, NumpyNdarrayVariable) and v.python_type() is np.ndarray and not v.val.ndim for v in elements
        ):
            tx.raise_user(TypeError("len() of unsized object"))
        check_values(tx, elements, kwargs.get("dtype"))
        return None
    library = trace_rules.library_attr
    stacked = tx.wrap_function(library("stack")).call(
        tx, [ListVariable([TensorVariable(a.node, a.val) for a in arrays])], {}
    )
    return tx.wrap_function(library("tensor")).call(tx, [stacked, *args[1:]], kwargs)


def elements_of(tx, v: Variable) -> Iterator[Variable]:
    """What nested lists and tuples hold."""
    v = tx.realize(v).unwrap()
    if not isinstance(v, (ListVariable, TupleVariable)):
        yield v
        return
    for x in v.elements:
        yield from elements_of(tx, x)


def check_values(tx, elements: list[Variable], dtype: Variable | None) -> None:
    """The graph checks that the dtype holds the values of all tensors and integers among the elements; at an error the frame runs plainly, which
    words it."""
    if dtype is None or not isinstance(kind := tx.realize(dtype).as_constant(), DType):
        return
    check_integers(tx, [v for v in elements if isinstance(v, SymbolicVariable) and v.python_type() is int], kind)
    tensors = [v for v in elements if isinstance(v, TensorVariable) and v.val.numel() == 1]
    held = [h.call_method(tx, "reshape", [ConstantVariable(-1)], {}) for v in tensors if (h := is_held(tx, v, kind))]
    if not held:
        return
    all_held = tx.wrap_function(trace_rules.library_attr("cat")).call(tx, [ListVariable(held)], {})
    with tx.output.shapes.data_numbers():
        require_element(tx, all_held.call_method(tx, "all", [], {}), REFUSED)


def check_integers(tx, numbers: list[Variable], to: DType) -> None:
    if to.category != 1 or to.itemsize == 8:
        return
    low, high = dtypes.limits(to)
    for v in numbers:
        for fn, limit in ((operator.ge, low), (operator.le, high)):
            CheckVariable(shape_checks.check).require(tx, arithmetic(tx, fn, [v, ConstantVariable(limit)]), REFUSED)


def is_held(tx, v: TensorVariable, to: DType) -> Variable | None:
    """A tensor that tells whether ``to`` holds the value; None where it holds all values of the tensor's dtype, or none."""
    of = v.val.dtype
    if of.category == 3 and to.category == 2:
        return v.getattr(tx, "imag").call_method(tx, "eq", [ConstantVariable(0)], {})
    if of.category != 1 or to.category != 1:
        return None
    low, high = dtypes.limits(to)
    if to is dtypes.uint64:
        low = 0  # which Python itself refuses
    limits = []
    if np.iinfo(of.np).min < low:
        limits.append(v.call_method(tx, "ge", [ConstantVariable(low)], {}))
    if np.iinfo(of.np).max > high:
        limits.append(v.call_method(tx, "le", [ConstantVariable(high)], {}))
    return (
        limits[0].call_method(tx, "logical_and", limits[1:], {}) if len(limits) == 2 else limits[0] if limits else None
    )
