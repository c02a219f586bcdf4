"""Kernels that note how each number came about, so that a loop can be differentiated without unrolling it.

:class:`TapeEmitter` writes the kernel of a loop like any :class:`~.emitter.Emitter`, and beside each operation on floats a note on a tape: the
numbers of the one or two notes that its operands were, and the partial derivatives with respect to them (Griewank and Walther, Evaluating
Derivatives, chapter 4: an operation list). Control flow is simply run, so branches, ``while``, ``break`` and subscripts by data need nothing. The
number of a float's note is kept beside it: that of an LLVM value in another value, that of a variable in a slot of its own, that of an element in
memory ``%shadow`` bytes behind the element (4 bytes; everything that the kernel touches lies in one arena, see :mod:`derivatives`). Number 0 is a
constant. The cotangents are then carried from the last note to the first (``REVERSE``), or tangents from the first to the last (``FORWARD``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.code import Code, Given
from ..inductor.assembly.instructions import Instruction, Operand, Type, integer
from .arguments import DATA, RUNTIME
from .emitter import Arithmetic, Emitter
from .values import Declined, Size

__all__ = ["FORWARD", "NOTE", "NOTE_RECORD", "REVERSE", "TAPE_RECORD", "Partials", "TapeEmitter", "tape_places"]

NOTE_RECORD = np.dtype(
    [("a", "<u4"), ("b", "<u4"), ("wa", "<f8"), ("wb", "<f8")]
)  # operands' numbers, partial derivatives
NOTE = NOTE_RECORD.itemsize
DOUBLE, I32, I64, PTR = llvm.DOUBLE, llvm.I32, llvm.I64, llvm.PTR
TAPE, ARENA, SHADOW = Operand("%tape", PTR), Operand("%arena", PTR), Operand("%shadow", I64)
NOTHING, ZERO, ONE = llvm.constant(I32, 0), llvm.constant(DOUBLE, 0.0), llvm.constant(DOUBLE, 1.0)
_ENDS = frozenset(("fcmp", "fptosi", "fptoui"))  # of floats, with results that no gradient goes through
_STEPS = ("floor", "ceil", "rint", "trunc", "round", "nearbyint", "roundeven")

Partial = Callable[[], Operand]


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
        return [_NOTE, _ARENA] if self.helpers else [_NOTE]


def _real(dtype: np.dtype) -> None:
    if dtype.kind == "c":
        raise Declined("a gradient is asked for, and the loop has complex numbers")


# -- rules: (recorder, result, operands) --
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


class Partials:
    """Writes partial derivatives, as doubles, by ``code``. ``external``: calls a function of the C library. ``of_two``: functions of two numbers."""

    of_two: frozenset[str] = frozenset()

    def __init__(self, code: Arithmetic, external: Callable[..., Operand]):
        self.code, self.external = code, external

    def wide(self, v: Operand) -> Operand:
        if v.type is DOUBLE:
            return v
        if v.text[0] != "%":  # literals of floats are those of the doubles that equal them
            return Operand(v.text, DOUBLE)
        return self.code.to("fpext", v, DOUBLE)

    def times(self, a, b) -> Operand:
        return self.code.op("fmul", a, b)

    def over(self, a, b) -> Operand:
        return self.code.op("fdiv", a, b)

    def plus(self, a, b) -> Operand:
        return self.code.op("fadd", a, b)

    def less(self, a, b) -> Operand:
        return self.code.op("fsub", a, b)

    def square(self, a: Operand) -> Operand:
        return self.times(a, a)

    def root(self, a: Operand) -> Operand:
        return self.code.intrinsic("sqrt", a)

    def called(self, name: str, *args: Operand) -> Operand:
        return self.external(name, DOUBLE, *args)

    def of(self, name: str, r: Operand, x: Operand, y: Operand | None = None) -> Sequence[Partial]:
        """Of the function of this name, with result ``r``, with respect to each operand."""
        if name in _OF_ONE:
            return [partial(_OF_ONE[name], self, r, x)]
        if name not in _OF_TWO:
            raise Declined(f"{name} has no derivative in a loop")
        return [partial(rule, self, r, x, y) for rule in _OF_TWO[name]]

    def sign(self, x: Operand) -> Operand:
        nothing = self.code.cmp("oeq", x, 0.0)
        return self.code.select(nothing, 0.0, self.code.intrinsic("copysign", ONE, x))

    def gaussian(self, x: Operand, factor: float) -> Operand:
        e = self.called("exp", self.code.neg(self.square(x)))
        return self.times(factor / math.sqrt(math.pi), e)

    def whole_turns(self, x: Operand, y: Operand) -> Operand:
        """Less the whole part of the quotient."""
        return self.code.neg(self.code.intrinsic("trunc", self.over(x, y)))

    def of_base(self, x: Operand, y: Operand) -> Operand:
        slope = self.times(y, self.called("pow", x, self.less(y, 1.0)))
        return self.code.select(self.code.cmp("oeq", y, 0.0), 0.0, slope)

    def of_exponent(self, r: Operand, x: Operand) -> Operand:
        return self.code.select(self.code.cmp("ogt", x, 0.0), self.times(r, self.called("log", x)), 0.0)

    def away(self, x: Operand, y: Operand) -> Operand:
        """The square of the distance."""
        return self.plus(self.square(x), self.square(y))


# Name -> function(partials, result, operand).
_OF_ONE: dict[str, Callable[[Partials, Operand, Operand], Operand]] = {
    "sqrt": lambda p, r, x: p.over(0.5, r),
    "exp": lambda p, r, x: r,
    "exp2": lambda p, r, x: p.times(r, math.log(2)),
    "expm1": lambda p, r, x: p.plus(r, 1.0),
    "log": lambda p, r, x: p.over(1.0, x),
    "log2": lambda p, r, x: p.over(1 / math.log(2), x),
    "log10": lambda p, r, x: p.over(1 / math.log(10), x),
    "log1p": lambda p, r, x: p.over(1.0, p.plus(1.0, x)),
    "sin": lambda p, r, x: p.called("cos", x),
    "cos": lambda p, r, x: p.code.neg(p.called("sin", x)),
    "tan": lambda p, r, x: p.plus(1.0, p.square(r)),
    "sinh": lambda p, r, x: p.called("cosh", x),
    "cosh": lambda p, r, x: p.called("sinh", x),
    "tanh": lambda p, r, x: p.less(1.0, p.square(r)),
    "asin": lambda p, r, x: p.over(1.0, p.root(p.less(1.0, p.square(x)))),
    "acos": lambda p, r, x: p.over(-1.0, p.root(p.less(1.0, p.square(x)))),
    "atan": lambda p, r, x: p.over(1.0, p.plus(1.0, p.square(x))),
    "asinh": lambda p, r, x: p.over(1.0, p.root(p.plus(1.0, p.square(x)))),
    "acosh": lambda p, r, x: p.over(1.0, p.root(p.less(p.square(x), 1.0))),
    "atanh": lambda p, r, x: p.over(1.0, p.less(1.0, p.square(x))),
    "erf": lambda p, r, x: p.gaussian(x, 2.0),
    "erfc": lambda p, r, x: p.gaussian(x, -2.0),
    "fabs": lambda p, r, x: p.sign(x),
    "cbrt": lambda p, r, x: p.over(r, p.times(3.0, x)),
}
# Name -> functions(partials, result, first operand, second operand), one for each operand.
_OF_TWO: dict[str, Sequence[Callable[..., Operand]]] = {
    "pow": (lambda p, r, x, y: p.of_base(x, y), lambda p, r, x, y: p.of_exponent(r, x)),
    "atan2": (lambda p, r, x, y: p.over(y, p.away(x, y)), lambda p, r, x, y: p.code.neg(p.over(x, p.away(x, y)))),
    "hypot": (lambda p, r, x, y: p.over(x, r), lambda p, r, x, y: p.over(y, r)),
    "fmod": (lambda p, r, x, y: ONE, lambda p, r, x, y: p.whole_turns(x, y)),
    "copysign": (
        lambda p, r, x, y: p.times(p.sign(x), p.code.intrinsic("copysign", ONE, y)),
        lambda p, r, x, y: ZERO,
    ),
}


Partials.of_two = frozenset(_OF_TWO)


# What a kernel's tape points to: the number of the next note, the first that there is no room for, whether that was wanted, where note 0 would lie;
# what is called where there is no room and makes some, or null; what that uses, see checkpoints.py: the kernel's context, the other, swapcontext.
TAPE_RECORD = np.dtype([(name, "<i8") for name in ("next", "end", "full", "notes", "hook", "mine", "others", "swap")])


def tape_places(text: str) -> str:
    """``text`` with the place in a tape's record for each FIELD(name)."""
    return re.sub(r"FIELD\((\w+)\)", lambda m: f"getelementptr i8, ptr %tape, i64 {TAPE_RECORD.fields[m[1]][1]}", text)


