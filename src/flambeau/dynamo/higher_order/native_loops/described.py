"""Variables as :mod:`flambeau.loops` is told of them. Declined for what native loops have no place for."""

from __future__ import annotations

import itertools

import numpy as np

from flambeau.loops import text
from flambeau.loops.containers import MOST, MOST_ALIKE, Given
from flambeau.loops.emitter import constant
from flambeau.loops.operands import Generator, GivenArray, Items, Written
from flambeau.loops.values import TABLES, Declined, Known, Symbolic, memory_type

from ...config import config
from ...numpy import numpy_bridge
from ...rules.reflect import name_of
from ...variables.containers.deques import DequeVariable
from ...variables.containers.dicts import DictVariable
from ...variables.containers.lists import ListVariable
from ...variables.containers.sequences import TupleVariable
from ...variables.containers.sets import SetVariable
from ...variables.functions.nested_functions import NestedFunctionVariable
from ...variables.numpy.ndarray import NumpyNdarrayVariable
from ...variables.numpy.random_generators import DrawVariable, NumpyGeneratorVariable
from ...variables.tensors.tensor import TensorVariable
from ...variables.values.given_text import GivenTextVariable
from ...variables.values.graph_numbers import NumberVariable
from ...variables.values.symbolic import SymbolicVariable

__all__ = ["container", "describe", "is_whole_number", "size_of", "whole"]

# Integers that loops are told are below it.
LARGEST = 1 << 62


def describe(tx, operands: dict, v):
    """A variable as flambeau.loops wants it; arrays and generators are entered in ``operands``."""
    v = tx.realize(v)
    if isinstance(v, GivenTextVariable):
        return Written(describe(tx, operands, v.codes()))
    if isinstance(v, NumberVariable):
        raise Declined("a number that another loop computed")
    if isinstance(v, NumpyNdarrayVariable):
        dtype = numpy_bridge.np_dtype(v.val)
        memory_type(dtype)
        if v.val.requires_grad and not _records():
            raise Declined("a gradient is asked for, and native_loop_gradients is off")
        ndim = len(v.val.shape)
        if ndim == 0 and not v.scalar:
            raise Declined("an array without dimensions")
        operands[id(v.node)] = v
        dense = ndim > 0 and v.val.stride()[-1] == 1
        return GivenArray(v.node, dtype, ndim, dense, tuple(map(size_of, v.val.shape)))
    if type(v) is TupleVariable and v.cls is tuple:
        return Items(tuple(describe(tx, operands, item) for item in v.elements))
    if isinstance(v, NumpyGeneratorVariable | DrawVariable):
        owner = v if isinstance(v, NumpyGeneratorVariable) else v.owner
        operands[id(owner.node)] = owner
        legacy = owner.cls is np.random.RandomState
        return Generator(owner.node, tuple(map(size_of, owner.val.shape)), legacy, None if owner is v else v.name)
    if isinstance(v, TensorVariable):
        raise Declined("a tensor")
    if isinstance(v, SymbolicVariable):
        kind = v.python_type()
        if kind is bool:
            raise Declined("a bool that is a symbol")
        return whole(v) if kind is int else Symbolic(v, np.dtype(np.float64))
    if v.is_constant():
        value = v.as_constant()
        if type(value) in (bool, int, float, complex):
            if type(value) is int and not -LARGEST < value < LARGEST:
                raise Declined("a very large integer")
            return constant(value)
        if isinstance(value, (np.bool_, np.integer, np.inexact)):
            memory_type(value.dtype)
            return constant(value)
        return Known(value, v)
    if isinstance(v, NestedFunctionVariable):
        return Known(v, v)
    value = getattr(v, "value", None)
    if value is None:
        value = getattr(v, "fn", None)
    if value is None:
        raise Declined(f"a value of class {name_of(v.python_type())}")
    return Known(value, v)


_KINDS: dict[type, str] = {ListVariable: "list", DequeVariable: "deque", DictVariable: "dict", SetVariable: "set"}


def container(v, described) -> Given | None:
    """A list, deque, dict or set of a few numbers that is made in the frame, which a loop may change."""
    kind = _KINDS.get(type(v))
    if (
        kind is None
        or getattr(v, "maxlen", None) is not None
        or v.source is not None
        or v.python_type().__name__ != kind
    ):
        return None
    items = [*v.entries.values()] if kind in TABLES else v.elements
    long = kind == "list" and MOST < len(items) <= MOST_ALIKE
    by = _step_of(items) if long else None
    if (len(items) > MOST and by is None) or (kind == "dict" and (v.base is not None or v.factory is not None)):
        return None

    def item(x):
        return Items(tuple(map(item, x.elements))) if type(x) is TupleVariable and x.cls is tuple else _number_of(x)

    if kind == "list" and items and not all(map(_is_number, items)):
        return Given(kind, (), None, True)
    return Given(kind, tuple(Items(tuple(map(item, x))) if kind == "dict" else item(x) for x in items), by)


def _is_number(x) -> bool:
    """Whether it is one that a container holds, or a tuple of such."""
    if type(x) is TupleVariable and x.cls is tuple:
        return all(map(_is_number, x.elements))
    known = x.is_constant() and type(x.as_constant()) in (bool, int, float)
    return known or (x.is_constant() and type(x.as_constant()) is str and len(x.as_constant()) == 1)


def _step_of(items: list) -> int | None:
    """By how much the known numbers of a list grow: 0 where they are one number, as in ``[0.0] * n``; None where that differs."""
    if not all(x.is_constant() and type(x.as_constant()) in (bool, int, float) for x in items):
        return None
    numbers = [x.as_constant() for x in items]
    if len({(type(n), repr(n)) for n in numbers}) == 1:
        return 0
    if any(type(n) is not int for n in numbers):
        return None
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    return steps.pop() if len(steps) == 1 else None


def _number_of(x):
    if x.is_constant() and type(x.as_constant()) is str and len(x.as_constant()) == 1:
        return text.character(Known(x.as_constant()))
    if not x.is_constant() or type(x.as_constant()) not in (bool, int, float):
        raise Declined("a container of other things than known numbers")
    if type(x.as_constant()) is int and not -LARGEST < x.as_constant() < LARGEST:
        raise Declined("a very large integer")
    return constant(x.as_constant())


def _records() -> bool:
    """Whether loops are native where a gradient is asked for."""
    return config.native_loop_gradients


def size_of(n):
    """A size as a number, or as an expression; equal ones are one object."""
    return n if type(n) is int else n.expr


def whole(v: SymbolicVariable) -> Symbolic:
    """An int that differs between calls, which may be the size of an array or near one."""
    return Symbolic(v, np.dtype(np.int64), size_of(v.number))


def is_whole_number(v) -> bool:
    """Whether a variable is an int that a native loop may be handed as an operand."""
    known = v is not None and v.is_constant() and type(v.as_constant()) is int
    return known and -LARGEST < v.as_constant() < LARGEST
