"""Turns of a loop on several threads: the functions around its text.

The turns of the outermost loop are cut into blocks (``KERNEL.blocks`` runs some), each of which is the loop's text for a part of the turns
(``KERNEL.turns``) with results of its own. The runtime's ``spread`` gives blocks to the thread pool once they have been seen to take long enough;
``KERNEL.fold`` combines the results of the blocks in their order (:mod:`.recurrences`). How many turns a block has follows from their number alone,
so results don't depend on the threads. Sums of floats are taken turn by turn, as they are written: a block is one turn then, which adds once.
"""

from __future__ import annotations

import numpy as np

from ...base.records import slotted
from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.code import Code, Names
from ...inductor.assembly.instructions import Function, Instruction, Operand, constant, integer, label
from ..arguments import DATA, GIVEN, INTS, META, OUT, RUNTIME
from ..emitter import SHARED
from ..values import register_type
from .recurrences import Kind, Recurrence

__all__ = ["Folded", "Spread", "Turns", "blocks", "field", "functions", "identity", "turns"]

BLOCKS = 64  # that the turns are cut into
TABLE, PARTIAL = Operand("%table", llvm.PTR), Operand("%partial", llvm.PTR)
ENDED, SIZE, COUNT, PARTIALS, ERRORS, SLOTS = range(
    len(GIVEN), len(GIVEN) + 6
)  # fields of the table behind the arguments
WHOLE = Operand("%whole", llvm.PTR)  # the kernel's own ``%out``, behind whose results the numbers of errors lie
BEGIN, END = Operand("%turns.begin", llvm.I64), Operand("%turns.end", llvm.I64)
NUMPYS, PYTHONS, KEPT, UNKNOWN = range(4)  # see arithmetic.py


@slotted
class Folded:
    """A result: its place among the results of a block (a complex one has two, and whose number it is is a further one where ``weak`` is None), and
    how it is combined."""

    place: int
    name: str
    dtype: np.dtype
    weak: bool | None
    rule: Recurrence


@slotted
class Turns:
    """Where the kernel finds the number of turns: of a range, where its ends are among the integers; of arrays, where ``meta`` has their lengths."""

    ends: tuple[int, int] | None = None
    step: int = 1
    lengths: list[int] | None = None

    def count(self, code: Code) -> Operand:
        if self.ends is None:
            assert self.lengths
            first, *rest = (_argument(code, META, n, f"length{k}") for k, n in enumerate(self.lengths))
            for n in rest:
                first = code.intrinsic("smin", first, n)
            return first
        start, stop = (_argument(code, INTS, n, name) for name, n in zip(("start", "stop"), self.ends))
        span = code.op("sub", *((stop, start) if self.step > 0 else (start, stop)))
        return code.op("sdiv", code.op("add", span, abs(self.step) - 1), abs(self.step))


@slotted
class Spread:
    """How the turns of the outermost loop are spread over threads. ``least``: turns of a block, at
    least; ``single``: each turn is a block. ``words``: places of a block's results; ``errors``: numbers of the errors of integers that grow too long
    and of memory that isn't there."""

    turns: Turns
    least: int
    single: bool
    words: int
    folded: list[Folded]
    too_long: int
    no_memory: int


def identity(dtype: np.dtype, kind: Kind) -> Operand:
    """What a part of the turns begins with, which changes nothing."""
    t = register_type(dtype)
    if kind is Kind.PRODUCT:
        return constant(t, 1)
    if dtype.kind == "c":
        zero = constant(t.element, -0.0)
        return Operand(f"<{zero!r}, {zero!r}>", t)
    return constant(t, -0.0 if dtype.kind == "f" else 0)


def functions(spread: Spread, body: list[Instruction]) -> list[Function]:
    """The kernel. ``body``: of the loop, for the turns from ``%turns.begin`` to ``%turns.end``, which gives its results to ``%out``."""
    made = [_kernel(spread), blocks("KERNEL", spread.words), turns("KERNEL", body)]
    return [*made, _fold(spread)] if spread.folded else made


def _field(code: Code, k: int, name: str) -> Operand:
    return code.named(f"%at.{name}", "getelementptr", llvm.PTR, TABLE, integer(k), flags="i64")


def field(code: Code, k: int, name: str, type=llvm.I64) -> Operand:
    """Read a field of the table."""
    return code.named(f"%{name}", "load", type, _field(code, k, name))


def _argument(code: Code, table: Operand, n: int, name: str, type=llvm.I64) -> Operand:
    flags = "ptr" if type is llvm.PTR else "i64"
    return code.named(
        f"%{name}", "load", type, code.named(f"%{name}.at", "getelementptr", llvm.PTR, table, integer(n), flags=flags)
    )


def shared(code: Code) -> Operand:
    """Where the number of an error lies, or -1, which ends all turns."""
    return code.named(SHARED.text, "getelementptr", llvm.PTR, TABLE, integer(ENDED), flags="i64")


