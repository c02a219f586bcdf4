"""Functions with a cache."""

from __future__ import annotations

import functools
import types

from ...exc import UserRaises, unsupported
from ...tracing import world
from ...tracing.wrapping import WRAPPERS, pin
from ..base import HeldVariable
from .log_calls import CallBehind

__all__ = ["CachedFunctionVariable"]


class CachedFunctionVariable(HeldVariable):
    """A function under ``functools.lru_cache``: traced when it gives constants and does nothing beside. Captured code calls it behind the graph,
    so that its cache counts and holds what it does plainly; what it calls itself is called by that."""

    def truth(self, tx):
        return True

    def getattr(self, tx, name):
        return world.library_attr(tx, self, self.value, self.source, name)

    def call(self, tx, args, kwargs):
        name = getattr(self.value, "__qualname__", "function")
        mark = tx.side_effects.mark()
        if not all(a.is_constant() for a in [*args, *kwargs.values()]):
            unsupported("cached-function", f"call of {name}, which has a cache, with values that aren't constants")
        outermost, tx.output.in_cached_function = not tx.output.in_cached_function, True
        try:
            out = tx.wrap_function(self.value.__wrapped__).call(tx, args, kwargs).unwrap()
        except UserRaises:
            unsupported(
                "cached-function", f"call of {name}, which has a cache and raises", "The cache counts the call."
            )
        finally:
            tx.output.in_cached_function = not outermost
        if not out.is_constant() or tx.side_effects.since(mark):
            unsupported(
                "cached-function",
                f"call of {name}, which has a cache",
                "Whether it runs, or which object it returns, depends on earlier calls.",
            )
        if outermost:
            tx.side_effects.add_call(CallBehind(self, args, kwargs))
        return out


@WRAPPERS.row("cached function")
def _(tx, value, source):
    if type(value) is not functools._lru_cache_wrapper or type(value.__wrapped__) is not types.FunctionType:
        return None
    pin(tx, source, "ID_MATCH", value)
    return CachedFunctionVariable(value, source)