# fld_note(tape, a, partial, b, partial): the number of a new note. Not inlined: a caller would know that numbers follow one another, and could
# keep one and make others from it, see checkpoints.py.
_NOTE_TEXT = """
define internal i32 @fld_note(ptr %tape, GIVEN) noinline {
  %any = or i32 %a, %b
  %none = icmp eq i32 %any, 0
  br i1 %none, label %no, label %yes
yes:
  %n.p = FIELD(next)
  %n = load i64, ptr %n.p
  %end.p = FIELD(end)
  %end = load i64, ptr %end.p
  %room = icmp ult i64 %n, %end
  br i1 %room, label %put, label %full
full:
  %hook.p = FIELD(hook)
  %hook = load ptr, ptr %hook.p
  %last = icmp eq ptr %hook, null
  br i1 %last, label %stop, label %more
more:
  call void %hook(ptr %tape)
  br label %put
stop:
  %full.p = FIELD(full)
  store i64 1, ptr %full.p
  br label %no
put:
  %notes.p = FIELD(notes)
  %notes = load ptr, ptr %notes.p
  %at = getelementptr ENTRY, ptr %notes, i64 %n
STORES
  %next = add i64 %n, 1
  store i64 %next, ptr %n.p
  %r = trunc i64 %n to i32
  ret i32 %r
no:
  ret i32 0
}
"""


