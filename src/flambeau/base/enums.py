"""The enumerations that C and Python share (csrc/runtime/kernels.def, csrc/runtime/graph.def), as IntEnums: ``from .enums import Element, Step``."""

from __future__ import annotations

import enum
from typing import Any

from .. import _runtime

_MEMBERS = {name.title(): members for name, members in _runtime.ENUMS.items()}
__all__ = list(_MEMBERS)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """An enumeration is made when it is first asked for: each takes a third of a millisecond."""
    if name not in _MEMBERS:
        raise AttributeError(f"there is no enumeration {name}")
    made = globals()[name] = enum.IntEnum(name, _MEMBERS[name], start=0)
    return made
