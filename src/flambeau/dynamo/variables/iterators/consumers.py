"""Builtins and functions in C that consume iterables: each takes one element at a time (:mod:`.protocol`) and stops where the original stops."""

from __future__ import annotations

import collections
import functools
import heapq
import math
import operator
from collections.abc import Iterator

from ...bytecode.versions import PY312
from ...exc import UserRaises, unsupported
from ..base import Variable, never_called
from ..containers.dicts import DictVariable, each_pair
from ..containers.lists import ListVariable
from ..containers.sequences import TupleVariable
from ..containers.set_history import SetHistory
from ..containers.sets import SetVariable, elements_of, taken_over
from ..functions import polyfills
from ..functions.handlers import HANDLERS, handles
from ..functions.python_functions import UserFunctionVariable
from ..objects.builtin_subclass import MAPPINGS
from ..operators import binary, fold, same_or_equal, searched
from ..tensors.tensor import TensorVariable
from ..values.constant import ConstantVariable, is_none
from ..values.symbolic import settled
from .protocol import all_of, each, pulled

__all__ = ["sort"]

ADDABLE = (int, float, complex, bool)


def in_any_order(tx, v: Variable) -> Iterator[Variable]:
    """The elements, for what comes to the same whatever the order of a set of plain constants."""
    plain = isinstance(v, SetVariable) and all(e.is_constant() for e in v.entries.values())
    return iter(v.items(tx)) if plain else each(tx, v)


@handles(any)
def _(tx, args, kwargs):
    return ConstantVariable(any(tx.truth(v) for v in in_any_order(tx, args[0])))


@handles(all)
def _(tx, args, kwargs):
    return ConstantVariable(all(tx.truth(v) for v in in_any_order(tx, args[0])))


@handles(sum)
def _(tx, args, kwargs):
    elements = each(tx, args[0])
    total = args[1] if len(args) > 1 else kwargs.get("start", ConstantVariable(0))
    for cls, say in (
        (str, "strings [use ''.join(seq)"),
        (bytes, "bytes [use b''.join(seq)"),
        (bytearray, "bytearray [use b''.join(seq)"),
    ):
        if issubclass(total.python_type(), cls):
            tx.raise_user(TypeError(f"sum() can't sum {say} instead]"))
    numbers = [total]  # which come first are added as the interpreter adds numbers, whose errors it keeps apart
    for v in elements:
        if (
            numbers
            and v.is_constant()
            and type(v.as_constant()) in ADDABLE
            and type(total.unwrap()) is ConstantVariable
        ):
            numbers.append(v)
            continue
        total, numbers = binary(tx, operator.add, added(tx, numbers, total), v), []
    return added(tx, numbers, total)


def added(tx, numbers: list[Variable], total: Variable) -> Variable:
    """The sum of a beginning, with which it starts, and numbers that are known."""
    if len(numbers) < 2:
        return total
    return fold(tx, sum, [TupleVariable(numbers[1:]), numbers[0]])


def _extreme(fn, compare):
    def handler(tx, args, kwargs):
        key = kwargs.get("key")
        if not args:
            tx.raise_user(TypeError(f"{fn.__name__} expected at least 1 argument, got 0"))
        if len(args) > 1 and "default" in kwargs:
            text = f"Cannot specify a default for {fn.__name__}() with multiple positional arguments"
            tx.raise_user(TypeError(text))
        best = best_key = None
        for v in (
            in_any_order(tx, args[0])
            if len(args) == 1 and is_none(key)
            else each(tx, args[0])
            if len(args) == 1
            else args
        ):
            k = v if is_none(key) else key.call(tx, [v], {})
            if best is None or tx.truth(binary(tx, compare, k, best_key)):
                best, best_key = v, k
        if best is None and "default" in kwargs:
            return kwargs["default"]
        if best is None:
            what = "iterable argument is empty" if PY312 else "arg is an empty sequence"
            tx.raise_user(ValueError(f"{fn.__name__}() {what}"))
        return best

    HANDLERS[fn] = handler


_extreme(min, operator.lt)
_extreme(max, operator.gt)


@handles(functools.reduce)
def _(tx, args, kwargs):
    try:
        elements = pulled(tx, args[1].iter(tx))
    except UserRaises as e:
        if not isinstance(e.exception, TypeError):
            raise
        tx.raise_user(TypeError("reduce() arg 2 must support iteration"))
    total = args[2] if len(args) > 2 else kwargs.get("initial") or next(elements, None)
    if total is None:
        tx.raise_user(TypeError("reduce() of empty iterable with no initial value"))
    for v in elements:
        total = args[0].call(tx, [total, v], {})
    return total


@handles(math.prod)
def _(tx, args, kwargs):
    total = kwargs.get("start", ConstantVariable(1))
    for v in each(tx, args[0]):
        total = binary(tx, operator.mul, total, v)
    return total


@handles(math.fsum)
def _(tx, args, kwargs):
    numbers = []
    for v in each(tx, args[0]):
        if isinstance(v, TensorVariable) or not v.can_constant():
            return None
        numbers.append(v)
        fold(tx, float, [v]) if type(v.as_constant()) in ADDABLE else fold(tx, math.fsum, [TupleVariable([v])])
    return fold(tx, math.fsum, [TupleVariable(numbers)])