def note_function(entry: str, fields: list[tuple[str, str, int]]) -> str:
    """The text of fld_note: append an entry of the LLVM type ``entry``, and return its number, or 0 without operands or room.

    ``fields``: (type, name, byte) of each parameter, which is stored at that byte of the entry.
    """
    given = ", ".join(f"{type} %{name}" for type, name, _ in fields)
    stores = []
    for type, name, byte in sorted(fields, key=lambda field: field[2]):
        place = f"%{name}.p" if byte else "%at"
        stores += [f"  {place} = getelementptr i8, ptr %at, i64 {byte}"] if byte else []
        stores.append(f"  store {type} %{name}, ptr {place}")
    return tape_places(_NOTE_TEXT).replace("GIVEN", given).replace("ENTRY", entry).replace("STORES", "\n".join(stores))


_NOTE = note_function(
    "{ i32, i32, double, double }", [("i32", "a", 0), ("double", "wa", 8), ("i32", "b", 4), ("double", "wb", 16)]
)
# arena: the next free byte, the end, buffers that were given back, the distance of the shadow. A buffer's header (64 bytes in front of it): see
# emitter.py, then its size and the arena.
_ARENA = """
define internal ptr @fld_new(i64 %size, ptr %arena) {
  %more = add i64 %size, 127
  %whole = and i64 %more, -64
  %list = getelementptr i64, ptr %arena, i64 2
  br label %look
look:
  %link = phi ptr [ %list, %0 ], [ %next.p, %other ]
  %tries = phi i64 [ 0, %0 ], [ %again, %other ]
  %p = load ptr, ptr %link
  %last = icmp eq ptr %p, null
  %enough = icmp ugt i64 %tries, 32
  %stop = or i1 %last, %enough
  br i1 %stop, label %fresh, label %test
test:
  %size.p = getelementptr i8, ptr %p, i64 24
  %has = load i64, ptr %size.p
  %fits = icmp eq i64 %has, %whole
  br i1 %fits, label %taken, label %other
other:
  %next.p = getelementptr i8, ptr %p, i64 8
  %again = add i64 %tries, 1
  br label %look
taken:
  %rest.p = getelementptr i8, ptr %p, i64 8
  %rest = load ptr, ptr %rest.p
  store ptr %rest, ptr %link
  br label %made
fresh:
  %free = load i64, ptr %arena
  %end.p = getelementptr i64, ptr %arena, i64 1
  %end = load i64, ptr %end.p
  %new = add i64 %free, %whole
  %room = icmp ule i64 %new, %end
  br i1 %room, label %cut, label %none
cut:
  store i64 %new, ptr %arena
  %q = inttoptr i64 %free to ptr
  br label %made
made:
  %b = phi ptr [ %p, %taken ], [ %q, %cut ]
  store i64 1, ptr %b
  %waits = getelementptr i8, ptr %b, i64 16
  store i64 0, ptr %waits
  %bsize = getelementptr i8, ptr %b, i64 24
  store i64 %whole, ptr %bsize
  %barena = getelementptr i8, ptr %b, i64 32
  store ptr %arena, ptr %barena
  %data = getelementptr i8, ptr %b, i64 64
  ret ptr %data
none:
  ret ptr null
}
define internal void @fld_free(ptr %p) {
  %arena.p = getelementptr i8, ptr %p, i64 32
  %arena = load ptr, ptr %arena.p
  %list = getelementptr i64, ptr %arena, i64 2
  %first = load ptr, ptr %list
  %link = getelementptr i8, ptr %p, i64 8
  store ptr %first, ptr %link
  store ptr %p, ptr %list
  ret void
}
"""
_SWEEP = """
define i64 @KERNEL(ptr %notes, i64 %first, i64 %count, ptr %d) {{
entry:
  %any = icmp sgt i64 %count, %first
  br i1 %any, label %turn, label %end
turn:
  %k = phi i64 [ {start}, %entry ], [ %next, %on ]
  %at = getelementptr {{ i32, i32, double, double }}, ptr %notes, i64 %k
  %a32 = load i32, ptr %at
  %b.p = getelementptr i8, ptr %at, i64 4
  %b32 = load i32, ptr %b.p
  %wa.p = getelementptr i8, ptr %at, i64 8
  %wa = load double, ptr %wa.p
  %wb.p = getelementptr i8, ptr %at, i64 16
  %wb = load double, ptr %wb.p
  %a = zext i32 %a32 to i64
  %b = zext i32 %b32 to i64
  %this = getelementptr double, ptr %d, i64 %k
  %da = getelementptr double, ptr %d, i64 %a
  %db = getelementptr double, ptr %d, i64 %b
{body}
on:
  %next = add i64 %k, {step}
  %more = icmp {test}
  br i1 %more, label %turn, label %end
end:
  ret i64 0
}}
"""
# A cotangent of zero is not multiplied: what wasn't selected never meets an infinity.
REVERSE = "; cotangents over a tape" + _SWEEP.format(
    start="%last",
    step="-1",
    test="sge i64 %next, %first",
    body="""  %g = load double, ptr %this
  %zero = fcmp oeq double %g, 0.0
  br i1 %zero, label %on, label %add
add:
  %xa = load double, ptr %da
  %pa = fmul double %wa, %g
  %sa = fadd double %xa, %pa
  store double %sa, ptr %da
  %second = icmp ne i32 %b32, 0
  br i1 %second, label %both, label %on
both:
  %xb = load double, ptr %db
  %pb = fmul double %wb, %g
  %sb = fadd double %xb, %pb
  store double %sb, ptr %db
  br label %on""",
).replace("entry:\n", "entry:\n  %last = add i64 %count, -1\n")
FORWARD = "; tangents over a tape" + _SWEEP.format(
    start="%first",
    step="1",
    test="slt i64 %next, %count",
    body="""  %xa = load double, ptr %da
  %na = fcmp une double %xa, 0.0
  %pa = fmul double %wa, %xa
  %va = select i1 %na, double %pa, double 0.0
  %xb = load double, ptr %db
  %nb = fcmp une double %xb, 0.0
  %pb = fmul double %wb, %xb
  %vb = select i1 %nb, double %pb, double 0.0
  %sum = fadd double %va, %vb
  store double %sum, ptr %this
  br label %on""",
)
