"""Builtins that make iterators, and ``next``."""

from __future__ import annotations

import operator

from ...exc import UserRaises, unsupported
from ...rules.reflect import ABSENT, type_item
from ..base import MethodOf, Variable, contents_of
from ..containers.sequences import TupleVariable
from ..functions.handlers import handles
from ..modules.module import ModuleVariable
from ..objects.builtin_subclass import DerivedVariable
from ..objects.instance import ObjectVariable
from ..operators import same_or_equal
from ..values.constant import ConstantVariable
from .container_iterators import BackwardsVariable
from .protocol import IteratorVariable, held, pulled
from .reversing import backwards

__all__ = ["EnumerateVariable", "ZipVariable"]


class EnumerateVariable(IteratorVariable):
    def __init__(self, it: Variable, at: int):
        super().__init__(enumerate)
        self.it, self.at = it, at

    def advance(self, tx):
        v = self.it.next(tx)
        if v is None:
            return None
        self.at += 1
        return TupleVariable([ConstantVariable(self.at - 1), v])

    def parts(self):
        return enumerate, [held(self.it), ConstantVariable(self.at)]


@handles(enumerate)
def _(tx, args, kwargs):
    iterable = args[0] if args else kwargs["iterable"]
    start = args[1] if len(args) > 1 else kwargs.get("start", ConstantVariable(0))
    try:
        at = operator.index(start.as_constant())
    except TypeError as e:
        tx.raise_user(e.with_traceback(None))
    return EnumerateVariable(iterable.iter(tx), at)


class ZipVariable(IteratorVariable):
    def __init__(self, its: list[Variable], strict: bool):
        super().__init__(zip)
        self.its, self.strict = its, strict

    def advance(self, tx):
        row: list[Variable] = []
        for k, it in enumerate(self.its):
            v = it.next(tx)
            if v is None:
                if self.strict:
                    self.check_lengths(tx, k)
                return None
            row.append(v)
        return TupleVariable(row) if row else None

    def check_lengths(self, tx, k: int) -> None:
        """The ``k``-th is exhausted, those before it weren't."""
        longer = next((i for i, it in enumerate(self.its) if i and it.next(tx) is not None), None) if k == 0 else None
        if k or longer:
            at, than = (k, "shorter") if k else (longer, "longer")
            others = f" {at}" if at == 1 else f"s 1-{at}"
            tx.raise_user(ValueError(f"zip() argument {at + 1} is {than} than argument{others}"))

    def parts(self):
        return strict_zip if self.strict else zip, [*map(held, self.its)]


def strict_zip(*iterables):
    return zip(*iterables, strict=True)


@handles(zip)
def _(tx, args, kwargs):
    strict = "strict" in kwargs and tx.truth(kwargs["strict"])
    return ZipVariable([a.iter(tx) for a in args], strict)


class MapVariable(IteratorVariable):
    def __init__(self, fn: Variable, its: list[Variable]):
        super().__init__(map)
        self.fn, self.its = fn, its

    def advance(self, tx):
        row = []
        for it in self.its:
            v = it.next(tx)
            if v is None:
                return None
            row.append(v)
        return self.fn.call(tx, row, {})

    def parts(self):
        return map, [self.fn, *map(held, self.its)]


@handles(map)
def _(tx, args, kwargs):
    if len(args) < 2:
        tx.raise_user(TypeError("map() must have at least two arguments."))
    return MapVariable(args[0], [a.iter(tx) for a in args[1:]])


class FilterVariable(IteratorVariable):
    def __init__(self, fn: Variable, it: Variable):
        super().__init__(filter)
        self.fn, self.it = fn, it
        self.plain = fn.is_constant() and fn.as_constant() is None

    def advance(self, tx):
        for v in pulled(tx, self.it):
            if tx.truth(v if self.plain else self.fn.call(tx, [v], {})):
                return v
        return None

    def parts(self):
        return filter, [self.fn, held(self.it)]


@handles(filter)
def _(tx, args, kwargs):
    return FilterVariable(args[0], args[1].iter(tx))


class CallIteratorVariable(IteratorVariable):
    """``iter(fn, sentinel)``."""

    def __init__(self, fn: Variable, sentinel: Variable):
        super().__init__(type(iter(int, 1)))
        self.fn: Variable | None = fn
        self.sentinel = sentinel

    def advance(self, tx):
        if self.fn is None:
            return None
        try:
            v = self.fn.call(tx, [], {})
        except UserRaises as e:
            if not isinstance(e.exception, StopIteration):
                raise
            v = None
        if self.fn is None or v is None or same_or_equal(tx, self.sentinel, v):
            self.fn = None
            return None
        return v

    def parts(self):
        return (calls_ended, []) if self.fn is None else (iter, [self.fn, self.sentinel])


def calls_ended():
    it = iter(int, 0)
    next(it, None)
    return it


@handles(iter)
def _(tx, args, kwargs):
    if len(args) == 1:
        return args[0].iter(tx)
    if not isinstance(args[0], MethodOf) and type_item(args[0].python_type(), "__call__") is ABSENT:
        try:
            iter(None, None)  # which says so in the words of this version
        except TypeError as e:
            tx.raise_user(e)
    return CallIteratorVariable(*args)


@handles(next)
def _(tx, args, kwargs):
    it, *default = args
    try:
        v = it.pull(tx)
    except UserRaises as e:
        if default and isinstance(e.exception, StopIteration):
            return default[0]
        raise
    if v is not None:
        return v
    return default[0] if default else it.stop(tx)


@handles(reversed)
def _(tx, args, kwargs):
    v = args[0]
    if isinstance(v, DerivedVariable):
        own = v.special(tx, "__reversed__")
        if own is not None:
            return own.call(tx, [], {})
        if not (v.inherits(tx, "__len__") and v.inherits(tx, "__getitem__")):
            unsupported("reversed", f"reversed of {v!r}", "It is read by its own __len__ and __getitem__.")
        return backwards(tx, contents_of(v))
    if isinstance(v, ObjectVariable) and not isinstance(v, ModuleVariable):
        return _reversed_object(tx, v)
    return backwards(tx, v)


def _reversed_object(tx, v: ObjectVariable) -> Variable:
    own = v.special(tx, "__reversed__")
    if own is not None:
        return own.call(tx, [], {})
    refused = v.class_attr(tx, "__reversed__") is None
    if refused or v.special(tx, "__getitem__") is None:
        tx.raise_user(TypeError(f"{v.python_type_name()!r} object is not reversible"))
    if v.special(tx, "__len__") is None:
        tx.raise_user(TypeError(f"object of type {v.python_type_name()!r} has no len()"))
    return BackwardsVariable(v, v.length(tx), lambda tx, at: v.getitem(tx, ConstantVariable(at)), reversed)
