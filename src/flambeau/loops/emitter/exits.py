"""Ways out of the kernel before its end: errors, which Python raises, and interrupts by the user; the labels and registers that they lead to."""

from __future__ import annotations

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.code import Code
from ...inductor.assembly.instructions import Instruction, Operand, integer, label
from ..faults import Fault, Limit
from ..values import Size
from .memory import MemoryCode

__all__ = ["CLEANUP", "CODE", "EXIT", "RARELY", "SHARED", "USUALLY", "ExitCode", "block_label", "turn_label"]


WORK = 1 << 21  # turns and elements after which a kernel asks whether it has been interrupted
USUALLY, RARELY = ", !prof !0", ", !prof !1"  # of a branch: the first way is taken, or the second
CODE, SHARED = (Operand(f"%{name}", llvm.PTR) for name in ("code", "shared"))
CLEANUP, EXIT = label("cleanup"), label("exit")
SEEN = "@seen"  # the slot of errors that are told when the kernel ends, a bit each


def block_label(at: int) -> Operand:
    """Of the block of bytecode that begins at this instruction."""
    return label(f"b{at}")


def turn_label(at: int) -> Operand:
    """Of a turn of the loop that begins at this instruction, within a strip of turns."""
    return label(f"b{at}.turn")


class ExitCode(MemoryCode):
    """``turns``: whether the text is a function for a part of the outermost loop's turns."""

    rows = False  # whether the text is a function for a part of the rows that its element loops run over

    def __init__(self, sizes: dict[Operand, tuple[int, int]] | None, fast: bool, turns: bool):
        super().__init__(sizes, fast)
        self.turns = turns
        self.errors: list[Fault] = []
        self.at_end: list[int] = []  # errors that are told when the kernel ends, by number
        self.error_blocks: list[Instruction] = []

    # -- errors --
    def check(self, holds: Operand, error: str, text: str | Limit, *numbers: Size) -> None:
        """Leave the kernel with this error (a type's name, and its text with places for ``numbers``) unless ``holds``."""
        number = self.error(error, text)
        on, off = self.new_label(), self.new_label()
        self.branch(holds, on, off, USUALLY)
        block = Code(self.names, self.error_blocks)
        block.label(off)
        for k, v in enumerate(numbers):
            errors = Operand("%errors", llvm.PTR)
            place = block.named(f"{off.text}.{k}", "getelementptr", llvm.PTR, errors, integer(k), flags="i64")
            block.write(v, place)
        block.write(number, CODE)
        block.jump(CLEANUP)
        self.go_on(on)

    def check_at_end(self, holds: Operand, error: str, text: str | Limit) -> None:
        """As :meth:`check`, but turns go on: LLVM may vectorise a loop that isn't left. For what does no harm meanwhile; errors that come
        later are passed over."""
        number = self.error(error, text)
        if number not in self.at_end:
            self.at_end.append(number)
        seen = self.counters(SEEN, 1)
        self.write(
            self.op("or", self.read(llvm.I64, seen), self.select(holds, 0, 1 << self.at_end.index(number))), seen
        )

    def ended(self, code: Code) -> Operand:
        """The number of the error that the kernel ends with: the first one that was seen, unless a signal ends it."""
        end = code.named("%end", "load", llvm.I64, CODE)
        if not self.at_end:
            return end
        seen = code.read(llvm.I64, self.counters(SEEN, 1))
        for k, number in enumerate(self.at_end):
            met = code.cmp("ne", code.op("and", seen, 1 << k), 0)
            end = code.select(code.op("and", met, code.cmp("sge", end, 0)), number, end)
        return end

    def error(self, kind: str, text: str | Limit) -> int:
        """The number of an error."""
        fault = Fault.of(kind, text)
        if fault not in self.errors:
            self.errors.append(fault)
        return self.errors.index(fault) + 1

    # -- interrupts --
    def spend(self, n: Size) -> None:
        """Count ``n`` turns or elements, and leave the kernel if the user has interrupted it. Asked for before long work, never inside what LLVM
        is to vectorise."""
        work = self.counters("@work", 1)
        total = self.op("add", self.read(llvm.I64, work), n)
        self.write(total, work)
        ask, stop, on = self.new_label(), self.new_label(), self.new_label()
        computed = self.computed
        self.branch(self.cmp("ugt", total, WORK), ask, on, RARELY)
        self.label(ask)
        self.write(0, work)
        signal = ends = self.call(llvm.I64, Operand("%interrupted", llvm.PTR))
        if self.turns or self.rows:  # or other turns have ended the loop
            ends = self.op("or", ends, self.emit("load", llvm.I64, (SHARED,), "atomic", " monotonic, align 8"))
        self.branch(self.cmp("eq", ends, 0), on, stop)
        self.label(stop)
        asked = self.cmp("ne", signal, 0)
        self.write(self.to("sext", asked, llvm.I64), CODE)
        self.jump(CLEANUP)
        self.computed = computed
        self.go_on(on)