def _kernel(spread: Spread) -> Function:
    """The arguments go into a table; the blocks are run, and their results combined."""
    code = Code(Names("k"), [])
    code.label(label("entry"))
    code.named(TABLE.text, "alloca", llvm.PTR, flags=f"[{len(GIVEN) + 4} x i64]")
    for k, p in enumerate(GIVEN):
        code.write(p, _field(code, k, p.text[1:]))
    error = shared(code)
    code.write(0, error)
    run = _argument(code, DATA, RUNTIME.index("spread"), "spread", llvm.PTR)
    count = spread.turns.count(code)
    cut = 1 if spread.single else code.op("sdiv", code.op("add", count, BLOCKS - 1), BLOCKS)
    size = integer(cut if spread.single else code.intrinsic("smax", cut, spread.least))
    blocks = code.op("sdiv", code.op("add", count, code.op("sub", size, 1)), size)
    code.write(size, _field(code, SIZE, "size"))
    code.write(count, _field(code, COUNT, "count"))
    partials = _partials(spread, code, blocks)
    code.write(partials, _field(code, PARTIALS, "partials"))
    code.call(llvm.VOID, run, Operand("@KERNEL.blocks", llvm.PTR), TABLE, blocks)
    ended = code.read(llvm.I64, error)
    if spread.folded:
        ended = _combined(spread, code, ended, partials, blocks)
        code.call(llvm.VOID, _argument(code, DATA, RUNTIME.index("free"), "free", llvm.PTR), partials)
    code.do("ret", ended)
    return Function("KERNEL", llvm.I64, GIVEN, code.out)


def _partials(spread: Spread, code: Code, blocks: Operand) -> Operand:
    """Memory for the blocks' results."""
    if not spread.folded:
        return OUT
    malloc = _argument(code, DATA, RUNTIME.index("malloc"), "malloc", llvm.PTR)
    made = code.call(llvm.PTR, malloc, code.op("mul", blocks, 8 * spread.words))
    none, some = label("none"), label("some")
    code.branch(code.cmp("eq", made, Operand("null", llvm.PTR)), none, some)
    code.label(none)
    code.do("ret", integer(spread.no_memory))
    code.label(some)
    return made


def _combined(spread: Spread, code: Code, ended: Operand, partials: Operand, blocks: Operand) -> Operand:
    """Combine the results of all blocks in ``%out``; the number of an error."""
    result = code.named("%result", "alloca", llvm.PTR, flags="i64")
    at = code.named("%block", "alloca", llvm.PTR, flags="i64")
    code.write(ended, result)
    code.write(1, at)
    first, turn, body, done = (label(name) for name in ("first", "turn", "combine", "done"))
    code.branch(code.cmp("eq", ended, 0), first, done)
    code.label(first)
    for k in range(spread.words):
        code.write(code.read(llvm.I64, code.place(llvm.I64, partials, k)), code.place(llvm.I64, OUT, k))
    code.jump(turn)
    code.label(turn)
    b = code.read(llvm.I64, at)
    code.branch(code.cmp("slt", b, blocks), body, done)
    code.label(body)
    code.write(code.op("add", b, 1), at)
    part = code.place(llvm.I64, partials, code.op("mul", b, spread.words))
    failed = code.call(llvm.I64, "@KERNEL.fold", OUT, part)
    code.write(failed, result)
    code.branch(code.cmp("eq", failed, 0), turn, done)
    code.label(done)
    return code.read(llvm.I64, result)


def blocks(name: str, words: int) -> Function:
    """Some of the blocks. ``words``: places of a block's results."""
    code = Code(Names("b"), [])
    begin, end = Operand("%begin", llvm.I64), Operand("%end", llvm.I64)
    code.label(label("entry"))
    size, count = field(code, SIZE, "size"), field(code, COUNT, "count")
    partials = field(code, PARTIALS, "partials", llvm.PTR)
    at = code.named("%block", "alloca", llvm.PTR, flags="i64")
    code.write(begin, at)
    turn, body, done = label("turn"), label("body"), label("done")
    code.jump(turn)
    code.label(turn)
    b = code.read(llvm.I64, at)
    code.branch(code.cmp("slt", b, end), body, done)
    code.label(body)
    following = code.op("add", b, 1)
    code.write(following, at)
    last = code.intrinsic("smin", code.op("mul", following, size), count)
    place = code.place(llvm.I64, partials, code.op("mul", b, words))
    code.call(llvm.VOID, f"@{name}.turns", TABLE, code.op("mul", b, size), last, place)
    code.jump(turn)
    code.label(done)
    code.do("ret", flags="void")
    return Function(f"{name}.blocks", llvm.VOID, (TABLE, begin, end), code.out, "internal")


