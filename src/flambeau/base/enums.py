"""The enumerations that C and Python share (csrc/runtime/kernels.def, csrc/runtime/graph.def), as IntEnums: ``from .enums import Element, Step``."""

from __future__ import annotations

import enum
from typing import Any

from .. import _runtime

__all__: list[str] = []

_ENUMS = {name.title(): enum.IntEnum(name.title(), members, start=0) for name, members in _runtime.ENUMS.items()}


def __getattr__(name: str) -> Any:
    if name in _ENUMS:
        return _ENUMS[name]
    raise AttributeError(f"there is no enumeration {name}")
