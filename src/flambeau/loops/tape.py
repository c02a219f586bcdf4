"""Kernels that note how each number came about, so that a loop can be differentiated without unrolling it.

:class:`Recorder` writes the kernel of a loop like any :class:`~.emitter.Emitter`, and beside each operation on floats a note on a tape: the numbers
of the one or two notes that its operands were, and the partial derivatives with respect to them (Griewank and Walther, Evaluating Derivatives,
chapter 4: an operation list). Control flow is simply run, so branches, ``while``, ``break`` and subscripts by data need nothing. The number of a
float's note is kept beside it: that of an LLVM value in another value, that of a variable in a slot of its own, that of an element in memory
``%shadow`` bytes behind the element (4 bytes; everything that the kernel touches lies in one arena, see :mod:`derivatives`). Number 0 is a
constant. The cotangents are then carried from the last note to the first (``REVERSE``), or tangents from the first to the last (``FORWARD``).
"""

from __future__ import annotations

import math
import re

from .emitter import RUNTIME, Emitter, float_literal
from .values import Declined

__all__ = ["FORWARD", "NOTE", "REVERSE", "Recorder"]

NOTE = 24  # bytes of a note: two numbers of 4 bytes, two doubles
_FLOATS = ("double", "float")
_OPERATION = re.compile(r"(\w+)((?: (?:reassoc|nsz|arcp|contract))*) (.*)")
_ENDS = ("fcmp", "fptosi", "fptoui")  # of floats, with results that no gradient goes through
_STEPS = ("floor", "ceil", "rint", "trunc", "round", "nearbyint", "roundeven")