@handles(operator.countOf)
def _(tx, args, kwargs):
    return ConstantVariable(sum(same_or_equal(tx, v, args[1]) for v in searched(tx, args[0])))


@handles(operator.indexOf)
def _(tx, args, kwargs):
    for i, v in enumerate(searched(tx, args[0])):
        if same_or_equal(tx, v, args[1]):
            return ConstantVariable(i)
    tx.raise_user(ValueError("sequence.index(x): x not in sequence"))


# -- containers --
@handles(list)
def _(tx, args, kwargs):
    return ListVariable(all_of(tx, args[0]) if args else [])


@handles(tuple)
def _(tx, args, kwargs):
    if args and type(args[0]) is TupleVariable and args[0].python_type() is tuple:
        return args[0]
    return TupleVariable(all_of(tx, args[0]) if args else [])


def _set(cls):
    def handler(tx, args, kwargs):
        if cls is frozenset and args and isinstance(args[0], SetVariable) and args[0].python_type() is frozenset:
            return args[0]
        whole = taken_over(tx, args[0]) if args else None
        elements = list(elements_of(tx, args[0])) if args else []
        return SetVariable(elements, cls=cls, history=whole and SetHistory(whole, cls))

    HANDLERS[cls] = handler


_set(set)
_set(frozenset)


def _dict(cls):
    def handler(tx, args, kwargs):
        if len(args) > 1:
            return None
        d = DictVariable(cls=cls)
        for k, v in each_pair(tx, args[0], cls is collections.OrderedDict) if args else ():
            d.setitem(tx, k, v)
        for k, v in kwargs.items():
            d.setitem(tx, ConstantVariable(k), v)
        return d

    return handler


HANDLERS[dict], HANDLERS[collections.OrderedDict] = _dict(dict), _dict(collections.OrderedDict)


@handles(collections.defaultdict)
def _(tx, args, kwargs):
    if args and never_called(args[0]) and not is_none(args[0]):
        tx.raise_user(TypeError("first argument must be callable or None"))
    d = _dict(collections.defaultdict)(tx, args[1:], kwargs)
    if args and not args[0].is_constant():
        d.factory = args[0]
    return d


def _from_keys(cls):
    def handler(tx, args, kwargs):
        given = dict(zip(("iterable", "value"), args)) | kwargs
        d = HANDLERS[cls](tx, [], {})
        value = given.get("value", ConstantVariable(None))
        for k in each(tx, given["iterable"]):
            d.setitem(tx, k, value)
        return d

    return handler


HANDLERS.update({cls.fromkeys: _from_keys(cls) for cls in MAPPINGS})


@handles(collections._count_elements)
def _(tx, args, kwargs):
    return tx.inline(UserFunctionVariable(polyfills.count_elements), args, kwargs)


# -- sorting --
def sort(tx, items: list[Variable], kwargs) -> None:
    """Put ``items`` in order. Where a comparison raises they are as far as the interpreter's sort had got."""
    key = kwargs.get("key")
    reverse = kwargs["reverse"].as_constant() if "reverse" in kwargs else False
    if is_none(key):
        key = None
    keys = [v if key is None else key.call(tx, [v], {}) for v in items]
    keys = [settled(tx, k) for k in keys]  # the order depends on numbers that vary, too
    if all(k.can_constant() for k in keys):
        known = [k.as_constant() for k in keys]
    elif any(isinstance(k, TensorVariable) for k in keys):
        unsupported("sort", "sorting by values of the graph", "The order depends on tensor data.")
    else:
        known = [Compared(tx, k) for k in keys]
    order, taken = list(range(len(items))), items[:]
    try:
        order.sort(key=known.__getitem__, reverse=reverse)
    except TypeError as e:
        tx.raise_user(e)
    finally:
        items[:] = [taken[i] for i in order]


class Compared:
    """A key that the interpreter's own sort compares by what ``<`` is traced to."""

    def __init__(self, tx, v: Variable):
        self.tx, self.v = tx, v

    def __lt__(self, other) -> bool:
        return self.tx.truth(binary(self.tx, operator.lt, self.v, other.v))


@handles(sorted)
def _(tx, args, kwargs):
    plain = is_none(kwargs.get("key"))
    known = plain and isinstance(args[0], SetVariable)
    items = [*(in_any_order(tx, args[0]) if known else all_of(tx, args[0]))]
    sort(tx, items, kwargs)
    return ListVariable(items)


def _best(fn, largest: bool):
    def handler(tx, args, kwargs):
        n, items = args[0].as_constant(), [*all_of(tx, args[1])]
        key = args[2] if len(args) > 2 else kwargs.get("key", ConstantVariable(None))
        sort(tx, items, {"key": key, "reverse": ConstantVariable(largest)})
        return ListVariable(items[: max(n, 0)])

    HANDLERS[fn] = handler


_best(heapq.nlargest, True)
_best(heapq.nsmallest, False)
