"""Kernels that note how each number came about."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....inductor.assembly import instructions as llvm
from ....inductor.assembly.code import Code, Given
from ....inductor.assembly.instructions import Instruction, Operand, Type, integer
from ...arguments import DATA, RUNTIME
from ...emitter import Arithmetic, Emitter
from ...values import Declined, Size
from .arena import ARENA_FUNCTIONS
from .notes import NOTE_FUNCTION
from .partials import DOUBLE, I32, I64, NOTHING, ONE, PTR, ZERO, Partial, Partials

__all__ = ["ARENA", "SHADOW", "TAPE", "TapeEmitter"]

TAPE, ARENA, SHADOW = Operand("%tape", PTR), Operand("%arena", PTR), Operand("%shadow", I64)
_ENDS = frozenset(("fcmp", "fptosi", "fptoui"))  # of floats, with results that no gradient goes through
_STEPS = ("floor", "ceil", "rint", "trunc", "round", "nearbyint", "roundeven")


class TapeEmitter(Emitter):
    noting = True
    freeing = Operand("@fld_free", PTR)  # buffers come from the arena and go back to it

    def __init__(self, sizes: dict[Operand, tuple[int, int]] | None = None, fast: bool = False, turns: bool = False):
        super().__init__(sizes, fast, turns)
        self.notes: dict[Operand, Operand] = {}  # value -> the number of its note
        self.plain = Arithmetic(self.names, self.out, fast)  # writes instructions of which nothing is noted
        self.partials = Partials(self.plain, self.unnoted)

    # -- notes --
    def note_of(self, v: Operand) -> Operand:
        return self.notes.get(v, NOTHING)

    def note(self, v: Operand, *parts: tuple[Operand, Partial]) -> Operand:
        """Note that ``v`` depends on these (value, function that writes the partial derivative)."""
        given = [(self.notes[x], slope()) for x, slope in parts if x in self.notes]
        if given:
            (a, wa), (b, wb) = (*given, (NOTHING, ZERO))[:2]
            self.notes[v] = self.plain.call(I32, "@fld_note", TAPE, a, wa, b, wb)
        return v

    def noted(self, name: str, v: Operand, *args: Operand) -> Operand:
        """Note that ``v`` is a function, of this name, of these."""
        if name in _STEPS or not any(a in self.notes for a in args):
            return v
        return self.recorded(name, v, *args)

    # -- instructions --
    def emit(
        self,
        operation: str,
        type: Type,
        args: Sequence[Operand],
        flags: str = "",
        attributes: str = "",
        prefix: str = "",
    ) -> Instruction:
        v = super().emit(operation, type, args, flags, attributes, prefix)
        if operation in _ENDS or not any(a in self.notes for a in args):
            return v
        passes = _PASSES.get(operation)
        if passes is not None:
            passes(self, v, *args)
            return v
        if operation not in _RULES:
            raise Declined(f"a gradient is asked for, and would go through the instruction {operation}")
        return self.recorded(operation, v, *args)

    def recorded(self, name: str, v: Operand, *args: Operand) -> Operand:
        """Note that ``v`` is this operation, or function, of these."""
        if name in _RULES:
            _RULES[name](self, v, *args)
            return v
        wide = self.partials.wide
        r, xs = wide(v), [wide(a) for a in args]
        return self.note(v, *zip(args, self.partials.of(name, r, *xs)))

    def external(self, name: str, result: Type, *args: Operand) -> Operand:
        v = self.unnoted(name, result, *args)
        if result.floating:
            self.noted(name.removesuffix("f") if result is llvm.FLOAT else name, v, *args)
        return v

    def unnoted(self, name: str, result: Type, *args: Operand) -> Operand:
        """Call an external function, of which nothing is noted."""
        self.declare(name, result, args)
        return self.plain.call(result, f"@{name}", *args)

    def intrinsic(self, name: str, *args: Given) -> Instruction:
        v = self.plain.intrinsic(name, *args)
        if v.type.floating:
            self.noted(name, v, *v.args[1:])
        return v

    def expanded(self, name: str, t: str, *args: Operand) -> Operand:
        return self.noted(name, super().expanded(name, t, *args), *args)

    # -- memory --
    def load(self, p: Operand, dtype: np.dtype, origins: frozenset = frozenset()) -> Operand:
        _real(dtype)
        v = super().load(p, dtype, origins)
        if dtype.kind == "f":
            self.notes[v] = self.plain.read(I32, self.shadow(p), ", align 4")
        return v

    def store(self, p: Operand, dtype: np.dtype, v: Operand, origins: frozenset = frozenset()) -> None:
        _real(dtype)
        super().store(p, dtype, v, origins)
        if dtype.kind == "f":
            self.write(self.note_of(v), self.shadow(p), ", align 4")

    def shadow(self, p: Operand) -> Operand:
        """Where the number of an element's note lies."""
        return self.plain.place(llvm.I8, p, SHADOW)

    def get(self, name: str, type: Type) -> Operand:
        v = super().get(name, type)
        if type.floating:
            self.notes[v] = super().get(f"{name}.note", I32)
        return v

    def set(self, name: str, type: Type, v: Operand | int) -> Instruction:
        made = super().set(name, type, v)
        if type.floating:
            super().set(f"{name}.note", I32, self.note_of(made.args[0]))
        return made

    def buffer(self, size: Size) -> Operand:
        p = self._helper("fld_new", PTR, integer(size), ARENA)
        some = self.plain.cmp("ne", p, Operand("null", PTR))
        self.check(some, "MemoryError", "the arrays of a loop that is differentiated")
        return p

    def loop(self, sizes: Sequence[Size], parallel: bool = False, pieces: bool = True):
        """The tape is one for all: nothing runs beside anything else."""
        return super().loop(sizes, False, False)

    # -- the module --
    def begin(self, code: Code, arrays: int) -> None:
        at = len(RUNTIME) + arrays  # behind the addresses that every kernel is given
        for k, made in enumerate((TAPE, ARENA)):
            place = code.named(f"{made.text}.p", "getelementptr", PTR, DATA, integer(at + k), flags="ptr")
            code.named(made.text, "load", PTR, place)
        place = code.named(f"{SHADOW.text}.p", "getelementptr", PTR, ARENA, integer(3), flags="i64")
        code.named(SHADOW.text, "load", I64, place)

    def own_functions(self) -> list[str]:
        return [NOTE_FUNCTION, ARENA_FUNCTIONS] if self.helpers else [NOTE_FUNCTION]


