"""What the places of a frame's value stack hold, for functions that go on with it."""

from __future__ import annotations

import enum

from ...base.records import slotted

__all__ = ["LastiSlot", "Slot"]


class Slot(enum.Enum):
    VALUE = enum.auto()
    NULL = enum.auto()
    HANDLED = enum.auto()
    """What was handled before the exception handled now."""


@slotted
class LastiSlot:
    """The place of an instruction, which the interpreter takes when it raises an exception again."""

    instruction: int
