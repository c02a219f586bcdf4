"""Callable objects of the standard library that lead to others: weak references, functions with a cache."""

from __future__ import annotations

import weakref

from .. import world
from ..exc import unsupported
from ..source import CallSource
from .base import Variable

__all__ = ["CachedFunctionVariable", "WeakReferenceVariable"]


def followed(ref):
    """What a weak reference leads to."""
    return ref()


class WeakReferenceVariable(Variable):
    """A weak reference that existed before: whether its object lives, and which it is, is guarded when it is followed."""

    def __init__(self, value, source):
        super().__init__(source)
        self.value = value

    def python_type(self):
        return weakref.ref

    def truth(self, tx):
        return True

    def call(self, tx, args, kwargs):
        return tx.wrap(self.value(), CallSource(self.source, followed, "weakref"))


class CachedFunctionVariable(Variable):
    """A function under ``functools.lru_cache``: traced when it can't be told from one that isn't."""

    def __init__(self, value, source):
        super().__init__(source)
        self.value = value

    def python_type(self):
        return type(self.value)

    def truth(self, tx):
        return True

    def getattr(self, tx, name):
        return world.library_attr(tx, self, self.value, self.source, name)

    def call(self, tx, args, kwargs):
        name = getattr(self.value, "__qualname__", "function")
        mark = tx.side_effects.mark()
        if not all(a.is_constant() for a in [*args, *kwargs.values()]):
            unsupported("cached-function", f"call of {name}, which has a cache, with values that aren't constants")
        out = tx.wrap_function(self.value.__wrapped__).call(tx, args, kwargs).unwrap()
        if not out.is_constant() or tx.side_effects.since(mark):
            unsupported(
                "cached-function",
                f"call of {name}, which has a cache",
                "Whether it runs, or which object it returns, depends on earlier calls.",
            )
        return out