def turns(name: str, body: list[Instruction]) -> Function:
    """The text, unless other turns have ended the loop."""
    code = Code(Names(), [])
    code.label(label("start"))
    ended = code.named("%ended", "load", llvm.I64, shared(code), flags="atomic", attributes=" monotonic, align 8")
    on = code.named("%on", "icmp", llvm.I1, ended, integer(0), flags="eq")
    stopped, entry = label("stopped"), label("entry")
    code.branch(on, entry, stopped)
    code.label(stopped)
    code.do("ret", flags="void")
    code.label(entry)
    for k, p in enumerate(GIVEN):
        if p is not OUT:
            field(code, k, p.text[1:], llvm.PTR)
    field(code, GIVEN.index(OUT), "whole", llvm.PTR)
    code.out += body
    out = Operand(OUT.text, llvm.PTR)
    return Function(f"{name}.turns", llvm.VOID, (TABLE, BEGIN, END, out), code.out, "internal")


# ---- results -------------------------------------------------------------------------------------------------------------
def _fold(spread: Spread) -> Function:
    """Combine the results of a block with those of the blocks before it; the number of an error."""
    code = Code(Names("f"), [])
    code.label(label("entry"))
    taken: dict[str, Operand] = {}  # extremum -> whether the block's is taken
    for f in sorted(spread.folded, key=lambda f: f.rule.kind is Kind.CHOSEN):
        _Fold(code, spread, f, taken).combine()
    code.do("ret", integer(0))
    return Function("KERNEL.fold", llvm.I64, (OUT, PARTIAL), code.out, "internal")


class _Fold:
    """The code that combines one result."""

    def __init__(self, code: Code, spread: Spread, f: Folded, taken: dict[str, Operand]):
        self.code, self.spread, self.f, self.taken = code, spread, f, taken
        self.parts = 2 if f.dtype.kind == "c" else 1
        self.type = register_type(f.dtype).element if self.parts == 2 else _in_memory(f.dtype)

    def pair(self, k: int, type) -> tuple[Operand, Operand]:
        """Those of the blocks before, and the block's."""
        return tuple(self.code.read(type, self.code.place(llvm.I64, p, self.f.place + k)) for p in (OUT, PARTIAL))

    def put(self, k: int, v: Operand) -> None:
        self.code.write(v, self.code.place(llvm.I64, OUT, self.f.place + k))

    def combine(self) -> None:
        kind = self.f.rule.kind
        if kind in (Kind.LAST, Kind.CHOSEN, Kind.CONSTANT) or kind in _EXTREMA:
            self.choose(self.condition())
            return
        for k in range(self.parts):
            a, b = self.pair(k, self.type)
            v = self.code.op(("f" if self.f.dtype.kind in "fc" else "") + _OPERATIONS[kind], a, b)
            if self.f.dtype.kind == "i" and self.f.weak is not False and kind is Kind.SUM:
                self.fits(a, b, v)
            self.put(k, v)
        if self.f.weak is None:
            self.put(self.parts, self.whose(*self.pair(self.parts, llvm.I8)))

    def fits(self, a: Operand, b: Operand, v: Operand) -> None:
        """Python's integers need more bits where the sum's sign is neither operand's."""
        code = self.code
        both = code.op("and", code.op("xor", a, v), code.op("xor", b, v))
        bad, on = code.names.label("bad"), code.names.label("on")
        code.branch(code.cmp("slt", both, 0), bad, on)
        code.label(bad)
        code.do("ret", integer(self.spread.too_long))
        code.label(on)

    def condition(self) -> Operand | None:
        """Whether the block's is taken; None: always."""
        code, rule = self.code, self.f.rule
        if rule.kind is Kind.CHOSEN:
            return self.taken[rule.of]
        if rule.kind is Kind.LAST:
            return None
        a, b = self.pair(0, self.type)
        if rule.kind is Kind.CONSTANT:
            return code.cmp("eq", b, int(rule.value))
        names = _EXTREMA[rule.kind]
        found = code.cmp(names["bui".index(self.f.dtype.kind)] if self.f.dtype.kind in "bui" else names[3], b, a)
        self.taken[self.f.name] = found
        return found

    def choose(self, taken: Operand | None) -> None:
        types = [self.type] * self.parts + ([llvm.I8] if self.f.weak is None else [])
        for k, t in enumerate(types):
            a, b = self.pair(k, t)
            self.put(k, b if taken is None else self.code.select(taken, b, a))

    def whose(self, a: Operand, b: Operand) -> Operand:
        """NumPy's number if one is, else Python's of this type, unless it isn't known."""
        code = self.code
        out: Operand = constant(llvm.I8, KEPT)
        for flag in (PYTHONS, UNKNOWN, NUMPYS):
            either = code.op("or", code.cmp("eq", a, flag), code.cmp("eq", b, flag))
            out = code.select(either, constant(llvm.I8, flag), out)
        return out


def _in_memory(dtype: np.dtype):
    return llvm.I8 if dtype.kind == "b" else register_type(dtype)


# Predicates of bools, unsigned and signed integers, and floats.
_EXTREMA = {Kind.LARGEST: ("ugt", "ugt", "sgt", "ogt"), Kind.SMALLEST: ("ult", "ult", "slt", "olt")}
_OPERATIONS = {Kind.SUM: "add", Kind.PRODUCT: "mul", Kind.AND: "and", Kind.OR: "or", Kind.XOR: "xor"}
