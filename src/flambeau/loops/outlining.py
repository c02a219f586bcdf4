"""Parallel loop nests become functions of their own, which run a part of the outermost loop's turns, on the thread pool where there is much to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.code import Code
from ..inductor.assembly.instructions import Function, Instruction, Operand, Type, aggregate, integer
from .values import Size

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["PIECE", "ParallelNest"]

PIECE = 32768  # elements that are worth a thread
CONTEXT, BEGIN, END = Operand("%context", llvm.PTR), Operand("%begin", llvm.I64), Operand("%end", llvm.I64)


class ParallelNest:
    """The code of a parallel loop nest while it is written. :meth:`close` moves it into a function, and calls that for all of it."""

    def __init__(self, e: Emitter):
        self.e, self.start = e, len(e.out)
        self.outside, self.errors = {slot.text for slot in e.slots.values()}, len(e.error_blocks)
        self.inner: list[Size] | None = None  # sizes of the first loops within

    def close(self, sizes: Sequence[Size], first: Instruction, test: Instruction) -> None:
        """``first``: the store that the outermost loop starts with; ``test``: the comparison of its counter with its end."""
        e = self.e
        body = e.out[self.start :]
        slots = {slot.text: type for (_, type), slot in e.slots.items() if slot.text not in self.outside}
        made = {i.text for i in body} | slots.keys()
        used = {a.text: a for i in body for a in i.args if a.text[0] == "%" and a.type is not llvm.LABEL}
        given = [v for name, v in used.items() if name not in made]
        if len(e.error_blocks) != self.errors or not self.outside.isdisjoint(v.text for v in given):
            return  # it can end the kernel, or changes a variable: it stays where it is
        del e.out[self.start :]
        inner: Size = 1
        for n in (*sizes[1:], *(n for n in self.inner or () if isinstance(n, int) or n.text not in made)):
            inner = e.mul(inner, n)
        work = e.mul(sizes[0], inner)
        number = len(e.pieces)
        # Two words for each, since a complex number is two.
        context = e.slot(f"context{number}", aggregate(f"[{max(2 * len(given), 1)} x i64]"))
        for k, v in enumerate(given):
            e.write(v, e.place(llvm.I64, context, 2 * k), ", align 8")
        first.args = (BEGIN, first.args[1])
        test.args = (test.args[0], END)
        piece = self._function(f"KERNEL.p{number}", given, slots, body)
        e.pieces.append(piece)
        many, few, on = e.new_label(), e.new_label(), e.new_label()
        e.branch(e.cmp("sge", work, 2 * PIECE), many, few)
        e.label(many)
        # There is an element, so no size is 0.
        grain = e.add(e.op("sdiv", PIECE, inner), 1)
        function = Operand(f"@{piece.name}", llvm.PTR)
        e.call(llvm.VOID, Operand("%parallel", llvm.PTR), function, context, integer(sizes[0]), integer(grain))
        e.jump(on)
        e.label(few)
        e.call(llvm.VOID, function, context, integer(0), integer(sizes[0]))
        e.jump(on)
        e.label(on)

    def _function(self, name: str, given: list[Operand], slots: dict[str, Type], body: list[Instruction]) -> Function:
        """``body`` with what it uses read from its context."""
        code = Code(self.e.names, [])
        for k, v in enumerate(given):
            at = code.named(f"{v.text}.at", "getelementptr", llvm.PTR, CONTEXT, integer(2 * k), flags="i64")
            code.named(v.text, "load", v.type, at, attributes=", align 8")
        for slot, type in slots.items():
            code.named(slot, "alloca", llvm.PTR, flags=type.text)
        code.out += body
        code.do("ret", flags="void")
        return Function(name, llvm.VOID, (CONTEXT, BEGIN, END), code.out, "internal", "noinline")
