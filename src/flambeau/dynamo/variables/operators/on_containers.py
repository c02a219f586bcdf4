"""The operators of lists, tuples, dicts and deques: put together, repeated, and written to."""

from __future__ import annotations

import operator

from ...rules.reflect import name_of
from ..base import Variable
from ..containers.deques import DequeVariable, combined_deque
from ..containers.dicts import DictVariable
from ..containers.lists import ListVariable
from ..containers.sequences import SequenceVariable, TupleVariable, is_size
from ..containers.sets import SetVariable
from .on_sets import SET_OPERATIONS, set_operation

__all__ = ["container_binary", "sequence_binary"]


def container_binary(tx, fn, a: Variable, b: Variable) -> Variable | None:
    """The operators of lists, sets, dicts and deques that write, or make one of the same kind; None for what isn't theirs."""
    if isinstance(a, ListVariable) and fn in (operator.iadd, operator.imul) and a.cls is list:
        if fn is operator.iadd:
            a.call_method(tx, "extend", [b], {})
            return a
        new = _repeated(tx, a, b)
        a.changed(tx)
        a.elements[:] = new
        return a
    if fn in SET_OPERATIONS and (isinstance(a, SetVariable) or isinstance(b, SetVariable)):
        r = set_operation(tx, fn, a, b)
        if r is not None:
            return r
    if isinstance(a, DictVariable) and fn is operator.ior:
        a.call_method(tx, "update", [b], {})
        return a
    if fn is operator.or_ and isinstance(a, DictVariable) and isinstance(getattr(b, "shown", b), DictVariable):
        derived = type(b) is DictVariable and b.cls is not a.cls and issubclass(b.cls, a.cls)
        # What the right one is derived from leaves it to the right one.
        both = DictVariable(cls=b.cls, factory=b.factory) if derived else a.call_method(tx, "copy", [], {})
        for part in (a, b) if derived else (b,):
            both.call_method(tx, "update", [part], {})
        return both
    if fn is operator.or_ and isinstance(a, DictVariable) and (b.is_constant() or isinstance(b, SequenceVariable)):
        kinds = " and ".join(f"'{x.python_type_name()}'" for x in (a, b))
        tx.raise_user(TypeError(f"unsupported operand type(s) for |: {kinds}"))
    if fn in (operator.add, operator.mul, operator.iadd, operator.imul) and (
        isinstance(a, DequeVariable) or isinstance(b, DequeVariable)
    ):
        return combined_deque(tx, fn, a, b)
    return None


def sequence_binary(tx, fn, a: Variable, b: Variable) -> Variable | None:
    """Sequences put together, and repeated."""
    if isinstance(a, SequenceVariable) and isinstance(b, SequenceVariable) and fn is operator.add:
        if a.plain_class() is not b.plain_class():
            kind, other = name_of(a.plain_class()), name_of(b.python_type())
            sizes = f"can only concatenate tuple (not {other}) to torch.Size"
            lists = f'can only concatenate {kind} (not "{other}") to {kind}'
            tx.raise_user(TypeError(sizes if is_size(a.python_type()) else lists))
        both = a.items(tx) + b.items(tx)
        if is_size(a.python_type()) or is_size(b.python_type()):
            return TupleVariable(both, cls=type(a.python_type()(()) + b.python_type()(())))
        return (ListVariable if a.plain_class() is list else TupleVariable)(both)
    if fn is operator.mul and isinstance(b, SequenceVariable):
        a, b = b, a
    if fn is operator.mul and isinstance(a, SequenceVariable) and b.is_constant():
        cls = type(a.python_type()(()) * 1) if is_size(a.python_type()) else None
        return (ListVariable if a.plain_class() is list else TupleVariable)(_repeated(tx, a, b), cls=cls)
    return None


def _repeated(tx, a: SequenceVariable, times: Variable) -> list[Variable]:
    try:
        return list(a.items(tx)) * times.as_constant()
    except (TypeError, MemoryError) as e:
        tx.raise_user(e)
