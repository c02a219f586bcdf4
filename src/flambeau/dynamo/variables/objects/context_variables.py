"""``contextvars.ContextVar``: reading it is captured, guarded by what the context of the call holds. Writing it breaks the graph."""

from __future__ import annotations

import contextvars

from ...guards.source import CallSource
from ...tracing.wrapping import exactly, pin
from ..base import MethodOf, Variable
from .opaque_object import OpaqueVariable

__all__ = ["ContextVariable"]

UNSET = object()


def value_of(var: contextvars.ContextVar):
    """What the context holds, UNSET for nothing: a default of the variable's is no value of the context's."""
    return var.get(UNSET)


def default_of(var: contextvars.ContextVar):
    """The default that the variable was made with, UNSET for none. It never changes, and only an empty context tells it."""
    try:
        return contextvars.Context().run(var.get)
    except LookupError:
        return UNSET


def wrong_call(args, kwargs) -> str:
    if kwargs:
        return "ContextVar.get() takes no keyword arguments"
    return f"get expected at most 1 argument, got {len(args)}"


class ContextVariable(OpaqueVariable):
    def getattr(self, tx, name):
        return MethodOf(self, name) if name == "get" else super().getattr(tx, name)

    def call_method(self, tx, name, args, kwargs):
        if kwargs or len(args) > 1:
            tx.raise_user(TypeError(wrong_call(args, kwargs)))
        held, at = value_of(self.value), CallSource(self.source, value_of, "value_of")
        if held is not UNSET:
            return tx.wrap(held, at)
        pin(tx, at, "ID_MATCH", UNSET)
        if args:
            return args[0]
        default = default_of(self.value)
        self.pinned(tx)
        if default is UNSET:
            tx.raise_user(LookupError(self.value))
        return tx.wrap(default, CallSource(self.source, default_of, "default_of"))


@exactly(contextvars.ContextVar)
def _(tx, value, source) -> Variable:
    pin(tx, source, "TYPE_MATCH", contextvars.ContextVar)
    return ContextVariable(value, source)
