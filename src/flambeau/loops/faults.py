"""Errors that kernels of loops end with, and what is done about those that Python wouldn't raise."""

from __future__ import annotations

import enum

from ..base.records import slotted

__all__ = ["TOO_LONG", "Fault", "Limit", "Remedy"]


class Remedy(enum.IntEnum):
    NONE = 0
    """The error is Python's, or NumPy's."""
    PLAINLY = 1
    """Native loops have no place for what is asked: the loop is run without them from then on."""
    RESHAPES = 2
    """An array is left in another shape: the loop is compiled again for arrays that change theirs, and after that run plainly."""


@slotted
class Limit:
    """What native loops have no place for, in the place of the text of an error. Its message names the setting that runs the loop plainly."""

    text: str
    remedy: Remedy = Remedy.PLAINLY


@slotted
class Fault:
    """``kind``: the name of a built-in error. ``text``: its message, with places for numbers."""

    kind: str
    text: str
    remedy: Remedy

    def packed(self) -> tuple[str, str, int]:
        return self.kind, self.text, int(self.remedy)

    @classmethod
    def of(cls, kind: str, text: str | Limit) -> Fault:
        if isinstance(text, str):
            return cls(kind, text, Remedy.NONE)
        return cls(kind, f"{text.text}; run it with torch._dynamo.config.native_loops = False", text.remedy)


TOO_LONG = Limit("an integer of a compiled loop needs more than 64 bits")
