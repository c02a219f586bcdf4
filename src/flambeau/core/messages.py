"""What errors that kernels report message. A kernel knows the number of a message, and reports it with a value and a size."""

from __future__ import annotations

import enum

from ..base.errors import LinAlgError, OutOfBounds
from ..base.records import slotted

__all__ = ["About", "Message"]


class About(enum.IntEnum):
    """What an error is about."""

    INDEX = 0
    CONDITION = 1
    MATRIX = 2


@slotted
class Message:
    """INDEX: one is out of bounds for the size; ``text`` names the operator. CONDITION: one that the program states doesn't hold. MATRIX: one
    can't be factorised. ``{value}`` and ``{size}`` in the text are what was reported."""

    about: About
    text: str

    def error(self, value: int, size: int) -> Exception:
        if self.about == About.INDEX:
            name = self.text.split("::")[-1].split(".")[0]
            return OutOfBounds(f"{name}: index {value} is out of bounds for dimension with size {size}", value)
        text = self.text.replace("{value}", str(value)).replace("{size}", str(size))
        return RuntimeError(text) if self.about == About.CONDITION else LinAlgError(text)
