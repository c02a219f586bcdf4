"""Functions with a cache."""

from __future__ import annotations

import functools
import types

from ...exc import unsupported
from ...tracing import world
from ...tracing.wrapping import WRAPPERS, pin
from ..base import HeldVariable

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


@WRAPPERS.row("cached function")
def _(tx, value, source):
    if type(value) is not functools._lru_cache_wrapper or type(value.__wrapped__) is not types.FunctionType:
        return None
    pin(tx, source, "ID_MATCH", value)
    return CachedFunctionVariable(value, source)
