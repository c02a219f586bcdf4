"""The slots of a stack of variables."""

from __future__ import annotations

from ..bytecode.slots import LastiSlot, Slot
from ..variables.base import NullVariable, Variable
from ..variables.exceptions.exception import ExcInfoVariable, LastiVariable

__all__ = ["slots_of"]


def slot_of(v: Variable) -> Slot | LastiSlot:
    if isinstance(v, NullVariable):
        return Slot.NULL
    if isinstance(v, ExcInfoVariable) and v.handled:
        return Slot.HANDLED
    if isinstance(v, LastiVariable):
        return LastiSlot(v.index)
    return Slot.VALUE


def slots_of(stack) -> list[Slot | LastiSlot]:
    return [slot_of(v.unwrap()) for v in stack]
