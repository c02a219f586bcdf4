"""``TORCH_DISTRIBUTED_DEBUG``: how much collectives check and tell."""

from __future__ import annotations

import enum
import os

__all__ = ["DebugLevel", "get_debug_level", "set_debug_level", "set_debug_level_from_env"]


class DebugLevel(enum.IntEnum):
    """DETAIL has engines without a header of their own compare what ranks are about to do."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_level: DebugLevel | None = None


def get_debug_level() -> DebugLevel:
    if _level is None:
        set_debug_level_from_env()
    return _level


def set_debug_level(level: DebugLevel) -> None:
    global _level
    _level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """Take the level from ``TORCH_DISTRIBUTED_DEBUG``. ValueError for a word that isn't one."""
    word = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if word not in DebugLevel.__members__:
        raise ValueError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    set_debug_level(DebugLevel[word])
