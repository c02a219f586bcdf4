"""Kernels that list what they do with floats, for derivatives of second and higher order.

:class:`ListEmitter` writes a kernel that notes each operation itself, with its operands, where the tape notes partial derivatives: a list of
operations (:mod:`.operations`) can be differentiated as often as wanted.
"""

from __future__ import annotations

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand
from ..values import Declined
from .operations import NUMBERS
from .tape import TAPE, TapeEmitter, note_function

__all__ = ["ListEmitter"]

_NAMES = {"fadd": "ADD", "fsub": "SUB", "fmul": "MUL", "fdiv": "DIV", "frem": "FREM", "fneg": "NEG"}


class ListEmitter(TapeEmitter):
    def recorded(self, name: str, v: Operand, *args: Operand) -> Operand:
        """Note that ``v`` is this operation on these."""
        number = NUMBERS.get(_NAMES.get(name, name.upper()))
        if number is None:
            raise Declined(f"{name} has no derivative in a loop")
        given = [x for a in args for x in (self.note_of(a), self.partials.wide(a))]
        given += [llvm.constant(llvm.I32, 0), llvm.constant(llvm.DOUBLE, 0.0)] * (2 - len(args))
        self.notes[v] = self.plain.call(llvm.I32, "@fld_note", TAPE, llvm.constant(llvm.I32, number), *given)
        return v

    def own_functions(self) -> list[str]:
        _, *others = super().own_functions()
        return [_NOTE, *others]


# fld_note(tape, operation, a, x, b, y): the number of a new entry of the list, see operations.py.
_NOTE = note_function(
    "{ i32, i32, i32, i32, double, double }",
    [("i32", "op", 0), ("i32", "a", 4), ("double", "x", 16), ("i32", "b", 8), ("double", "y", 24)],
)
