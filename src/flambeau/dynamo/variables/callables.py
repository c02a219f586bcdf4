"""Functions with a cache."""

from __future__ import annotations

from .. import world
from ..exc import unsupported
from .base import HeldVariable

__all__ = ["CachedFunctionVariable"]


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
