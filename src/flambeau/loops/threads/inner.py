"""Loops within a loop whose turns are spread over threads, where those of the loop around them have to be taken in order.

Such a loop over a range is written once more, as a function for a part of its turns (``KERNEL.innerN.turns``), by the abstract run of its own blocks.
The function has slots of its own, which begin as copies of the kernel's; a table holds their addresses beside the kernel's arguments. Where the
kernel comes to the loop and there may be much to do, it asks the runtime to run the blocks of turns. Where that has been done, it goes on behind the
loop: its counter stands at the end. Otherwise, as where turns have been seen to be short, they are run in their place, as LLVM has them there. The
condition is that of outermost loops (:mod:`..interpreter`), and that no variable which the loop assigns is of use in other turns, or later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...base.records import slotted
from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand, Type, aggregate, integer
from ..arguments import GIVEN
from ..emitter import CLEANUP, CODE, EXIT, Emitter, block_label, turn_label
from ..region import LoopRegion
from ..turns.jamming import TURNS, jam
from ..values import Iterator
from .spreading import BEGIN, BLOCKS, COUNT, END, ENDED, ERRORS, PARTIALS, SIZE, SLOTS

if TYPE_CHECKING:
    from ..interpreter import Interpreter

__all__ = ["InnerLoop", "call", "found", "jam_within"]

WORTH = 20_000  # instructions that are worth asking the runtime
MUCH = 400_000  # and of which the runtime sees at once how long they take
# What the runtime keeps of a loop (FlbLoopSeen, csrc/runtime/loop.h), in words: when it is asked again, and how many there are.
AGAIN, SEEN = 1, 3
FEW = 8  # turns that aren't worth it
NESTED = 24  # turns that a loop in the loop is taken to have
MANY = 1 << 16  # that are more than it will have, so that nothing is known of it


@slotted(frozen=False)
class InnerLoop:
    """``e``: its text. ``copied``: the kernel's variables that it begins with. ``work``: instructions of a turn, about. ``jammed``: whether it
    takes several turns at once, see :mod:`..turns.jamming`."""

    header: int
    e: Emitter
    copied: list[tuple[str, Type]]
    work: int
    jammed: bool

    @property
    def name(self) -> str:
        return f"KERNEL.inner{self.header}"


def found(run: Interpreter, live: Callable[[int], frozenset[str]]) -> dict[int, InnerLoop]:
    """Loops within that are spread, by their headers; of nested ones the outermost."""
    out: dict[int, InnerLoop] = {}
    insts, covered = run.machine.insts, -1
    if run.operands.drawn or not run.inputs.rerunnable or run.region.exit is None:
        return out
    for at in sorted(run.states):
        if at <= max(covered, run.region.header) or at >= run.size or insts[at].name != "FOR_ITER":
            continue
        made = _Candidate(run, at, live).made()
        if made is not None:
            out[at] = made
            covered = insts[at].target - 1
    return out


def jam_within(run: Interpreter, live: Callable[[int], frozenset[str]]) -> None:
    """Take several turns at a time of loops within, of which the text is written, where they are suitable: of nested ones the outermost."""
    insts, covered = run.machine.insts, -1
    if run.operands.drawn or run.containers.sites or run.inlining.recursion.frames or run.own_cells:
        return
    for at in sorted(run.states):
        if at <= max(covered, run.region.header) or at >= run.size or insts[at].name != "FOR_ITER":
            continue
        it = _Candidate(run, at, live).turns_apart()
        if it is not None and jam(run.e, at, run.e.slot(f"{it.key}.cur", llvm.I64)):
            covered = insts[at].target - 1


class _Candidate:
    def __init__(self, run: Interpreter, header: int, live: Callable[[int], frozenset[str]]):
        self.run, self.header, self.live = run, header, live
        self.end = run.canonical(run.machine.insts[header].target)

    def turns_apart(self) -> Iterator | None:
        """The range of the loop, where it goes up by 1 and its turns have nothing to do with each other."""
        found = self.independent()
        return found[0] if found is not None and found[0].step == 1 else None

    def independent(self) -> tuple[Iterator, set[int], Emitter] | None:
        """The range of the loop, its blocks and its text, where its turns have nothing to do with each other."""
        run = self.run
        state = run.states[self.header]
        it = state.stack[-1] if state.stack else None
        if not isinstance(it, Iterator) or it.parts is not None:
            return None
        if it.bounds is not None and it.bounds[1] - it.bounds[0] < FEW * abs(it.step):
            return None
        blocks = self.blocks()
        if blocks is None or not self.apart(blocks):
            return None
        region = LoopRegion(self.header, self.end, {at: run.region.blocks[at] for at in blocks})
        index = run.index_of(region)
        if index is None:
            return None
        e, written = self.written(it, sorted(blocks), index)
        own = written and all(e.touched.get(n) for n in written)
        return (it, blocks, e) if own and not e.helpers and not e.leaves_to_python else None

    def made(self) -> InnerLoop | None:
        run, found = self.run, self.independent()
        if found is None:
            return None
        it, blocks, e = found
        work = len(e.out) * self.turns_within(blocks, e)
        copied = [key for key in e.slots if key in run.e.slots and key[0][0] != "@"]
        jammed = it.step == 1 and jam(e, self.header, e.slot(f"{it.key}.cur", llvm.I64))
        return InnerLoop(self.header, e, copied, work, jammed)

    def turns_within(self, blocks: set[int], e: Emitter) -> int:
        """Of the longest loop in the loop, about; 1 where there is none."""
        insts, states = self.run.machine.insts, self.run.states
        headers = [at for at in blocks if at < self.run.size and insts[at].name == "FOR_ITER" and at != self.header]
        most = [it.most if isinstance(it := states[at].stack[-1], Iterator) else MANY for at in headers]
        within = [n if n < MANY else NESTED for n in most]
        return max(1, *within, NESTED if e.element_loops else 1)

    def blocks(self) -> set[int] | None:
        """Those of the loop; None where it is left but at its end."""
        behind = self.run.machine.insts[self.header].target
        run, todo, inside = self.run, [self.header], {self.header}
        while todo:
            at = todo.pop()
            for target in run.ways.get(at, ()):
                if target == self.end:
                    if at != self.header:
                        return None
                elif target == run.region.exit or (target < run.size and not self.header <= target < behind):
                    return None
                elif target not in inside:
                    inside.add(target)
                    todo.append(target)
        return inside

    def apart(self, blocks: set[int]) -> bool:
        """Whether what it assigns is of no use elsewhere."""
        insts = self.run.machine.insts
        assigned = {
            i.argval
            for at in blocks
            if at < self.run.size
            for i in insts[at : self.run.region.blocks[at]]
            if i.name == "STORE_FAST"
        }
        return not assigned & (self.live(self.header + 1) | self.live(self.end))

    def written(self, it: Iterator, blocks: list[int], index: str) -> tuple[Emitter, set[int]]:
        """Write the text; the operands that it writes."""
        run, before = self.run, (self.run.machine.e, self.run.operands.written, self.run.left)
        e = run.machine.e = Emitter(run.sizes, run.fast)
        e.errors, e.metadata, e.splits = before[0].errors, before[0].metadata, False
        run.operands.written = set()
        run.variables.index, run.variables.strange = index, True
        try:
            cur = e.get(f"{it.key}.cur", llvm.I64)
            first, last = (e.op("add", cur, e.op("mul", end, it.step)) for end in (BEGIN, END))
            e.set(f"{it.key}.cur", llvm.I64, first)
            e.set(f"{it.key}.stop", llvm.I64, last)
            run.iteration.strip(it, first)
            e.jump(block_label(self.header))
            for at in blocks:
                run.block(at)
            back = self.end is not None and self.end <= self.header and run.machine.insts[self.end].name == "FOR_ITER"
            e.label(EXIT if self.end == run.region.exit else turn_label(self.end) if back else block_label(self.end))
            e.jump(CLEANUP)
            return e, run.operands.written
        finally:
            mine = run.operands.written
            run.machine.e, run.operands.written, run.left = before
            run.operands.written |= mine
            run.variables.index, run.variables.strange = run.index, False


def call(e: Emitter, loop: InnerLoop, it: Iterator, start: Operand, stop: Operand) -> None:
    """Where there may be much to do, ask the runtime to run the loop's turns by blocks, and if it has, set its counter to the end."""
    step = abs(it.step)
    span = e.op("sub", stop, start) if it.step > 0 else e.op("sub", start, stop)
    count = e.op("sdiv", e.op("add", span, step - 1), step)
    some, many, ask, here, ran, on, failed, done = (e.new_label() for _ in range(8))
    table = e.slot(f"@{loop.name}", aggregate(f"[{SLOTS + len(loop.copied)} x i64]"))
    function = Operand(f"@{loop.name}.blocks", llvm.PTR)
    if loop.jammed:  # the function takes several turns at once: all but a few are its
        e.branch(e.cmp("sge", count, TURNS), some, on)
        e.label(some)
        blocks = _cut(e, loop, table, count)
    e.branch(e.cmp("sgt", count, max(WORTH // loop.work, 1)), many, here)
    e.label(many)
    seen = e.counters(f"@{loop.name}.seen", SEEN)
    turns = e.op("add", e.read(llvm.I64, seen), count)
    e.write(turns, seen)
    e.branch(e.cmp("sge", turns, e.read(llvm.I64, e.place(llvm.I64, seen, AGAIN))), ask, here)
    e.label(ask)
    if not loop.jammed:
        blocks = _cut(e, loop, table, count)
    much = integer(MUCH // loop.work)
    taken = e.call(llvm.I64, Operand("%spread_within", llvm.PTR), function, table, blocks, seen, integer(count), much)
    e.branch(e.cmp("ne", taken, 0), ran, here)
    e.label(here)
    if loop.jammed:
        e.call(llvm.VOID, function, table, integer(0), blocks)
        e.jump(ran)
    else:
        e.jump(on)
    e.label(ran)
    ended = e.read(llvm.I64, e.place(llvm.I64, table, ENDED))
    e.branch(e.cmp("eq", ended, 0), done, failed, ", !prof !0")
    e.label(failed)
    e.write(ended, CODE)
    e.jump(CLEANUP)
    e.label(done)
    e.set(f"{it.key}.cur", llvm.I64, stop)
    e.jump(on)
    e.label(on)


def _cut(e: Emitter, loop: InnerLoop, table: Operand, count: Operand) -> Operand:
    """Cut the turns into blocks, and write the table that these are run with; how many there are."""
    least = TURNS if loop.jammed else 1  # a block has a multiple of it
    size = e.op("mul", e.op("sdiv", e.op("add", count, BLOCKS * least - 1), BLOCKS * least), least)
    fields: dict[int, Operand] = {
        **dict(enumerate(GIVEN)), ENDED: integer(0), SIZE: size, COUNT: count, PARTIALS: Operand("%out", llvm.PTR),
        ERRORS: Operand("%errors", llvm.PTR),
        **{SLOTS + k: e.slot(*key) for k, key in enumerate(loop.copied)},
    }  # fmt: skip
    for k, v in fields.items():
        e.write(v, e.place(llvm.I64, table, k))
    return e.op("sdiv", e.op("add", count, e.op("sub", size, 1)), size)
