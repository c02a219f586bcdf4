"""Which rule a function has."""

from __future__ import annotations

from collections.abc import Callable

from ....core.function_kinds import is_view
from ....core.function_kinds import name_of as public_name
from ..tracing import uncaptured_codes

__all__ = ["RULES", "VIEWS", "call", "named", "rule"]

RULES: dict[str, Callable] = {}
"""``rule(func, *args, **kwargs)`` by the name of a public function, a method or an operator."""
VIEWS: list[Callable] = []
"""The rule of views that have none by name."""


def rule(*names: str):
    """Decorator: the rule of the functions of these names."""

    def wrap(fn: Callable) -> Callable:
        RULES.update(dict.fromkeys(names, fn))
        return fn

    return wrap


def call(func, args, kwargs):
    """``func`` with quantised tensors among its arguments, from ``__torch_function__``."""
    found = rule_of(func)
    if found is None:
        return uncaptured_codes(f"{named(func)} of quantised tensors")
    return found(func, *args, **kwargs)


def named(func) -> str:
    """The name that rules have for a function: its public one, or how it shows."""
    return public_name(func) or str(func)


def rule_of(func) -> Callable | None:
    found = RULES.get(named(func))
    return VIEWS[0] if found is None and is_view(func) else found


# Which rule there is never changes: capture asks while it traces.
for _asked in (named, rule_of):
    _asked._dynamo_marked_constant = True
