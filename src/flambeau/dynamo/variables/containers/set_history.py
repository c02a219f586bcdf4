"""How a set came to be. The order of a set's elements follows from all that was done to it: what was removed leaves a place, a set that is taken over
as a whole is copied with its places, ``pop`` goes on where it ended. So the order is read off a real set with the same history, and captured
code makes sets by it anew."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ....base.records import made_by, slotted

__all__ = ["Elements", "SetHistory"]


@slotted
class Elements:
    """What a set takes one by one, or out of a dict; variables or the values that they stand for, or those of another set in its order."""

    cls: type  # list or dict
    elements: list | SetHistory


@slotted
class Step:
    """A method's call. ``result``: what it returns is the set from here on."""

    method: str
    operands: tuple
    result: bool = False


@slotted(frozen=False, eq=False)
class SetHistory:
    """``start``: Elements that the set was made of, another set's history, or a real set. ``certain``: that real set has the places that the
    program's has, not only its order."""

    start: Any
    cls: type = set
    certain: bool = True
    steps: list[Step] = made_by(list)

    def add(self, method: str, *operands) -> None:
        self.steps.append(Step(method, operands))

    def snapshot(self) -> SetHistory:
        return SetHistory(self.start, self.cls, self.certain, list(self.steps))

    def result(self, method: str, operands: Iterable) -> SetHistory:
        """That of what a method returns."""
        return SetHistory(self.snapshot(), self.cls, steps=[Step(method, tuple(operands), True)])

    def only_grew(self) -> bool:
        """Whether elements were added to an empty set, and nothing else happened."""
        return (
            isinstance(self.start, Elements) and self.start.cls is list and all(s.method == "add" for s in self.steps)
        )

    def is_certain(self) -> bool:
        if isinstance(self.start, SetHistory) and not self.start.is_certain():
            return False
        parts = [getattr(p, "elements", p) for s in self.steps for p in s.operands]
        return self.certain and all(p.is_certain() for p in parts if isinstance(p, SetHistory))

    def of_values(self) -> SetHistory | None:
        """The same over values; None where some variable is no constant."""
        try:
            return valued(self)
        except NotConstantError:
            return None

    # -- of values --
    def made(self) -> set | frozenset:
        """A set with this history."""
        start = self.start
        if isinstance(start, Elements):
            # A frozenset is made of all at once; both take one element after the other.
            return self.done_to(self.cls(opened(start)))
        if not isinstance(start, SetHistory):
            return self.done_to(copy.copy(start))
        # A method's result is made by that method; what was given to the class is taken over as a whole.
        known = start.made()
        return self.done_to(known if self.steps and self.steps[0].result else self.cls(known))

    def done_to(self, real):
        """What becomes of ``real`` by the steps."""
        for step in self.steps:
            out = getattr(real, step.method)(*map(opened, step.operands))
            real = out if step.result else real
        return real


class NotConstantError(Exception):
    """A variable of a history stands for no constant."""


def valued(part):
    """A part of a history over values in the place of variables."""
    if isinstance(part, SetHistory):
        steps = [Step(s.method, tuple(map(valued, s.operands)), s.result) for s in part.steps]
        return SetHistory(valued(part.start), part.cls, part.certain, steps)
    if isinstance(part, Elements):
        held = part.elements
        return Elements(part.cls, valued(held) if isinstance(held, SetHistory) else [valued(v) for v in held])
    if isinstance(part, (set, frozenset)):
        return part
    if not part.can_constant():
        raise NotConstantError
    return part.as_constant()


def opened(part):
    """The operand that a part of a history of values stands for."""
    if isinstance(part, SetHistory):
        return part.made()
    if isinstance(part, Elements):
        held = part.elements.made() if isinstance(part.elements, SetHistory) else part.elements
        return dict.fromkeys(held) if part.cls is dict else list(held)
    return part
