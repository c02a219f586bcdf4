"""Comparisons of containers that hold more than constants: ``<`` and its kin of sequences, slices and sets, and equality of slices, of sets and of
containers of different kinds."""

from __future__ import annotations

import operator

from ...rules.reflect import type_item
from ..base import Variable
from ..containers.dicts import DictVariable, DictView
from ..containers.lists import ListVariable
from ..containers.sequences import SequenceVariable, TupleVariable
from ..containers.sets import SetVariable, elements_of
from ..containers.slices import SliceVariable
from ..values.constant import ConstantVariable

__all__ = ["equal_containers", "ordered"]

NUMBERS_AND_TEXTS = frozenset((int, float, complex, bool, str, bytes, type(None)))
METHODS = {operator.lt: "__lt__", operator.le: "__le__", operator.gt: "__gt__", operator.ge: "__ge__"}


def parts_of(tx, v: Variable) -> list[Variable]:
    return v.parts if isinstance(v, SliceVariable) else v.items(tx)


def one_order(fn, a: Variable, b: Variable) -> bool:
    """Whether both are put in order by the method of one builtin sequence."""
    if isinstance(a, SliceVariable) or isinstance(b, SliceVariable):
        return isinstance(a, SliceVariable) and isinstance(b, SliceVariable)
    if not isinstance(a, SequenceVariable) or not isinstance(b, SequenceVariable):
        return False
    plain = a.plain_class()
    return plain is b.plain_class() and all(
        type_item(v.python_type(), METHODS[fn]) is type_item(plain, METHODS[fn]) for v in (a, b)
    )


def is_set(v: Variable) -> bool:
    return isinstance(v, SetVariable) or (isinstance(v, DictView) and v.is_set)


def is_subset(tx, a: Variable, b: Variable) -> bool:
    if a.length(tx) > b.length(tx):
        return False
    if isinstance(b, SetVariable):
        return b.compared(tx, "issuperset", a)
    return all(b.contains(tx, e).as_constant() for e in elements_of(tx, a))


def ordered(tx, fn, a: Variable, b: Variable) -> Variable | None:
    """``fn(a, b)`` for one of the four comparisons that order; None for what has no such order here."""
    if is_set(a) and is_set(b):
        small, large = (a, b) if fn in (operator.lt, operator.le) else (b, a)
        proper = fn in (operator.lt, operator.gt)
        return ConstantVariable(is_subset(tx, small, large) and not (proper and small.length(tx) == large.length(tx)))
    if not one_order(fn, a, b):
        return None
    x, y = parts_of(tx, a), parts_of(tx, b)
    for p, q in zip(x, y):
        # The first two that differ decide.
        if not tx.operators.same_or_equal(tx, p, q):
            return tx.operators.binary(tx, fn, p, q)
    return ConstantVariable(fn(len(x), len(y)))


def family(v: Variable) -> type | None:
    """Values of different families are never equal; None for what may have its own mind about that."""
    if is_set(v):
        return set
    if v.is_constant():
        return object if type(v.as_constant()) in NUMBERS_AND_TEXTS else None
    kinds = ((ListVariable, list), (TupleVariable, tuple), (DictVariable, dict), (SliceVariable, slice))
    found = next((cls for kind, cls in kinds if isinstance(v, kind)), None)
    if found is None or type_item(v.python_type(), "__eq__") is not type_item(found, "__eq__"):
        return None
    return found


def equal_containers(tx, a: Variable, b: Variable) -> bool | None:
    """Whether two slices, two sets or containers of different kinds are equal; None for others."""
    if is_set(a) and is_set(b):
        return a.length(tx) == b.length(tx) and is_subset(tx, a, b)
    if isinstance(a, SliceVariable) and isinstance(b, SliceVariable):
        return all(tx.operators.same_or_equal(tx, p, q) for p, q in zip(a.parts, b.parts))
    one, other = family(a), family(b)
    return False if one is not None and other is not None and one is not other else None
