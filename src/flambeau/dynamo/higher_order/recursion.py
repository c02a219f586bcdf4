"""Recursive functions of numbers and arrays as native nodes: the region is the whole function, from its first instruction to its returns, and the
calls within are those of :mod:`flambeau.loops.recursion`."""

from __future__ import annotations

import types

import numpy as np

from flambeau import _C
from flambeau.base.weak import remembered
from flambeau.loops.random_numbers import streams

from ..bytecode.instructions import decode
from ..config import config
from ..rules import trace_rules
from ..variables.numpy.ndarray import NumpyNdarrayVariable
from ..variables.numpy.random_generators import NumpyGeneratorVariable
from ..variables.tensors.tensor import TensorVariable
from ..variables.values.graph_numbers import NumberVariable
from ..variables.values.symbolic import SymbolicVariable
from . import native_loops

__all__ = ["calls_itself", "try_native"]

# Functions between a function and itself.
WAYS = 4


def calls_itself(code: types.CodeType, globals: dict) -> bool:
    """Whether a function names itself, or one of its module's functions that does; an inner function reads itself from a cell."""
    return code.co_name in code.co_freevars or _leads_to(code, code, globals, WAYS, set())


def _leads_to(code, to, globals: dict, ways: int, seen: set[int]) -> bool:
    for name in _globals_of(code):
        other = globals.get(name)
        if trace_rules.is_compiled(other):
            other = other.fn
        if type(other) is not types.FunctionType or other.__globals__ is not globals or id(other.__code__) in seen:
            continue
        if other.__code__ is to:
            return True
        seen.add(id(other.__code__))
        if ways > 1 and _leads_to(other.__code__, to, globals, ways - 1, seen):
            return True
    return False


@remembered
def _globals_of(code: types.CodeType) -> tuple[str, ...]:
    return tuple(dict.fromkeys(i.argval for i in decode(code) if i.name == "LOAD_GLOBAL"))


def try_native(tx) -> bool:
    """Before the first instruction of a frame: have the calls of a recursive function be one native node. In a function that another one calls they
    are that if they are about arrays, or numbers that aren't known; what follows from constants is a constant."""
    if not config.native_loops or not calls_itself(tx.code, tx.globals):
        return False
    given = [
        v if (value := getattr(v.unwrap(), "value", None)) is None else value
        for v in tx.locals.values()
        if v is not None
    ]
    if any(map(_is_tensor, given)) or (tx.parent is not None and not any(map(_is_unknown, given))):
        return False
    return native_loops.try_function(tx)


def _is_tensor(v) -> bool:
    if isinstance(v, TensorVariable):
        return not isinstance(v, NumpyNdarrayVariable)
    return trace_rules.is_a(v, _C.TensorBase)


def _is_unknown(v) -> bool:
    """Whether it is, or may be written through, another value at each call."""
    kinds = (NumpyNdarrayVariable, NumpyGeneratorVariable, SymbolicVariable, NumberVariable)
    return isinstance(v, kinds) or trace_rules.is_a(v, (np.ndarray, *streams.classes()))
