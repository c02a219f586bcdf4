"""Functions of the program that existed before the call, and bound methods: calls of them are inlined."""

from __future__ import annotations

import contextlib
import functools
import sys
import types

from flambeau.base import pytree

from ...exc import unsupported
from ...guards.source import CallSource, ConstSource, GetAttrSource, ItemSource, KeySource
from ...rules import trace_rules
from ...rules.reflect import ABSENT, qualname_of, type_item
from ...tracing import world
from ...tracing.wrapping import FUNCTION_WRAPPERS, WRAPPERS, exactly, pin
from ..base import Lazy, MethodOf, Variable
from ..contexts.managers import GeneratorContextVariable
from .cells import CellVariable

__all__ = ["FunctionVariable", "UserFunctionVariable", "UserMethodVariable", "callee"]

DISPATCH = functools.singledispatch(lambda a: a).dispatch.__code__
CONTEXT_HELPER = contextlib.contextmanager(lambda: None).__code__


class FunctionVariable(Variable):
    """What inlining needs: code, globals, defaults, closure."""

    def python_type(self):
        return types.FunctionType

    def distinct_from(self, other):
        return other.is_constant()

    def call(self, tx, args, kwargs):
        return tx.inline(self, args, kwargs)

    def call_method(self, tx, name, args, kwargs):
        if name == "__get__" and args and not kwargs:
            owner = args[0].unwrap()
            return self if owner.is_constant() and owner.as_constant() is None else UserMethodVariable(self, owner)
        return super().call_method(tx, name, args, kwargs)


class UserFunctionVariable(FunctionVariable):
    def __init__(self, fn: types.FunctionType, source=None):
        super().__init__(source)
        self.fn = self.value = fn

    def names(self) -> tuple[str, str]:
        return self.fn.__name__, self.fn.__qualname__

    def __repr__(self):
        return f"function {self.fn.__qualname__}"

    def call(self, tx, args, kwargs):
        if getattr(self.fn, "_dynamo_marked_constant", False):
            given = [a.real_value(tx) for a in args], {k: v.real_value(tx) for k, v in kwargs.items()}
            examples = {id(t) for t in tx.output.recorder.examples.values()}
            result = self.fn(*given[0], **given[1])
            # An input is a constant as well when the function returns it.
            return tx.wrap_known(pytree.tree_map(lambda x: x.detach() if id(x) in examples else x, result))
        if self.fn.__code__ is CONTEXT_HELPER and isinstance(getattr(self.fn, "__wrapped__", None), types.FunctionType):
            inner = self.getattr(tx, "__wrapped__")
            made = inner.call(tx, args, kwargs)
            if not hasattr(made, "throw"):
                unsupported("context-manager", f"contextlib.contextmanager of what returns {made!r}")
            return GeneratorContextVariable(made, self, args, kwargs)
        if self.fn.__code__ is DISPATCH and len(args) == 1 and args[0].can_constant():
            return self.dispatched(tx, args[0].as_constant())
        if trace_rules.REGION in self.fn.__dict__:
            if self.fn.__dict__[trace_rules.REGION] == "maker":
                return tx.regions.NestedRegionVariable(self.fn, args[0]) if args else self
            return tx.regions.call_region(tx, super().call, args, kwargs)
        return super().call(tx, args, kwargs)

    def dispatched(self, tx, cls: type) -> Variable:
        """What functools.singledispatch has for a class: looked up for real, and again by the guard."""
        if self.source is not None and type(self.source) is not ConstSource:
            tx.output.guard(self.source, "ID_MATCH", self.fn)
        return tx.wrap(self.fn(cls), CallSource(ConstSource(cls, qualname_of(cls)), self.fn, "dispatch"))

    code = property(lambda self: self.fn.__code__)
    globals = property(lambda self: self.fn.__globals__)
    name = property(lambda self: self.fn.__qualname__)

    def as_proxy(self):
        return self.fn

    def reconstruct(self, cg):
        cg.load_const(self.fn)

    def place(self):
        return self.source if self.source is not None else ConstSource(self.fn, self.fn.__qualname__)

    def defaults(self, tx) -> list[Variable]:
        d = self.fn.__defaults__
        base = GetAttrSource(self.place(), "__defaults__")
        if d is None:
            tx.output.guard(base, "ID_MATCH", None)
            return []
        tx.output.guard(base, "LENGTH", len(d))
        return [Lazy(v, ItemSource(base, i)) for i, v in enumerate(d)]

    def kwdefaults(self, tx) -> dict[str, Variable]:
        d = self.fn.__kwdefaults__
        base = GetAttrSource(self.place(), "__kwdefaults__")
        if d is None:
            tx.output.guard(base, "ID_MATCH", None)
            return {}
        known = tx.output.objects.by_id.get(id(d))
        if known is not None:  # it may have been written to
            return {k.as_constant(): v for k, v in known.unwrap().pairs(tx)}
        tx.output.guard(base, "DICT_KEYS", tuple(d))
        return {k: Lazy(v, KeySource(base, k)) for k, v in d.items()}

    def closure(self, tx) -> list[CellVariable]:
        out = []
        for i, cell in enumerate(self.fn.__closure__ or ()):
            source = (
                None if type(self.place()) is ConstSource else ItemSource(GetAttrSource(self.source, "__closure__"), i)
            )
            out.append(tx.output.objects.cell(cell, source))
        return out

    def getattr(self, tx, name):
        if name == "__get__":
            return MethodOf(self, name)
        return world.attribute(tx, self, self.fn, types.FunctionType, self.place(), name)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))


