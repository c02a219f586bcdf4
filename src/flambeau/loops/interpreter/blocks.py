"""The blocks of a region, run on types until these are stable, and then to write their code."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand
from ..containers import Changed, Containers
from ..emitter import EXIT, Emitter, block_label, turn_label
from ..inlining import Inlining
from ..instructions import Attributes, Building, Calls, Jumps, KnownFunctions, Loading, Operators, Subscripts
from ..iteration import Iteration
from ..machine import BlockEnd, Edge, InterpreterPart, Machine
from ..numbers import conversions
from ..operands import Inputs, Operands, OverItems, OverRange
from ..region import LoopRegion, leads_to
from ..threads.recurrences import recurrence_of
from ..turns import masked_vectors
from ..turns.bit_loops import bit_loop
from ..values import Call, Declined, Empty, Scalar, ScalarType, State, type_of, unrelated, with_relations

__all__ = ["Interpreter"]


_IGNORED = {"RESUME", "NOP", "PRECALL", "CACHE", "EXTENDED_ARG", "COPY_FREE_VARS", "MAKE_CELL"}


class Interpreter:
    """``fast``, ``spread``, ``recorded``: see :func:`compile_region`. ``own_cells``: variables of inner functions that only the loop assigns and
    reads."""

    def __init__(
        self,
        insts,
        region: LoopRegion,
        inputs: Inputs,
        names: set[str],
        live: Callable[[int], frozenset[str]],
        fast: bool,
        spread: bool,
        recorded: bool,
        reordered: bool,
        own_cells: frozenset[str],
    ):
        self.region, self.inputs, self.names = region, inputs, names
        self.reordered = reordered or fast
        self.fast, self.spread, self.recorded = fast, spread, recorded
        self.own_cells = own_cells
        self.live_out = live(region.exit) if region.exit is not None else frozenset()
        # Variables whose values are of use in other turns, or later.
        self.carried = region.assigned(insts) & live(region.header)
        self.recurrences = {
            name: rule
            for name in sorted(self.carried)
            if (rule := recurrence_of(name, insts, region, live, inputs.load_global)) is not None
        }
        self.index = _index_of(insts, region, inputs.trip)
        self.sizes: dict[Operand, tuple[int, int]] = {}
        self.machine = Machine(list(insts), region, Emitter(self.sizes))
        self.operands = Operands(self.machine, self.sizes)
        self.containers = Containers(self.machine, inputs.rerunnable)
        self.iteration = Iteration(self.machine, self.operands, inputs.trip, self.index, self.containers)
        self.variables = self.iteration.variables
        self.inlining = inlining = Inlining(self.machine, self.operands, self.variables, inputs)
        self.iteration.here = lambda: getattr(inlining.here, "code", None)
        machine, operands, variables, containers = self.machine, self.operands, self.variables, self.containers
        subscripts = Subscripts(machine, variables, inlining, containers)
        operators = Operators(machine, inlining, containers, subscripts)
        functions = KnownFunctions(machine, operands, variables, containers, inputs.rerunnable, inputs.tells_wrapping)
        self.parts: list[InterpreterPart] = [
            Loading(machine, operands, variables, inlining, own_cells),
            Building(machine, variables, containers),
            operators,
            subscripts,
            Attributes(machine, operands, inputs.attribute),
            Jumps(machine, variables, operators),
            Calls(machine, variables, inlining, containers, functions),
            inlining,
            self.iteration,
        ]
        self.handlers: dict[str, Callable] = {}
        for part in self.parts:
            self.handlers.update(part.instructions())
        self.closed_loops: set[int] = set()  # instructions of loops that are no loops in the text
        self.states: dict[int, State] = {}
        self.joins: dict[int, int] = {}  # how often paths met at a block
        self.ways: dict[int, set[int | None]] = {}  # blocks -> those that follow
        self.size = len(self.machine.insts)  # instructions of the function itself
        self.live = live
        self.left = False  # whether the loop is left but at its end
        self.final = False

    @property
    def e(self) -> Emitter:
        return self.machine.e

    # ---- blocks --------------------------------------------------------------------------------------------------------
    def types_until_stable(self) -> None:
        todo: list[int] = []
        self.variables.begin({})
        for target, state in self.iteration.start(self.names, self.inputs.local):
            self.meet(target, state, todo)
        rounds = 0
        while todo:
            rounds += 1
            if rounds > 50 * (len(self.region.blocks) + 1):
                raise Declined("types don't settle")
            at = min(todo)  # a loop settles before what follows it
            todo.remove(at)
            with contextlib.suppress(Empty):
                for target, state in self.block(at):
                    self.meet(target, state, todo)
            again = self.inlining.recursion.again
            todo += sorted(b for b in again if b in self.states and b not in todo)
            again.clear()

    def types_of_items(self) -> None:
        """Types of the region, run again where more has become known of what containers hold."""
        while True:
            try:
                return self.types_until_stable()
            except Changed:
                self.machine.stack = []
                self.states, self.joins, self.ways = {}, {}, {}

    def meet(self, target: int, state: State, todo: list) -> None:
        known = self.states.get(target)
        if known == state:
            return
        few = self.joins.get(target, 0) < 8
        thresholds = tuple(self.operands.thresholds) if few else ()
        new = state if known is None else known.joined(state, thresholds, self.perhaps(target))
        if new != known:
            self.joins[target] = self.joins.get(target, 0) + 1
            self.states[target] = new
            if target != self.region.exit and target not in todo:
                todo.append(target)

    def perhaps(self, target: int | None) -> frozenset[str]:
        """Variables that are read at ``target`` or later, and may have no value there."""
        if target is None:
            return frozenset()
        if target >= self.size:
            return self.inlining.read_at(target)
        return self.live(target) & self.variables.unset()

    def block(self, at: int) -> list[tuple[int, State]]:
        """Run one block; the edges out of it. In the final run the code is written, conversions on the edges included."""
        e, variables, insts = self.e, self.variables, self.machine.insts
        state = self.states[at]
        if self.final:
            e.label(block_label(at))
        variables.begin(state.locals)
        for part in self.parts:
            part.begin_block()
        self.machine.stack = [variables.fetch(f"stack{k}", t) for k, t in enumerate(state.stack)]
        last = insts[self.region.blocks[at] - 1]
        if last.name == "RAISE_VARARGS":
            return self.raises(last)
        end = self.run(at)
        labels = list(end.labels)
        if end.test is not None:
            labels = [e.new_label() for _ in end.edges]
            if self.final:
                e.branch(end.test, *labels)
        out, related = [], variables.still_related
        for k, edge in enumerate(end.edges):
            target = self.canonical(edge.target)
            self.ways.setdefault(at, set()).add(target)
            # Behind a recursive call variables have the values of before the call.
            still = unrelated if edge.continued is not None else functools.partial(with_relations, change=related)
            self.left = self.left or (target == self.region.exit and at != self.region.header)
            known = {**variables.types, **edge.learnt} if edge.continued is None else edge.continued
            known, stack = {name: still(t) for name, t in known.items()}, tuple(still(type_of(v)) for v in edge.stack)
            out.append((target, State(known, stack)))
            if self.final:
                if labels and not (end.labels and k == 0):
                    e.label(labels[k])
                if edge.continued is not None:  # the last edges of a block
                    variables.begin(edge.continued)
                self.go_on(at, target, edge.stack)
        return out

    def run(self, at: int) -> BlockEnd:
        """Run the instructions of a block."""
        end, insts = self.region.blocks[at], self.machine.insts
        closed = self.closed(at)
        if closed is not None:
            return closed
        for i in range(at, end):
            inst = insts[i]
            self.machine.at = i
            if inst.name in _IGNORED:
                continue
            handler = self.handlers.get(inst.name)
            if handler is None:
                raise Declined(f"the instruction {inst.name} in line {inst.line}")
            ended = handler(inst)
            if ended is not None:
                return ended
        return BlockEnd([Edge(end, self.machine.stack)])

    def closed(self, at: int) -> BlockEnd | None:
        """All turns of a loop that is this block by itself, where they are known at once."""
        found = bit_loop(self.machine.insts, self.region, at)
        if found is None:
            return None
        self.machine.at = at
        values = {name: self.variables.read(name) for name in (found.bits, *found.sums) if name in self.variables.types}
        if len(values) <= len(found.sums) or not all(isinstance(v, Scalar) for v in values.values()):
            return None
        after = found.run(self.e, values)
        if after is None:
            return None
        for name, value in after.items():
            self.variables.write(name, value)
        self.closed_loops.update(range(at, found.exit))
        return BlockEnd([Edge(found.exit, self.machine.stack)])

    def go_on(self, at: int, target: int, stack: list) -> None:
        """Write the edge from block ``at``: what lies there in another type is converted."""
        e, want = self.e, self.states[target]
        for name, t in want.locals.items():
            self.variables.convert(name, self.variables.types.get(name), t)
        for d, (value, t) in enumerate(zip(stack, want.stack)):
            if isinstance(t, ScalarType) and value.dtype != t.dtype:
                value = conversions.met(e, value, t.dtype)
            self.variables.keep(f"stack{d}", value)
        back = target is not None and target <= at and self.machine.insts[target].name == "FOR_ITER"
        if back and target != self.region.exit:
            e.jump(turn_label(target), masked_vectors.told(e, turn_label(target)))
            return
        e.jump(EXIT if target == self.region.exit else block_label(target))

    def raises(self, inst) -> list:
        """A block that ends with ``raise``. What it does before doesn't matter, since all is undone and Python does it."""
        if not self.inputs.rerunnable:
            raise Declined("raise in a loop, after something that can't be done twice")
        self.machine.at = inst.index
        self.e.check(llvm.constant(llvm.I1, False), "RuntimeError", f"raise in line {inst.line} of a compiled loop")
        self.e.do("unreachable")
        return []

    def canonical(self, target: int) -> int:
        if target in self.region.blocks or self.region.exit is None:
            return target
        return self.region.exit if leads_to(self.machine.insts, target, self.region.exit) else target

    def index_of(self, region: LoopRegion) -> str | None:
        """The variable that only the range of a loop within assigns."""
        return _index_of(self.machine.insts, region, ())


def _index_of(insts, region: LoopRegion, trip: OverRange | OverItems | None) -> str | None:
    """The variable that tells the turn of the outermost loop: that which only its range assigns, or the number of an enumerate() from 0."""
    if trip is None:
        return None
    at = region.header + 1
    if isinstance(trip, OverItems):
        item = trip.of
        if not (isinstance(item, Call) and item.function is enumerate and item.arguments[1].const == 0):
            return None
        if insts[at].name != "UNPACK_SEQUENCE":
            return None
        at += 1
    first = insts[at]
    stores = [
        i for a, b in region.blocks.items() for i in insts[a:b] if i.name == "STORE_FAST" and i.argval == first.argval
    ]
    return first.argval if first.name == "STORE_FAST" and stores == [first] else None
