"""What a node calls, where that is an operator. Other callables (``operator.getitem``, say) have no kind, tags or overrides."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

__all__ = ["is_view", "kind_of", "override_of", "packet_of", "tags_of"]


def kind_of(target: Any) -> str | None:
    """The kind of an operator."""
    return getattr(target, "kind", None)


def tags_of(target: Any) -> Collection[str]:
    """The tags of an operator."""
    return getattr(target, "tags", ())


def is_view(target: Any) -> bool:
    """Whether an operator's result lies in the memory of its first argument."""
    return getattr(target, "is_view", False)


def override_of(target: Any, name: str) -> Any:
    """What an operator has instead of what its kind says under this name."""
    return getattr(target, "overrides", {}).get(name)


def packet_of(target: Any) -> Any:
    """The operator with all its overloads."""
    return getattr(target, "overloadpacket", None)
