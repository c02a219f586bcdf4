"""The module of one loop kernel: what its emitter wrote, between what it begins and ends with.

``i64 @KERNEL(ptr data, ptr meta, ptr ints, ptr floats, ptr out)``: addresses of the runtime's functions (:data:`RUNTIME`), then of the
arrays; for each array its sizes and byte strides; the numbers that the loop reads; a slot of 8 bytes for each result and three more for the
numbers of an error message. It returns 0, the number of an error, or -1 when a signal's handler has raised.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.records import slotted
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.code import Code
from ..inductor.assembly.instructions import Function, Instruction, Operand, integer, label
from . import wrapping
from .arguments import DATA, GIVEN, META, NULL, OUT, RUNTIME
from .array_items import OWNERS
from .containers import CHAIN
from .emitter import CLEANUP, CODE, LIMBO, SCOPES, SHARED, SMALL_BUFFER, Emitter
from .inner import InnerLoop
from .spreading import ERRORS, SLOTS, WHOLE, Spread, blocks, field, functions, turns

__all__ = ["KernelArguments", "module"]


@slotted
class KernelArguments:
    """What the kernel is given. ``shapes``: the number of dimensions of each array; ``fresh``: the number of arrays that are results, whose
    addresses follow those of the others; ``written``: the arrays that are written, which share no memory with others. ``owned``: variables whose
    buffers are given back at the end."""

    shapes: list[int]
    fresh: int = 0
    written: frozenset[int] = frozenset()
    owned: Sequence[str] = ()

    @property
    def addresses(self) -> list[str]:
        """What lies at the start of ``data``."""
        return [*RUNTIME, *(f"a{k}" for k in range(len(self.shapes))), *(f"f{k}" for k in range(self.fresh))]


def module(e: Emitter, given: KernelArguments, spread: Spread | None = None, inner: Sequence[InnerLoop] = ()) -> str:
    """The text. ``spread``: where the code is for a part of the outermost loop's turns. ``inner``: loops within that have functions of their own."""
    for loop in inner:
        e.declared |= loop.e.declared
        e.scopes |= loop.e.scopes
    _tell_apart(e, given.written)
    body = [
        *_begin(e, given, OUT if spread is None else WHOLE),
        *e.out,
        *e.error_blocks,
        *_end(e, given.owned, spread is not None),
    ]
    made = [Function("KERNEL", llvm.I64, GIVEN, [_at("entry"), *body])] if spread is None else functions(spread, body)
    for loop in inner:
        made += [blocks(loop.name, 0), turns(loop.name, _inner(loop, given))]
    lines = [
        *(line for f in made for line in f.lines()),
        *([_HELPERS] if e.helpers else []),
        *e.functions.values(),
        *sorted(e.declared),
        '!0 = !{!"branch_weights", i32 2000, i32 1}',
        '!1 = !{!"branch_weights", i32 1, i32 2000}',
        *e.metadata,
        *("\n".join(piece.lines()) for piece in e.pieces),
        *e.own_functions(),
    ]
    return "\n".join(lines) + "\n"


def _inner(loop: InnerLoop, given: KernelArguments) -> list[Instruction]:
    """The text of a loop within, which begins with copies of the kernel's variables."""
    code = Code(loop.e.names, [])
    field(code, ERRORS, "errors", llvm.PTR)
    code.out += _begin(loop.e, given, None)
    for k, (name, type) in enumerate(loop.copied):
        outer = field(code, SLOTS + k, f"outer{k}", llvm.PTR)
        code.write(code.read(type, outer), loop.e.slots[name, type])
    code.out += [*loop.e.out, *loop.e.error_blocks, *_end(loop.e, (), True)]
    return code.out


def _tell_apart(e: Emitter, written) -> None:
    """The metadata of the scopes that accesses of operands are in."""
    for n in sorted(e.scopes):
        others = [f"!{SCOPES + 3 * m}" for m in sorted(e.scopes) if m != n and (n in written or m in written)]
        scope = SCOPES + 3 * n
        e.metadata += [
            f"!{scope} = distinct !{{!{scope}, !{SCOPES - 1}}}",
            f"!{scope + 1} = !{{!{scope}}}",
            f"!{scope + 2} = !{{{', '.join(others)}}}",
        ]
    if e.scopes:
        e.metadata.append(f"!{SCOPES - 1} = distinct !{{!{SCOPES - 1}}}")