class Recorder(Emitter):
    noting = True

    def __init__(self, sizes=None, fast: bool = False):
        super().__init__(sizes, fast)
        self.notes: dict[str, str] = {}  # value -> the number of its note
        self.calling = False  # whether an instruction is a call that is noted elsewhere, or not at all

    # -- arithmetic of what is noted --
    def plain(self, text: str) -> str:
        """An instruction of which nothing is noted."""
        return super().op(text)

    def wide(self, t: str, v: str) -> str:
        if t == "double" or not v.startswith("%"):
            return v  # literals of floats are those of the doubles that equal them
        return self.plain(f"fpext float {v} to double")

    def times(self, a: str, b: str) -> str:
        return self.plain(f"fmul double {a}, {b}")

    def over(self, a: str, b: str) -> str:
        return self.plain(f"fdiv double {a}, {b}")

    def plus(self, a: str, b: str) -> str:
        return self.plain(f"fadd double {a}, {b}")

    def less(self, a: str, b: str) -> str:
        return self.plain(f"fsub double {a}, {b}")

    def of(self, name: str, *args: str) -> str:
        """A function of doubles."""
        return self.unnoted(name, "double", *[("double", a) for a in args])

    def unnoted(self, name: str, result: str, *args: tuple[str, str]) -> str:
        outer, self.calling = self.calling, True
        v = super().call(name, result, *args)
        self.calling = outer
        return v

    def note_of(self, v: str) -> str:
        return self.notes.get(v, "0")

    def note(self, v: str, *parts) -> str:
        """Note that ``v`` depends on these (value, function that writes the partial derivative)."""
        parts = [(self.notes[x], partial()) for x, partial in parts if x in self.notes]
        if parts:
            (a, wa), (b, wb) = (*parts, ("0", float_literal(0.0)))[:2]
            self.notes[v] = self.plain(f"call i32 @fld_note(ptr %tape, i32 {a}, double {wa}, i32 {b}, double {wb})")
        return v

    # -- instructions --
    def op(self, text: str) -> str:
        v = super().op(text)
        m = _OPERATION.fullmatch(text)
        if m is None:
            return v
        what, rest = m[1], m[3]
        if what in ("fadd", "fsub", "fmul", "fdiv", "frem"):
            t, a, b = re.fullmatch(r"(\w+) (\S+), (\S+)", rest).groups()
            x, y, one = self.wide(t, a), self.wide(t, b), float_literal(1.0)
            first, second = {
                "fadd": (lambda: one, lambda: one),
                "fsub": (lambda: one, lambda: float_literal(-1.0)),
                "fmul": (lambda: y, lambda: x),
                "fdiv": (lambda: self.over(one, y), lambda: self.over(self.plain(f"fneg double {self.over(x, y)}"), y)),
                "frem": (lambda: one, lambda: self.plain(f"fneg double {self.of('llvm.trunc.f64', self.over(x, y))}")),
            }[what]
            if a == b and what == "fmul":
                return self.note(v, (a, lambda: self.plus(x, x)))
            return self.note(v, (a, first), (b, second))
        if what == "fneg":
            return self.note(v, (rest.split()[1], lambda: float_literal(-1.0)))
        if what in ("fpext", "fptrunc"):
            source = rest.split()[1]
            if source in self.notes:
                self.notes[v] = self.notes[source]
        elif what == "select":
            m = re.fullmatch(r"i1 (\S+), (\w+) (\S+), \w+ (\S+)", rest)
            if m is not None and m[2] in _FLOATS and (m[3] in self.notes or m[4] in self.notes):
                self.notes[v] = self.plain(f"select i1 {m[1]}, i32 {self.note_of(m[3])}, i32 {self.note_of(m[4])}")
        elif what not in _ENDS and not (what == "call" and self.calling):
            if any(name in self.notes for name in re.findall(r"%[\w.]+", rest)):
                raise Declined(f"a gradient is asked for, and would go through the instruction {what}")
        return v

    def call(self, name: str, result: str, *args: tuple[str, str]) -> str:
        v = self.unnoted(name, result, *args)
        if result in _FLOATS:
            base = re.sub(r"^llvm\.|\.f(32|64)$", "", name)
            if result == "float" and base == name:
                base = base.removesuffix("f")
            self.noted(base, result, v, *[a for _, a in args])
        return v

    def expanded(self, name: str, t: str, *args: str) -> str:
        v = super().expanded(name, t, *args)
        return self.noted(name, "float" if t == "f32" else "double", v, *args)

    def noted(self, name: str, t: str, v: str, *args: str) -> str:
        if name in _STEPS or not any(a in self.notes for a in args):
            return v
        r, xs = self.wide(t, v), [self.wide(t, a) for a in args]
        partials = self.partials(name, r, *xs)
        return self.note(v, *zip(args, partials))

    def partials(self, name: str, r: str, x: str, y: str = ""):
        one = float_literal(1.0)
        square = lambda a: self.times(a, a)  # noqa: E731
        root = lambda a: self.of("llvm.sqrt.f64", a)  # noqa: E731
        found = {
            "sqrt": lambda: self.over(float_literal(0.5), r),
            "exp": lambda: r,
            "exp2": lambda: self.times(r, float_literal(math.log(2))),
            "expm1": lambda: self.plus(r, one),
            "log": lambda: self.over(one, x),
            "log2": lambda: self.over(float_literal(1 / math.log(2)), x),
            "log10": lambda: self.over(float_literal(1 / math.log(10)), x),
            "log1p": lambda: self.over(one, self.plus(one, x)),
            "sin": lambda: self.of("cos", x),
            "cos": lambda: self.plain(f"fneg double {self.of('sin', x)}"),
            "tan": lambda: self.plus(one, square(r)),
            "sinh": lambda: self.of("cosh", x),
            "cosh": lambda: self.of("sinh", x),
            "tanh": lambda: self.less(one, square(r)),
            "asin": lambda: self.over(one, root(self.less(one, square(x)))),
            "acos": lambda: self.over(float_literal(-1.0), root(self.less(one, square(x)))),
            "atan": lambda: self.over(one, self.plus(one, square(x))),
            "asinh": lambda: self.over(one, root(self.plus(one, square(x)))),
            "acosh": lambda: self.over(one, root(self.less(square(x), one))),
            "atanh": lambda: self.over(one, self.less(one, square(x))),
            "erf": lambda: self.gaussian(x, 2.0),
            "erfc": lambda: self.gaussian(x, -2.0),
            "fabs": lambda: self.sign(x),
            "cbrt": lambda: self.over(r, self.times(float_literal(3.0), x)),
        }
        if name in found:
            return [found[name]]
        away = lambda: self.plus(square(x), square(y))  # noqa: E731
        positive = lambda: self.plain(f"fcmp ogt double {x}, 0.0")  # noqa: E731
        pairs = {
            "pow": (
                lambda: self.unless_zero(y, self.times(y, self.of("pow", x, self.less(y, one)))),
                lambda: self.plain(
                    f"select i1 {positive()}, double {self.times(r, self.of('log', x))}, double {float_literal(0.0)}"
                ),
            ),
            "atan2": (lambda: self.over(y, away()), lambda: self.plain(f"fneg double {self.over(x, away())}")),
            "hypot": (lambda: self.over(x, r), lambda: self.over(y, r)),
            "fmod": (
                lambda: one,
                lambda: self.plain(f"fneg double {self.of('llvm.trunc.f64', self.over(x, y))}"),
            ),
            "copysign": (
                lambda: self.times(self.sign(x), self.of("llvm.copysign.f64", one, y)),
                lambda: float_literal(0.0),
            ),
        }
        if name not in pairs:
            raise Declined(f"{name} has no derivative in a loop")
        return pairs[name]

    def sign(self, x: str) -> str:
        nothing = self.plain(f"fcmp oeq double {x}, 0.0")
        side = self.of("llvm.copysign.f64", float_literal(1.0), x)
        return self.plain(f"select i1 {nothing}, double {float_literal(0.0)}, double {side}")

    def unless_zero(self, y: str, v: str) -> str:
        return self.plain(
            f"select i1 {self.plain(f'fcmp oeq double {y}, 0.0')}, double {float_literal(0.0)}, double {v}"
        )

    def gaussian(self, x: str, factor: float) -> str:
        e = self.of("exp", self.plain(f"fneg double {self.times(x, x)}"))
        return self.times(float_literal(factor / math.sqrt(math.pi)), e)

    # -- memory --
    def load(self, p, dtype, origins=frozenset()):
        self.real(dtype)
        v = super().load(p, dtype, origins)
        if dtype.kind == "f":
            self.notes[v] = self.plain(f"load i32, ptr {self.shadow(p)}, align 4")
        return v

    def real(self, dtype) -> None:
        if dtype.kind == "c":
            raise Declined("a gradient is asked for, and the loop has complex numbers")

    def store(self, p, dtype, v, origins=frozenset()):
        self.real(dtype)
        super().store(p, dtype, v, origins)
        if dtype.kind == "f":
            self.line(f"store i32 {self.note_of(v)}, ptr {self.shadow(p)}, align 4")

    def shadow(self, p: str) -> str:
        return self.plain(f"getelementptr i8, ptr {p}, i64 %shadow")

    def get(self, name, llvm):
        v = super().get(name, llvm)
        if llvm in _FLOATS:
            self.notes[v] = super().get(f"{name}.note", "i32")
        return v

    def set(self, name, llvm, v):
        super().set(name, llvm, v)
        if llvm in _FLOATS:
            super().set(f"{name}.note", "i32", self.note_of(v))

    def buffer(self, size: str) -> str:
        p = self.helper("fld_new", "ptr", ("i64", size), ("ptr", "%arena"))
        self.check(self.plain(f"icmp ne ptr {p}, null"), "MemoryError", "the arrays of a loop that is differentiated")
        return p

    def loop(self, sizes, parallel: bool = False, pieces: bool = True):
        """The tape is one for all: nothing runs beside anything else."""
        return super().loop(sizes, False, False)

    def text(self, shapes, fresh: int = 0, written=(), spread=None) -> str:
        at = len(RUNTIME) + len(shapes) + fresh  # behind the addresses that every kernel is given
        # Buffers come from the arena and go back to it.
        flush = "call void @flb_flush(ptr %limbo, ptr %free)"
        whole = super().text(shapes, fresh, written, None).replace(flush, flush.replace("%free", "@fld_free"))
        entry = [
            "entry:",
            f"  %tape.p = getelementptr ptr, ptr %data, i64 {at}",
            "  %tape = load ptr, ptr %tape.p",
            f"  %arena.p = getelementptr ptr, ptr %data, i64 {at + 1}",
            "  %arena = load ptr, ptr %arena.p",
            "  %shadow.p = getelementptr i64, ptr %arena, i64 3",
            "  %shadow = load i64, ptr %shadow.p",
        ]
        whole = whole.replace("entry:\n", "\n".join(entry) + "\n", 1)
        return whole + _NOTE + (_ARENA if self.helpers else "")


# fld_note(tape, a, partial, b, partial): the number of a new note. tape: the next number, the first that there is no room for, whether that was
# wanted, the notes.
_NOTE = """
define internal i32 @fld_note(ptr %tape, i32 %a, double %wa, i32 %b, double %wb) {
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
  %at = getelementptr { i32, i32, double, double }, ptr %notes, i64 %n
  store i32 %a, ptr %at
  %b.p = getelementptr i8, ptr %at, i64 4
  store i32 %b, ptr %b.p
  %wa.p = getelementptr i8, ptr %at, i64 8
  store double %wa, ptr %wa.p
  %wb.p = getelementptr i8, ptr %at, i64 16
  store double %wb, ptr %wb.p
  %next = add i64 %n, 1
  store i64 %next, ptr %tape
  %r = trunc i64 %n to i32
  ret i32 %r
no:
  ret i32 0
}
"""
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
