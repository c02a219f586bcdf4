"""Callable objects of the standard library that lead to others: weak references, functions with a cache."""

from __future__ import annotations

import weakref

from .. import world
from ..exc import unsupported
from ..source import CallSource
from .base import HeldVariable, Lazy, Variable
from .objects import ObjectVariable

__all__ = ["CachedFunctionVariable", "WeakReferenceVariable"]


def followed(ref):
    """What a weak reference leads to."""
    return ref()


class WeakReferenceVariable(HeldVariable):
    """A weak reference that existed before: whether its object lives, and which it is, is guarded when it is followed."""

    def truth(self, tx):
        return True

    def call(self, tx, args, kwargs):
        if tx.side_effects.any():
            unsupported(
                "weak-reference",
                "a weak reference that is followed after a write",
                "What was written over may have been the last to hold the object.",
            )
        return tx.wrap(self.value(), CallSource(self.source, followed, "weakref"))


def is_weakly_known(v: Variable) -> bool:
    """Whether something may notice that an object which existed before is gone."""
    v = v.unwrap()
    value = v.value if type(v) in (ObjectVariable, Lazy) else None
    return value is not None and weakref.getweakrefcount(value) > 0


class CachedFunctionVariable(HeldVariable):
    """A function under ``functools.lru_cache``: traced when it can't be told from one that isn't."""

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
