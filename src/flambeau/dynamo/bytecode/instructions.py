"""Bytecode as the executor reads it: normal instructions (:mod:`versions`), jumps resolved to indices, exception-table cover, liveness of
locals.

What only serves the interpreter is taken away: a for loop's end behind FOR_ITER's target, ``END_SEND``, the handlers that since 3.12 cover
a generator as a whole (StopIteration becomes RuntimeError) and each ``yield from`` (CLEANUP_THROW)."""

from __future__ import annotations

import dis
import itertools
import types
import weakref

from flambeau.base.records import slotted
from flambeau.base.weak import remembered

from .versions import ASKS, FOR_END, JUMPS, normal

__all__ = ["Inst", "Lasti", "decode", "in_loop", "live_locals"]

NO_FALLTHROUGH = frozenset(
    {"RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}
)
_READS_CONSTANT = frozenset(dis.hasconst)


class Lasti(int):
    """The place of an instruction as the interpreter pushes it for RERAISE, in code units; ``index`` is the instruction's number in the
    original code."""

    def __new__(cls, place: int, index: int):
        self = super().__new__(cls, place)
        self.index = index
        return self


class Inst:
    """One normal instruction; ``opname`` and ``opcode`` are those of the real one it is (part of). ``target``: index of the jump target;
    ``handler``: index of the exception handler covering it, or None."""

    __slots__ = (
        "arg",
        "argval",
        "depth",
        "handler",
        "index",
        "lasti",
        "line",
        "name",
        "offset",
        "opcode",
        "opname",
        "positions",
        "target",
    )

    def __init__(self, i: dis.Instruction, part: tuple, index: int, line: int):
        self.opcode, self.opname = i.opcode, i.opname
        self.name, self.arg, self.argval = part
        self.offset, self.index, self.line, self.positions = i.offset, index, line, i.positions
        self.target: int | None = None
        self.handler: int | None = None
        self.depth, self.lasti = 0, False  # of the handler: stack depth to cut to, whether it wants the raising offset

    def __repr__(self):
        return f"{self.index}: {self.name} {self.argval!r} (line {self.line})"


@slotted
class Shown:
    """How logs and reports call a code object, whose own name is that of the function it continues. ``line``: of the graph break behind which it
    goes on."""

    name: str
    line: int | None = None


_shown: dict[int, tuple[weakref.ref, Shown]] = {}


def show_as(code: types.CodeType, shown: Shown) -> None:
    key = id(code)
    _shown[key] = (weakref.ref(code, lambda _: _shown.pop(key, None)), shown)


def shown_as(code: types.CodeType) -> Shown:
    found = _shown.get(id(code))
    return Shown(code.co_name) if found is None else found[1]


def shown_name(code: types.CodeType) -> str:
    return shown_as(code).name


def _instructions(code: types.CodeType):
    """As ``dis`` gives them, which asks each constant for its ``repr``: constants of resume functions are objects of the program, whose code
    doesn't run here."""
    silent = code.replace(co_consts=(None,) * len(code.co_consts))
    for i in dis.get_instructions(silent):
        yield i._replace(argval=code.co_consts[i.arg]) if i.opcode in _READS_CONSTANT else i


@remembered
def decode(code: types.CodeType) -> tuple[Inst, ...]:
    """All instructions but CACHE and EXTENDED_ARG, in order, the parts of one as several."""
    insts: list[Inst] = []
    at: dict[int, int] = {}
    pending: list[int] = []  # offsets of EXTENDED_ARG prefixes: a jump may aim at the prefix
    line = code.co_firstlineno
    for i in _instructions(code):
        if i.positions is not None and i.positions.lineno is not None:
            line = i.positions.lineno
        if i.opname == "EXTENDED_ARG":
            pending.append(i.offset)
            continue
        for o in (*pending, i.offset):
            at[o] = len(insts)
        pending.clear()
        for part in normal(i):
            insts.append(Inst(i, part, len(insts), line))
    for i, after in itertools.pairwise(insts):
        if i.name == "TO_BOOL" and after.name in ASKS:
            i.name = "NOP"
    for i in insts:
        if i.opcode in JUMPS:
            i.target = at[i.argval]
            if FOR_END:
                behind = ("END_SEND",) if i.name == "SEND" else FOR_END if i.name == "FOR_ITER" else ()
                for k, name in enumerate(behind):
                    if insts[i.target + k].name != name:
                        raise NotImplementedError(f"{code.co_name}: {i.name} doesn't lead to {', '.join(behind)}")
                i.target += len(behind)
    table = [(e.start, e.end, at[e.target], e.depth, e.lasti) for e in dis._parse_exception_table(code)]
    for start, end, *handler in table:
        for i in insts:
            if start <= i.offset < end:
                i.handler, i.depth, i.lasti = handler
    for i in insts:
        while i.handler is not None and insts[i.handler].name in ("CLEANUP_THROW", "STOPITERATION_ERROR"):
            outer = insts[i.handler]
            i.handler, i.depth, i.lasti = outer.handler, outer.depth, outer.lasti
    return tuple(insts)


def successors(i: Inst) -> list[int]:
    out = [] if i.name in NO_FALLTHROUGH else [i.index + 1]
    if i.target is not None:
        out.append(i.target)
    if i.handler is not None:
        out.append(i.handler)
    return out


@remembered
def _liveness(code: types.CodeType) -> tuple[frozenset[str], ...]:
    insts = decode(code)
    live: list[set[str]] = [set() for _ in insts]
    changed = True
    while changed:
        changed = False
        for i in reversed(insts):
            out: set[str] = set()
            for s in successors(i):
                if s < len(insts):
                    out |= live[s]
            if i.name == "STORE_FAST":
                if i.handler is None:  # inside a try the old value may still be seen by the handler
                    out.discard(i.argval)
            elif i.name in ("LOAD_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
                out.add(i.argval)
            if out != live[i.index]:
                live[i.index] = out
                changed = True
    return tuple(map(frozenset, live))


def live_locals(code: types.CodeType, index: int) -> frozenset[str]:
    """Names of fast locals that may be read at or after instruction ``index``."""
    return _liveness(code)[index]


def in_loop(code: types.CodeType, index: int) -> bool:
    """Whether a backward jump encloses instruction ``index``."""
    return any(i.target is not None and i.target <= index <= i.index for i in decode(code))
