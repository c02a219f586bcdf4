"""What a node calls, where that is an operator. Other callables (``operator.getitem``, say) have no kind, tags or overrides."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any

__all__ = ["base_of", "is_view", "kind_of", "override_of", "packet_of", "tags_of"]


def kind_of(target: Any) -> str | None:
    """The kind of an operator."""
    return getattr(target, "kind", None)


def tags_of(target: Any) -> Collection[str]:
    """The tags of an operator."""
    return getattr(target, "tags", ())


def is_view(target: Any) -> bool:
    """Whether an operator's result lies in the memory of its first argument."""
    return getattr(target, "is_view", False)


def base_of(call: Any) -> Any:
    """What a call's result is a view of, through views of views; the call itself for what is no view. ``call``: has ``target`` and ``args``, as a
    node has; other values are their own base."""
    while True:
        of = call.args[0] if getattr(call, "target", None) is operator.getitem else call
        if not is_view(getattr(of, "target", None)):
            return call
        call = of.args[0]


def override_of(target: Any, name: str) -> Any:
    """What an operator has instead of what its kind says under this name."""
    return getattr(target, "overrides", {}).get(name)


def packet_of(target: Any) -> Any:
    """The operator with all its overloads."""
    return getattr(target, "overloadpacket", None)
