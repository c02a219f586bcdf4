"""What lower levels call of upper ones, by name: ``flambeau/__init__.py`` provides it, and nothing is imported until it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["ask", "provide"]

_loaders: dict[str, Callable[[], Any]] = {}


def provide(name: str, load: Callable[[], Any]) -> None:
    """``load()`` imports what goes by ``name``."""
    _loaders[name] = load


def ask(name: str) -> Any:
    """What was provided under ``name``. KeyError where nothing was."""
    return _loaders[name]()
