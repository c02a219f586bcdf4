"""What calls of builtins do, by the builtin: ``handler(tx, args, kwargs)`` gives a variable, or None for what it can't say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["HANDLERS", "handles"]

HANDLERS: dict[Any, Callable] = {}


def handles(*fns):
    """Register a handler for calls of these builtins."""

    def add(f):
        for fn in fns:
            HANDLERS[fn] = f
        return f

    return add
