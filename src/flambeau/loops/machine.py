"""What the parts of the interpreter share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ..base.records import slotted
from ..inductor.assembly.instructions import Operand
from .emitter import Emitter
from .region import LoopRegion
from .values import Container, Declined, Null, Scalar

__all__ = ["BlockEnd", "Edge", "InterpreterPart", "Machine"]


@slotted
class Edge:
    """Control goes to instruction ``target`` with this operand stack. ``learnt``: types of variables that are known better there.
    ``continued``: the types of all variables there, where they aren't those of before (behind a recursive call)."""

    target: int
    stack: list[Any]
    learnt: Mapping[str, Any] = MappingProxyType({})
    continued: Mapping[str, Any] | None = None


@slotted
class BlockEnd:
    """Where control goes at the end of a block. ``test``: of two edges, the first is taken where this is true. ``labels``: those of the edges, where
    what branches to them is written already; the code stands at the first."""

    edges: list[Edge]
    test: Operand | None = None
    labels: tuple[Operand, ...] = ()


class Machine:
    """The code (``insts``, of which ``region`` is run), the instruction at hand (number ``at``), the operand stack, and the emitter ``e`` that
    writes what instructions do."""

    def __init__(self, insts: list, region: LoopRegion, e: Emitter):
        self.insts, self.region, self.e = insts, region, e
        self.at = 0
        self.stack: list[Any] = []
        self.count: Callable[[Container], Scalar]  # set where containers are known

    def pop(self):
        return self.stack.pop()

    def taken(self, n: int) -> list:
        """The last ``n`` operands, which leave the stack."""
        at = len(self.stack) - n
        out = self.stack[at:]
        del self.stack[at:]
        return out

    def number(self) -> Scalar:
        return self.as_number(self.pop())

    def as_number(self, v) -> Scalar:
        if isinstance(v, Container):  # its truth is asked for
            return self.count(v)
        if not isinstance(v, Scalar):
            raise Declined(f"a {type(v).__name__.lower()} where a number is wanted")
        return v

    def push(self, v) -> None:
        self.stack.append(v)

    def push_callable(self, v) -> None:
        """With the NULL that CALL takes on either side."""
        self.stack += [Null(), v]


class InterpreterPart:
    """A part of the interpreter. Methods whose names are those of instructions are what these do: they return None, or the end of the block."""

    def __init__(self, machine: Machine):
        self.machine = machine

    @property
    def e(self) -> Emitter:
        return self.machine.e

    @property
    def stack(self) -> list:
        return self.machine.stack

    def begin_block(self) -> None:
        """A block is about to be run."""

    def instructions(self) -> dict:
        """Name of an instruction -> its method."""
        return {name: getattr(self, name) for name in dir(type(self)) if name.isupper()}
