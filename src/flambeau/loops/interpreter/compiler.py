"""Writes the kernel of a region whose types are stable: once, and again where its turns, its rows or its inner loops are spread over threads."""

from __future__ import annotations

from collections.abc import Callable

from ...inductor.assembly import instructions as llvm
from ..emitter import Emitter, block_label, turn_label
from ..gradients.listing import ListEmitter
from ..gradients.tape import TapeEmitter
from ..module import KernelArguments, module
from ..operands import Inputs
from ..region import find, own_cells, with_locals
from ..threads import inner, row_blocks
from ..threads.inner import InnerLoop
from ..threads.spreading import Spread
from ..turns import quotients, turns_in_order
from ..values import COLLECTED, RETURNED, Declined, Empty, Iterator, State
from . import parallel_turns
from .blocks import Interpreter
from .compiled import Compiled
from .results import Results

__all__ = ["RegionCompiler", "compile_region"]


class RegionCompiler(Interpreter):
    """Each text is written by a run of its own of all blocks; ``left_behind``: what the last one leaves to the caller."""

    left_behind: Results

    def compile(self) -> Compiled:
        self.types_of_items()
        exit_state = self.states.get(self.region.exit)
        if exit_state is None:
            raise Declined("the loop never ends")
        if exit_state.stack:
            raise Declined("the loop ends with something on the stack")
        self.final, self.left = True, False
        self.iteration.alike = parallel_turns.lie_alike(self)
        self.write_text(exit_state)
        spread = parallel_turns.spread_of(self, self.left_behind.numbers) if self.spread else "parallel is False"
        within: dict[int, InnerLoop] = {}
        by_rows = row_blocks.found(self, self.left_behind) if self.spread and isinstance(spread, str) else None
        if by_rows is not None:
            spread = by_rows
            self.write_text(exit_state, rows=True)
            if getattr(self.inputs.trip, "step", 1) == 1:
                header = self.region.header
                turns_in_order.take_several(self.e, header, self.e.slot(f"it{header}.cur", llvm.I64))
        elif isinstance(spread, Spread):
            self.write_text(exit_state, True)
            inner.jam_within(self, self.live)
        elif self.spread and not (self.containers.sites or self.inlining.recursion.frames or self.own_cells):
            within = inner.found(self, self.live)
            if within:
                self.write_again(exit_state, within)
                spread = f"{spread}; those in {', '.join(self.lines(within))} on several"
        if not self.recorded:
            self.divide_together()
        given, kept = self.operands, self.left_behind
        shapes = [array.ndim for array in given.arrays]
        layout = KernelArguments(shapes, len(kept.fresh), frozenset(given.written), sorted(self.variables.owned))
        text = module(self.e, layout, spread if isinstance(spread, Spread) else None, list(within.values()))
        return Compiled(
            text,
            given.tokens, shapes, sorted(given.written), kept.fresh, kept.same, kept.tuples, kept.grown,
            frozenset(g.name for g in kept.grown if g.given and self.containers.sites[g.name].behind), kept.held,
            list(given.ints.values()), list(given.floats.values()), kept.numbers, self.e.errors, self.region.exit,
            exit_state.locals[RETURNED] if self.region.exit is None else None,
            [array.dtype for array in given.arrays],
            [[n if type(n) is int else -1 for n in what] for what in given.always],
            sorted(given.drawn.items()),
            None if isinstance(spread, Spread) else spread,
            self.listed(exit_state, layout) if self.recorded else "",
        )  # fmt: skip

    def divide_together(self) -> None:
        """Divisions of several turns at once, in loops whose turns have to be taken in order."""
        for at in sorted(self.region.blocks.keys() & self.states.keys()):
            it = self.states[at].stack[-1] if self.states[at].stack else None
            if (
                at < self.size
                and self.machine.insts[at].name == "FOR_ITER"
                and isinstance(it, Iterator)
                and it.step == 1
            ):
                quotients.divide_together(self.e, at, self.e.slot(f"{it.key}.cur", llvm.I64))

    def write_again(self, exit_state: State, within: dict[int, InnerLoop]) -> None:
        """The text with calls of the functions of loops within."""
        errors, metadata = self.e.errors, self.e.metadata
        self.iteration.parallel = within
        self.write_text(exit_state, shares=(errors, metadata))

    def lines(self, within: dict[int, InnerLoop]) -> list[str]:
        return [f"line {self.machine.insts[at].line}" for at in sorted(within)]

    def listed(self, exit_state: State, layout: KernelArguments) -> str:
        """The text once more, of a kernel that lists its operations."""
        self.write_text(exit_state, emitter=ListEmitter)
        return module(self.e, layout)

    def write_text(
        self,
        exit_state: State,
        turns: bool = False,
        emitter: type[Emitter] | None = None,
        shares: tuple | None = None,
        rows: bool = False,
    ) -> None:
        """The final run; ``turns``: for a part of the outermost loop's turns; ``rows``: for all turns of a part of the rows. ``shares``: errors and
        metadata that there are already."""
        self.machine.e = (emitter or (TapeEmitter if self.recorded else Emitter))(self.sizes, self.fast, turns)
        self.e.rows, self.e.splits = rows, not rows
        if shares is not None:
            self.e.errors, self.e.metadata = shares
        self.machine.stack = []
        self.variables.begin({})
        ((target, state),) = self.iteration.start(self.names, self.inputs.local)
        self.variables.enter(state.locals)
        for name, t in self.states[target].locals.items():
            self.variables.convert(name, state.locals.get(name), t)
        if turns:
            parallel_turns.begin_anew(self, self.states[target])
        for d, value in enumerate(self.iteration.pending):
            self.variables.keep(f"stack{d}", value)
        self.e.jump(turn_label(self.region.header) if self.iteration.alike else block_label(target))
        for at in sorted(self.region.blocks):
            if at in self.states:
                self.block(at)
        self.left_behind = Results(self)
        self.left_behind.write(exit_state)


def compile_region(
    insts,
    header: int,
    inputs: Inputs,
    live_out: Callable[[int], frozenset[str]],
    fast: bool = False,
    spread: bool = True,
    recorded: bool = False,
    reordered: bool = False,
) -> Compiled:
    """The loop that starts at instruction ``header`` as a kernel. ``live_out(i)``: variables that may be read at or after instruction i.
    ``fast``: sums may be taken in another order, products and sums contracted, divisions be products. ``spread``: turns that have nothing to do
    with each other may be spread over threads; ``reordered``: sums over turns may be taken in another order then. ``recorded``: the kernel notes
    what it does, see tape/. Declined when something in it isn't
    understood."""
    region = find(insts, header)
    cells = own_cells(insts, region)
    insts = with_locals(insts, cells)
    names = {
        name
        for start, end in region.blocks.items()
        for i in range(start, end)
        if insts[i].name in ("LOAD_FAST", "STORE_FAST")
        for name in (insts[i].argval,)
    }
    if inputs.collects:
        names.add(COLLECTED)
    run = RegionCompiler(
        insts, region, inputs, names, live_out, fast, spread and not recorded, recorded, reordered, cells
    )
    try:
        return run.compile()
    except (Declined, Empty) as reason:
        line = run.machine.insts[max(run.machine.at, header)].line
        raise reason if f"line {line}" in str(reason) else Declined(f"{reason} (line {line})") from None
