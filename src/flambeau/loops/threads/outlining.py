"""Parallel loop nests become functions of their own, which run a part of the outermost loop's turns, on the thread pool where there is much to do.

Vectors that are stored across two cache lines take longer. Where a nest is one loop over neighbouring elements, a long part of it is run in two: a
few turns up to where what it stores begins a cache line, and the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.code import Code
from ...inductor.assembly.instructions import Function, Instruction, Operand, Type, aggregate, integer
from ..values import Size

if TYPE_CHECKING:
    from ..emitter import Emitter

__all__ = ["PIECE", "ParallelNest"]

PIECE = 32768  # elements that are worth a thread
LINE = 64  # bytes of a cache line
LONG = 1024  # turns that are worth looking where lines begin
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
        stored = _stored(body) if len(sizes) == 1 else None
        bounds, lines = e.bounds_of(sizes[0]), None
        if stored is not None and stored[0] in given and (bounds is None or bounds[1] >= LONG):
            lines = self._from_a_line(piece, given.index(stored[0]), stored[1])
            e.pieces.append(lines)
        many, few, on = e.new_label(), e.new_label(), e.new_label()
        e.branch(e.cmp("sge", work, 2 * PIECE), many, few)
        e.label(many)
        # There is an element, so no size is 0.
        grain = e.add(e.op("sdiv", PIECE, inner), 1)
        function = Operand(f"@{(lines or piece).name}", llvm.PTR)
        e.call(llvm.VOID, Operand("%parallel", llvm.PTR), function, context, integer(sizes[0]), integer(grain))
        e.jump(on)
        e.label(few)
        if lines is not None:
            several, short = e.new_label(), e.new_label()
            e.branch(e.cmp("sge", work, LONG), several, short)
            e.label(several)
            e.call(llvm.VOID, function, context, integer(0), integer(sizes[0]))
            e.jump(on)
            e.label(short)
        e.call(llvm.VOID, Operand(f"@{piece.name}", llvm.PTR), context, integer(0), integer(sizes[0]))
        e.jump(on)
        e.label(on)

    def _from_a_line(self, piece: Function, base: int, size: int) -> Function:
        """A function that runs a part of the turns as two, the second of which stores from the start of a cache line on. ``base``: which word of
        the context is the address of element 0; ``size``: bytes of an element."""
        code = Code(self.e.names, [])
        first = code.read(llvm.PTR, code.place(llvm.I64, CONTEXT, 2 * base), ", align 8")
        start = code.to("ptrtoint", code.place(llvm.I8, first, code.op("mul", BEGIN, size)), llvm.I64)
        turns = code.op("udiv", code.op("and", code.op("sub", 0, start), LINE - 1), size)
        middle = code.op("add", BEGIN, code.intrinsic("smin", turns, code.op("sub", END, BEGIN)))
        function = Operand(f"@{piece.name}", llvm.PTR)
        code.call(llvm.VOID, function, CONTEXT, BEGIN, middle)
        code.call(llvm.VOID, function, CONTEXT, middle, END)
        code.do("ret", flags="void")
        return Function(f"{piece.name}.lines", llvm.VOID, (CONTEXT, BEGIN, END), code.out, "internal", "noinline")

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


def _stored(body: Sequence[Instruction]) -> tuple[Operand, int] | None:
    """The address of element 0 and the bytes of an element of what is stored first, where the body is one loop that stores neighbours."""
    labels = [i for i in body if i.operation == "label"]
    index = next((i for i in body if i.operation == "load"), None)
    if len(labels) != 3 or index is None:
        return None
    for i in body:
        place = i.args[1] if i.operation == "store" else None
        if isinstance(place, Instruction) and place.operation == "getelementptr" and place.flags.endswith("i8"):
            base, offset = place.args
            size = i.args[0].type.bits // 8
            counted = (
                offset.args if isinstance(offset, Instruction) and offset.operation == "mul" else (offset, integer(1))
            )
            if size and counted[0] is index and counted[1].text == integer(size).text:
                return base, size
            return None
    return None
