"""What the places of a frame's value stack hold, for functions that go on with it."""

from __future__ import annotations

from ..variables.base import NullVariable, Variable
from ..variables.exceptions.exception import ExcInfoVariable, LastiVariable

__all__ = ["slots_of"]


def kind_of(v: Variable) -> str | tuple[str, int]:
    """What a place of the stack holds: "v" a value, "n" NULL, "e" what was handled before the exception handled now,
    ("l", i) the place of instruction i."""
    if isinstance(v, NullVariable):
        return "n"
    if isinstance(v, ExcInfoVariable) and v.handled:
        return "e"
    if isinstance(v, LastiVariable):
        return ("l", v.index)
    return "v"


def slots_of(stack) -> list:
    return [kind_of(v.unwrap()) for v in stack]