def _real(dtype: np.dtype) -> None:
    if dtype.kind == "c":
        raise Declined("a gradient is asked for, and the loop has complex numbers")


def _passed_on(e: TapeEmitter, v: Operand, x: Operand) -> None:
    """The same number in another type."""
    if x in e.notes:
        e.notes[v] = e.notes[x]


def _chosen(e: TapeEmitter, v: Operand, c: Operand, x: Operand, y: Operand) -> None:
    if v.type.floating and (x in e.notes or y in e.notes):
        e.notes[v] = e.plain.select(c, e.note_of(x), e.note_of(y))


def _negated(e: TapeEmitter, v: Operand, x: Operand) -> None:
    e.note(v, (x, lambda: llvm.constant(DOUBLE, -1.0)))


def _sum(e: TapeEmitter, v: Operand, a: Operand, b: Operand) -> None:
    e.note(v, (a, lambda: ONE), (b, lambda: ONE))


def _difference(e: TapeEmitter, v: Operand, a: Operand, b: Operand) -> None:
    e.note(v, (a, lambda: ONE), (b, lambda: llvm.constant(DOUBLE, -1.0)))


def _product(e: TapeEmitter, v: Operand, a: Operand, b: Operand) -> None:
    x, y = e.partials.wide(a), e.partials.wide(b)
    if a is b:
        e.note(v, (a, lambda: e.plain.op("fadd", x, x)))
    else:
        e.note(v, (a, lambda: y), (b, lambda: x))


def _quotient(e: TapeEmitter, v: Operand, a: Operand, b: Operand) -> None:
    x, y, over = e.partials.wide(a), e.partials.wide(b), e.partials.over
    e.note(v, (a, lambda: over(ONE, y)), (b, lambda: over(e.plain.neg(over(x, y)), y)))


def _remainder(e: TapeEmitter, v: Operand, a: Operand, b: Operand) -> None:
    x, y = e.partials.wide(a), e.partials.wide(b)
    e.note(v, (a, lambda: ONE), (b, lambda: e.partials.whole_turns(x, y)))


_RULES: dict[str, Callable[..., None]] = {
    "fadd": _sum,
    "fsub": _difference,
    "fmul": _product,
    "fdiv": _quotient,
    "frem": _remainder,
    "fneg": _negated,
}
_PASSES: dict[str, Callable[..., None]] = {"fpext": _passed_on, "fptrunc": _passed_on, "select": _chosen}