def _begin(e: Emitter, given: KernelArguments, out: Operand | None) -> list[Instruction]:
    """Read what is given, and make room for variables. ``out``: the kernel's results, behind which errors have their numbers; None where
    these are known."""
    code = Code(e.names, [])
    e.begin(code, len(given.shapes) + given.fresh)
    for n, name in enumerate(given.addresses):
        code.named(
            f"%{name}", "load", llvm.PTR, code.named(f"%p{n}", "getelementptr", llvm.PTR, DATA, integer(n), flags="ptr")
        )
    at = 0
    for n, ndim in enumerate(given.shapes):
        for what in ("n", "s"):
            for d in range(ndim):
                name = f"%a{n}.{what}{d}"
                place = code.named(f"{name}.p", "getelementptr", llvm.PTR, META, integer(at), flags="i64")
                code.named(name, "load", llvm.I64, place)
                at += 1
    code.out += e.entry.values()
    for name in given.owned if e.helpers else ():
        e.slot(f"{name}.b", llvm.PTR)
    for (_, type), slot in e.slots.items():
        code.named(slot.text, "alloca", llvm.PTR, flags=type.text)
    for (name, type), slot in e.slots.items():
        if type is llvm.PTR and name.endswith(".b"):
            code.write(NULL, slot)
    code.write(0, code.named(CODE.text, "alloca", llvm.PTR, flags="i64"))
    limbo = code.named(LIMBO.text, "alloca", llvm.PTR, flags="[2 x ptr]")
    for k in range(2):
        code.write(NULL, code.place(llvm.PTR, limbo, k))
    for name, n in e.zeroed.items():
        slot = e.counters(name, n)
        for k in range(n):
            code.write(0, code.place(llvm.I64, slot, k))
    if wrapping.SLOT in e.slots:
        code.write(llvm.constant(llvm.I8, 0), e.slots[wrapping.SLOT])
    if out is not None:
        code.named("%errors", "getelementptr", llvm.PTR, out, integer(e.results), flags="i64")
    return code.out


def _end(e: Emitter, owned: Sequence[str], part: bool) -> list[Instruction]:
    """Give buffers back, and return the number of the error, or tell it to the other turns."""
    code = Code(e.names, [])
    code.label(CLEANUP)
    wrapping.raise_flag(code, e)
    if e.helpers:
        if (OWNERS, llvm.PTR) in e.slots:
            code.call(llvm.VOID, "@flb_release", code.read(llvm.PTR, e.slots[OWNERS, llvm.PTR]), LIMBO)
        for name in owned:
            slot = e.slot(f"{name}.b", llvm.PTR)
            code.call(llvm.VOID, "@flb_drop", code.named(f"{slot.text}.last", "load", llvm.PTR, slot), LIMBO)
        code.call(llvm.VOID, "@flb_flush", LIMBO, e.freeing)
        code.call(llvm.VOID, "@flb_end", LIMBO, e.freeing)
    if (CHAIN, llvm.PTR) in e.slots:
        chain = code.read(llvm.PTR, e.slots[CHAIN, llvm.PTR])
        code.call(llvm.VOID, "%container_end", chain)
    end = e.ended(code)
    if not part:
        code.do("ret", end)
    else:
        code.named("%before", "atomicrmw", llvm.I64, SHARED, end, flags="umax", attributes=" monotonic")
        code.do("ret", flags="void")
    return code.out


def _at(name: str) -> Instruction:
    return Instruction("", llvm.VOID, "label", (label(name),))


