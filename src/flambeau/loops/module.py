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
from . import turn_products
from .arguments import DATA, GIVEN, META, NULL, OUT, RUNTIME
from .containers import CHAIN
from .containers.array_items import OWNERS
from .emitter import BUFFER_FUNCTIONS, CLEANUP, CODE, LIMBO, SCOPES, SHARED, Emitter
from .numbers import wrapping
from .threads.inner import InnerLoop
from .threads.spreading import ERRORS, SLOTS, WHOLE, Spread, blocks, field, functions, turns

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
    if not inner:
        # Whether turns of loops within are run by blocks is found out by the clock, and results mustn't depend on that.
        turn_products.complete(e, given.shapes, given.written)
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
        *([BUFFER_FUNCTIONS] if e.helpers else []),
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
