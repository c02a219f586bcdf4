"""Kernels that list what they do with floats, for derivatives of second and higher order.

:class:`ListEmitter` writes a kernel that notes each operation itself, with its operands, where the tape notes partial derivatives: a list of
operations (:mod:`operations`) can be differentiated as often as wanted.
"""

from __future__ import annotations

from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand
from .operations import NUMBERS
from .tape import TAPE, TapeEmitter
from .values import Declined

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
_NOTE = """
define internal i32 @fld_note(ptr %tape, i32 %op, i32 %a, double %x, i32 %b, double %y) {
  %any = or i32 %a, %b
  %none = icmp eq i32 %any, 0
  br i1 %none, label %no, label %yes
yes:
  %n = load i64, ptr %tape
  %end.p = getelementptr i64, ptr %tape, i64 1
  %end = load i64, ptr %end.p
  %room = icmp ult i64 %n, %end
  br i1 %room, label %put, label %full
full:
  %full.p = getelementptr i64, ptr %tape, i64 2
  store i64 1, ptr %full.p
  br label %no
put:
  %notes.p = getelementptr i64, ptr %tape, i64 3
  %notes = load ptr, ptr %notes.p
  %at = getelementptr { i32, i32, i32, i32, double, double }, ptr %notes, i64 %n
  store i32 %op, ptr %at
  %a.p = getelementptr i8, ptr %at, i64 4
  store i32 %a, ptr %a.p
  %b.p = getelementptr i8, ptr %at, i64 8
  store i32 %b, ptr %b.p
  %x.p = getelementptr i8, ptr %at, i64 16
  store double %x, ptr %x.p
  %y.p = getelementptr i8, ptr %at, i64 24
  store double %y, ptr %y.p
  %next = add i64 %n, 1
  store i64 %next, ptr %tape
  %r = trunc i64 %n to i32
  ret i32 %r
no:
  ret i32 0
}
"""