_HELPERS = """
define internal ptr @flb_new(i64 %size, ptr %malloc) {
  %whole = add i64 %size, 64
  %p = call ptr %malloc(i64 %whole)
  %no = icmp eq ptr %p, null
  br i1 %no, label %end, label %yes
yes:
  store i64 1, ptr %p
  %waits = getelementptr i8, ptr %p, i64 16
  store i64 0, ptr %waits
  %small = getelementptr i8, ptr %p, i64 24
  store i64 0, ptr %small
  %data = getelementptr i8, ptr %p, i64 64
  br label %end
end:
  %r = phi ptr [ null, %0 ], [ %data, %yes ]
  ret ptr %r
}
define internal ptr @flb_small(ptr %limbo, ptr %malloc) {
  %list = getelementptr ptr, ptr %limbo, i64 1
  %spare = load ptr, ptr %list
  %none = icmp eq ptr %spare, null
  br i1 %none, label %fresh, label %again
again:
  %link = getelementptr i8, ptr %spare, i64 8
  %next = load ptr, ptr %link
  store ptr %next, ptr %list
  store i64 1, ptr %spare
  %taken = getelementptr i8, ptr %spare, i64 64
  br label %end
fresh:
  %made = call ptr @flb_new(i64 SMALL, ptr %malloc)
  %no = icmp eq ptr %made, null
  br i1 %no, label %end, label %yes
yes:
  %small = getelementptr i8, ptr %made, i64 -40
  store i64 1, ptr %small
  br label %end
end:
  %r = phi ptr [ %taken, %again ], [ null, %fresh ], [ %made, %yes ]
  ret ptr %r
}
define internal void @flb_end(ptr %limbo, ptr %free) {
  %list = getelementptr ptr, ptr %limbo, i64 1
  br label %head
head:
  %p = load ptr, ptr %list
  %no = icmp eq ptr %p, null
  br i1 %no, label %end, label %yes
yes:
  %link = getelementptr i8, ptr %p, i64 8
  %next = load ptr, ptr %link
  store ptr %next, ptr %list
  call void %free(ptr %p)
  br label %head
end:
  ret void
}
define internal void @flb_keep(ptr %data) {
  %no = icmp eq ptr %data, null
  br i1 %no, label %end, label %yes
yes:
  %p = getelementptr i8, ptr %data, i64 -64
  %n = load i64, ptr %p
  %m = add i64 %n, 1
  store i64 %m, ptr %p
  br label %end
end:
  ret void
}
define internal void @flb_drop(ptr %data, ptr %limbo) {
  %no = icmp eq ptr %data, null
  br i1 %no, label %end, label %yes
yes:
  %p = getelementptr i8, ptr %data, i64 -64
  %n = load i64, ptr %p
  %m = sub i64 %n, 1
  store i64 %m, ptr %p
  %last = icmp eq i64 %m, 0
  br i1 %last, label %dead, label %end
dead:
  %waits = getelementptr i8, ptr %p, i64 16
  %w = load i64, ptr %waits
  %known = icmp ne i64 %w, 0
  br i1 %known, label %end, label %enter
enter:
  store i64 1, ptr %waits
  %next = load ptr, ptr %limbo
  %link = getelementptr i8, ptr %p, i64 8
  store ptr %next, ptr %link
  store ptr %p, ptr %limbo
  br label %end
end:
  ret void
}
define internal void @flb_flush(ptr %limbo, ptr %free) {
  br label %head
head:
  %p = load ptr, ptr %limbo
  %no = icmp eq ptr %p, null
  br i1 %no, label %end, label %yes
yes:
  %link = getelementptr i8, ptr %p, i64 8
  %next = load ptr, ptr %link
  store ptr %next, ptr %limbo
  %waits = getelementptr i8, ptr %p, i64 16
  store i64 0, ptr %waits
  %n = load i64, ptr %p
  %dead = icmp eq i64 %n, 0
  br i1 %dead, label %gone, label %head
gone:
  %small = getelementptr i8, ptr %p, i64 24
  %class = load i64, ptr %small
  %is = icmp eq i64 %class, 1
  br i1 %is, label %spare, label %other
spare:
  %list = getelementptr ptr, ptr %limbo, i64 1
  %before = load ptr, ptr %list
  store ptr %before, ptr %link
  store ptr %p, ptr %list
  br label %head
other:
  call void %free(ptr %p)
  br label %head
end:
  ret void
}""".replace("SMALL", str(SMALL_BUFFER))
