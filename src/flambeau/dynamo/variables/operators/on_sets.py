"""The operators of sets, and of keys and items of dicts."""

from __future__ import annotations

import operator

from ....base.records import slotted
from ...exc import unsupported
from ..base import Variable
from ..containers.dicts import DictVariable, DictView
from ..containers.sequences import SequenceVariable
from ..containers.set_history import Elements, SetHistory
from ..containers.sets import SetVariable, elements_of, taken_over

__all__ = ["SET_OPERATIONS", "is_set_view", "operation_on_view", "set_operation"]


@slotted
class SetOperation:
    """An operator of sets."""

    sign: str
    """As errors of the interpreter write it."""
    makes: str
    """The method that makes a set of both."""
    changes: str | None = None
    """The method that changes the left one."""


SET_OPERATIONS = {
    operator.or_: SetOperation("|", "union"),
    operator.and_: SetOperation("&", "intersection"),
    operator.sub: SetOperation("-", "difference"),
    operator.xor: SetOperation("^", "symmetric_difference"),
    operator.ior: SetOperation("|=", "union", "update"),
    operator.iand: SetOperation("&=", "intersection", "intersection_update"),
    operator.isub: SetOperation("-=", "difference", "difference_update"),
    operator.ixor: SetOperation("^=", "symmetric_difference", "symmetric_difference_update"),
}


def is_set_view(v: Variable) -> bool:
    return isinstance(v, DictView) and v.is_set


def gone_through(tx, view: DictView) -> Elements:
    """What a new set takes from it: keys are put in as a dict has them, items one by one."""
    return Elements(dict if view.what == "keys" else list, view.items(tx))


def operation_on_view(tx, fn, a, b) -> SetVariable:
    """An operator with a dict's keys or items on one side: a new set, whether it is written with "=" or not."""
    make = SET_OPERATIONS[fn].makes
    if make == "symmetric_difference" and any(isinstance(x, DictView) and x.what == "items" for x in (a, b)):
        unsupported("set-operation", f"^ of {a!r} and {b!r}", "The order of what it gives is not known while tracing.")
    if make != "intersection":
        change = next(o.changes for o in SET_OPERATIONS.values() if o.makes == make and o.changes is not None)
        whole = taken_over(tx, a) or gone_through(tx, a)
        out = SetVariable(elements_of(tx, a), history=SetHistory(whole))
        out.call_method(tx, change, [b], {})
        return out
    view, other = (a, b) if is_set_view(a) else (b, a)
    # CPython goes through the smaller one; of two dicts that are equally large through the right one.
    if isinstance(other, SetVariable) and other.cls is set and view.length(tx) <= other.length(tx):
        return other.call_method(tx, make, [view], {})
    if is_set_view(other) and other.length(tx) > view.length(tx):
        view, other = other, view
    taken = list(elements_of(tx, other))
    whole = taken_over(tx, other)
    # A set's method goes through what is no set in the same way.
    history = SetHistory(gone_through(tx, view))
    history = history.result(make, [Elements(list, whole if isinstance(whole, SetHistory) else taken)])
    return SetVariable([e for e in taken if view.contains(tx, e).as_constant()], history=history)


def set_operation(tx, fn, a, b) -> Variable | None:
    """An operator on sets, which wants a set on both sides; None for what isn't that."""
    views = [is_set_view(x) for x in (a, b)]
    if not all(isinstance(x, SetVariable) or view for x, view in zip((a, b), views)):
        known = all(x.is_constant() or isinstance(x, (SequenceVariable, DictVariable, SetVariable)) for x in (a, b))
        if known:
            kinds = " and ".join(f"'{x.python_type_name()}'" for x in (a, b))
            tx.raise_user(TypeError(f"unsupported operand type(s) for {SET_OPERATIONS[fn].sign}: {kinds}"))
        return None
    if any(views):
        return operation_on_view(tx, fn, a, b)
    operation = SET_OPERATIONS[fn]
    if operation.changes is not None and a.cls is set:
        a.call_method(tx, operation.changes, [b], {})
        return a
    return a.call_method(tx, operation.makes, [b], {})