class UserMethodVariable(Variable):
    def __init__(self, fn: Variable, owner: Variable, source=None):
        super().__init__(source)
        self.fn, self.owner = fn, owner

    def __repr__(self):
        return f"{self.fn!r}, bound to {self.owner!r}"

    def python_type(self):
        return types.MethodType

    def call(self, tx, args, kwargs):
        return self.fn.call(tx, [self.owner, *args], kwargs)

    def getattr(self, tx, name):
        if name == "__func__":
            return self.fn
        if name == "__self__":
            return self.owner
        if name == "__class__":
            return tx.wrap_known(types.MethodType)
        if name == "__get__" and sys.version_info >= (3, 13):
            unsupported("getattr", "__get__ of a bound method", "It is the method itself since CPython 3.13.")
        if name == "__call__":
            return MethodOf(self, name)
        if name not in ("__doc__", "__get__") and type_item(types.MethodType, name) is not ABSENT:
            unsupported("getattr", f"{name} of {self!r}", "It is the method's, not its function's.")
        return self.fn.getattr(tx, name)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def call_method(self, tx, name, args, kwargs):
        return self.call(tx, args, kwargs) if name == "__call__" else super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg):
        cg.call_function(types.MethodType, lambda: cg.all([self.fn, self.owner]), 2)


def callee(fn: Variable) -> set:
    """The objects that a call of the variable may be named by: the function, and for a method the bound one too."""
    if not isinstance(fn, UserMethodVariable):
        value = getattr(fn, "value", None)
        return {value} if callable(value) else set()
    function, owner = getattr(fn.fn, "value", None), getattr(fn.owner, "value", None)
    return {function, types.MethodType(function, owner)} if callable(function) and owner is not None else {function}


@WRAPPERS.row("substituted")
def _(tx, value, source):
    traced = trace_rules.substitutes.get(value) if trace_rules.substitutes else None
    if traced is None:
        return None
    pin(tx, source, "ID_MATCH", value)
    return UserFunctionVariable(traced, ConstSource(traced, traced.__qualname__))


@WRAPPERS.row("compiled function")
def _(tx, value, source):
    if not trace_rules.is_compiled(value):
        return None
    pin(tx, source, "ID_MATCH", value)
    fn = trace_rules.unwrap_compiled(value)
    return UserFunctionVariable(fn, ConstSource(fn, fn.__qualname__))


@FUNCTION_WRAPPERS.row("traced")
def _(tx, value, source):
    tx.output.guard(source, "CODE_MATCH", (value.__code__, value.__globals__))
    return UserFunctionVariable(value, source)


exactly(types.FunctionType)(FUNCTION_WRAPPERS)
