"""``a == b`` of containers and their elements, and ``in``: by identity first, then by the elements' own equality."""

from __future__ import annotations

import collections
import functools
import operator
import types

from ...exc import UserRaises, unsupported
from ...guards.source import ItemSource
from ..base import WHICH_NAN, Variable, has_nan
from ..containers.dicts import DictVariable
from ..containers.lists import ListVariable
from ..containers.sequences import SequenceVariable, TupleVariable
from ..iterators.protocol import each
from ..objects.class_object import ClassVariable
from ..objects.instance import ObjectVariable
from ..tensors.tensor import TensorVariable
from ..values.constant import ConstantVariable
from ..values.symbolic import SymbolicVariable, wrap_number
from .folding import fold
from .ordering import equal_containers
from .same_object import identical

__all__ = ["equal", "found_among", "same_or_equal", "searched", "settle_nans"]


def same_or_equal(tx, a: Variable, b: Variable) -> bool:
    """``a is b or a == b``, as containers compare."""
    a, b = tx.realize(a), tx.realize(b)
    if a is b:
        return True
    if any(v.is_symbol and v.python_type() is float for v in (a, b)):  # NaNs are not among what the symbol stands for
        if not all(v.is_constant() or tx.truth(tx.operators.binary(tx, operator.eq, v, v)) for v in (a, b)):
            unsupported("identity", f"{a!r} compared with {b!r}", WHICH_NAN)
    if isinstance(a, SymbolicVariable) or isinstance(b, SymbolicVariable):
        return bool(tx.truth(tx.operators.binary(tx, operator.eq, a, b)))
    if a.can_constant() and b.can_constant():
        settle_nans(tx, a, b)
        if a.is_constant() and b.is_constant() and a.as_constant() is b.as_constant():
            return True
        return bool(fold(tx, operator.eq, [a, b]).as_constant())
    if isinstance(a, (ObjectVariable, ClassVariable)) or isinstance(b, (ObjectVariable, ClassVariable)):
        if identical(tx, a, b):
            return True
        if not isinstance(a, ObjectVariable) and not isinstance(b, ObjectVariable):
            return False
    return tx.truth(tx.operators.binary(tx, operator.eq, a, b))


def settle_nans(tx, a: Variable, b: Variable) -> None:
    """Containers compare their elements by identity first, which shows with NaNs: this variant is for the very objects of this call."""
    if has_nan(a.as_constant()) and has_nan(b.as_constant()) and not (is_pinned(tx, a) and is_pinned(tx, b)):
        unsupported("identity", f"{a!r} compared with {b!r}", WHICH_NAN)


def is_pinned(tx, v: Variable, source=None) -> bool:
    """Guards that the NaNs in a value that is known are the objects that they are; False where that can't be said. ``source``: its place in a
    container that was guarded as a whole."""
    v = tx.realize(v)
    if v.is_constant():
        value = v.as_constant()
        if has_nan(value) and isinstance(value, (float, complex)):
            tx.output.guard(source or v.source, "ID_MATCH", value)
            return True
        return not has_nan(value)
    if isinstance(v, DictVariable):
        return all(is_pinned(tx, x) for pair in v.pairs(tx) for x in pair)
    whole = source or v.source if isinstance(v, TupleVariable) else None
    return isinstance(v, (ListVariable, TupleVariable)) and all(
        is_pinned(tx, e, whole and ItemSource(whole, i)) for i, e in enumerate(v.items(tx))
    )


def equal(tx, a: Variable, b: Variable) -> bool:
    if a is b:
        return True
    same = equal_containers(tx, a, b)
    if same is not None:
        return same
    if isinstance(a, SequenceVariable) and isinstance(b, SequenceVariable):
        if a.plain_class() is not b.plain_class():
            return False
        x, y = a.items(tx), b.items(tx)
        return len(x) == len(y) and all(same_or_equal(tx, p, q) for p, q in zip(x, y))
    if a.is_constant() != b.is_constant() and (a.distinct_from(b) or b.distinct_from(a)):
        return False
    x, y = getattr(a, "value", None), getattr(b, "value", None)
    if x is not None and y is not None and (isinstance(x, (type, types.FunctionType)) or callable(x)):
        return x is y
    if isinstance(a, DictVariable) and isinstance(b, DictVariable):
        p, q = a.pairs(tx), b.pairs(tx)
        if a.cls is b.cls is collections.OrderedDict and list(a.entries) != list(b.entries):
            return False
        return len(p) == len(q) and all(
            b.contains(tx, k).value and same_or_equal(tx, v, b.getitem(tx, k)) for k, v in p
        )
    unsupported("operator", f"eq of {a!r} and {b!r}", "Whether they are equal is not known while tracing.")


def searched(tx, v: Variable):
    """The elements of what is searched, one by one. ``in`` has words of its own for what can't be."""
    try:
        return each(tx, v)
    except UserRaises as e:
        if not isinstance(e.exception, TypeError):
            raise
        tx.raise_user(TypeError(f"argument of type {v.python_type_name()!r} is not iterable"))


def found_among(tx, v: Variable, key: Variable) -> Variable:
    """``key in v`` for what has no method of its own for it: its elements are gone through."""
    undecided = []
    for e in searched(tx, v):
        depends = depending_equality(tx, e, key)
        if depends is not None:
            undecided.append(depends)
        elif same_or_equal(tx, e, key):
            return ConstantVariable(True)
    return wrap_number(functools.reduce(operator.or_, undecided)) if undecided else ConstantVariable(False)


def depending_equality(tx, a: Variable, b: Variable):
    """Whether ``a == b`` as a truth value that depends on the data of a tensor of one element; None where it doesn't, or the graph breaks for it."""
    a, b = tx.realize(a), tx.realize(b)
    if a is b or not any(type(v) is TensorVariable for v in (a, b)) or not tx.output.shapes.data_symbols("item"):
        return None
    same = tx.operators.binary(tx, operator.eq, a, b)
    if type(same) is not TensorVariable or same.val.numel() != 1:
        return None
    return same.call_method(tx, "item", [], {}).number
