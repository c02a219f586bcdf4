"""Abstract interpretation of a loop's bytecode.

Each block is run on the types of its variables where control enters it; types of paths that meet are joined, until nothing changes. A last
run writes the code. A variable is a stack slot of the kernel (one for each type that it has anywhere); within a block its value is known
better than its type (constants, bounds).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.records import slotted
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand
from . import arrays, bindings, complexes, conversions, inner, row_blocks
from .arguments import NULL
from .bit_loops import bit_loop
from .bytecode import Instructions
from .calls import Calls
from .containers import Changed, Containers
from .emitter import CLEANUP, EXIT, I64, Emitter, block_label, constant, turn_label
from .inlining import Inlining
from .inner import InnerLoop
from .iteration import Iteration
from .listing import ListEmitter
from .machine import Machine
from .module import KernelArguments, module
from .operands import GivenArray, Inputs, Operands, OverItems, OverRange, Written
from .recurrences import Kind, Recurrence, recurrence_of
from .recursion import Continued
from .region import LoopRegion, find, leads_to, own_cells, with_locals
from .spreading import BEGIN, Folded, Spread, Turns, identity
from .tape import TapeEmitter
from .values import (
    CHARACTER,
    COLLECTED,
    CONFLICT,
    DONE,
    RETURNED,
    ArrayView,
    Call,
    ContainerType,
    Declined,
    Empty,
    Known,
    PerhapsType,
    Scalar,
    ScalarType,
    State,
    Symbolic,
    TupleType,
    ViewType,
    register_type,
    type_of,
)

__all__ = ["Compiled", "compile_region"]

LEAST = 8192  # instructions that a block of turns is worth
_IGNORED = {"RESUME", "NOP", "PRECALL", "CACHE", "EXTENDED_ARG", "COPY_FREE_VARS", "MAKE_CELL"}


@slotted
class Grown:
    """What a loop hands to Python as an object of its own: a list, dict, set or array (``kind``). ``given``: it stands for one that the loop was
    given."""

    name: str
    kind: str
    given: bool


@slotted(frozen=False)
class Compiled:
    """``text``: the kernel. ``arrays``: tokens of the operands; ``written``: which of them are written; ``fresh``: variables whose arrays
    are results, and the operand that tells the shape; ``same``: variables that are an operand after the loop; ``tuples``: those that are tuples of
    results, with their types; ``grown``: lists, dicts and sets that it changed or made, their kinds,
    and whether they were there before: a number for each follows the other results; ``behind``: those that have
    other items before these; ``held``: variables that hold those of other variables
    before the loop; ``ints`` and ``floats``: numbers read; ``dtypes``: of the arrays; ``sizes``: of
    each array, sizes that it always has, -1 for others; ``results``: (variable, dtype, whether it is Python's number, None where another
    result, an int8, tells), ``name.k`` for the items of a tuple; ``errors``: (type's name, text) by number - 1. ``drawn``: (operand that is a
    generator's table, whether its spare normal number matters). ``returned``: type of what the function returns, named RETURNED among the
    results, where the region ends with ``return``; else None. ``in_order``: why the turns run on one thread; None where they are spread over
    several. ``listed``: the kernel that lists what it does, for further derivatives, where ``text`` is one with a tape."""

    text: str
    arrays: list[Any]
    shapes: list[int]
    written: list[int]
    fresh: list[tuple[str, int]]
    same: list[tuple[str, int]]
    tuples: list[tuple[str, TupleType]]
    grown: list[Grown]
    behind: frozenset[str]
    held: list[tuple[str, str]]
    ints: list[Any]
    floats: list[Any]
    results: list[tuple[str, np.dtype, bool | None]]
    errors: list[tuple[str, str]]
    exit: int | None
    returned: Any
    dtypes: list[np.dtype]
    sizes: list[list[int]]
    drawn: list[tuple[int, bool]]
    in_order: str | None
    listed: str


class Interpreter:
    """``fast``, ``spread``, ``recorded``: see :func:`compile_region`."""

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
    ):
        self.region, self.inputs, self.names = region, inputs, names
        self.reordered = reordered or fast
        self.fast, self.spread, self.recorded = fast, spread, recorded
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
        calls = Calls(self.machine, self.operands, self.variables, inlining, inputs.rerunnable, self.containers)
        self.others = Instructions(
            self.machine, self.operands, self.variables, inlining, inputs.attribute, self.containers
        )
        self.handlers: dict[str, Callable] = {}
        for part in (self.others, calls, inlining, self.iteration):
            self.handlers.update(part.instructions())
        self.fresh: list[tuple[str, int]] = []
        self.made: list[tuple[str, ArrayView]] = []  # what these variables hold at the end
        self.same: list[tuple[str, int]] = []
        self.tuples: list[tuple[str, TupleType]] = []
        self.grown: list[Grown] = []
        self.held: list[tuple[str, str]] = []
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
            at = todo.pop()
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
        self.others.begin()
        self.machine.stack = [variables.fetch(f"stack{k}", t) for k, t in enumerate(state.stack)]
        last = insts[self.region.blocks[at] - 1]
        if last.name == "RAISE_VARARGS":
            return self.raises(last)
        test, ways = self.run(at)
        given = isinstance(test, tuple)  # labels that are branched to already: the first is where the code stands
        labels = list(test) if given else [e.new_label() for _ in ways] if test is not None else []
        if test is not None and self.final and not given:
            yes, no = labels
            e.branch(test, yes, no)
        out = []
        for k, (target, stack, *refined) in enumerate(ways):
            target = self.canonical(target)
            self.ways.setdefault(at, set()).add(target)
            self.left = self.left or (target == self.region.exit and at != self.region.header)
            continued = bool(refined) and isinstance(refined[0], Continued)
            known = refined[0].types if continued else {**variables.types, **refined[0]} if refined else variables.types
            out.append((target, State(dict(known), tuple(map(type_of, stack)))))
            if self.final:
                if labels and not (given and k == 0):
                    e.label(labels[k])
                if continued:  # the last edges of a block
                    variables.begin(known)
                self.go_on(at, target, stack)
        return out

    def run(self, at: int) -> tuple:
        """Run the instructions of a block: what is tested at its end, and the edges out of it (target, stack, types that are better known)."""
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
            edges = handler(inst)
            if edges is not None:
                return edges
        return None, [(end, self.machine.stack)]

    def closed(self, at: int) -> tuple | None:
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
        return None, [(found.exit, self.machine.stack)]

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
        e.jump(EXIT if target == self.region.exit else turn_label(target) if back else block_label(target))

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

    def compile(self) -> Compiled:
        self.types_of_items()
        exit_state = self.states.get(self.region.exit)
        if exit_state is None:
            raise Declined("the loop never ends")
        if exit_state.stack:
            raise Declined("the loop ends with something on the stack")
        self.final, self.left = True, False
        self.iteration.alike = self._lie_alike()
        results = self.write_text(exit_state)
        spread = self._spread(results) if self.spread else "parallel is False"
        within: dict[int, InnerLoop] = {}
        by_rows = row_blocks.found(self, results) if self.spread and isinstance(spread, str) else None
        if by_rows is not None:
            spread = by_rows
            self.write_text(exit_state, rows=True)
        elif isinstance(spread, Spread):
            self.write_text(exit_state, True)
        elif self.spread and not (self.containers.sites or self.inlining.recursion.frames or self.others.own_cells):
            within = inner.found(self, self.live)
            if within:
                self.write_again(exit_state, within)
                spread = f"{spread}; those in {', '.join(self.lines(within))} on several"
        given = self.operands
        shapes = [array.ndim for array in given.arrays]
        layout = KernelArguments(shapes, len(self.fresh), frozenset(given.written), sorted(self.variables.owned))
        text = module(self.e, layout, spread if isinstance(spread, Spread) else None, list(within.values()))
        return Compiled(
            text,
            given.tokens, shapes, sorted(given.written), self.fresh, self.same, self.tuples, self.grown,
            frozenset(g.name for g in self.grown if g.given and self.containers.sites[g.name].behind), self.held,
            list(given.ints.values()), list(given.floats.values()), results, self.e.errors, self.region.exit,
            exit_state.locals[RETURNED] if self.region.exit is None else None,
            [array.dtype for array in given.arrays],
            [[n if type(n) is int else -1 for n in what] for what in given.always],
            sorted(given.drawn.items()),
            None if isinstance(spread, Spread) else spread,
            self.listed(exit_state, layout) if self.recorded else "",
        )  # fmt: skip

    def write_again(self, exit_state: State, within: dict[int, InnerLoop]) -> None:
        """The text with calls of the functions of loops within."""
        errors, metadata = self.e.errors, self.e.metadata
        self.iteration.parallel = within
        for made in (self.fresh, self.made, self.same, self.tuples, self.grown, self.held):
            made.clear()
        self.write_text(exit_state, shares=(errors, metadata))

    def lines(self, within: dict[int, InnerLoop]) -> list[str]:
        return [f"line {self.machine.insts[at].line}" for at in sorted(within)]

    def index_of(self, region: LoopRegion) -> str | None:
        """The variable that only the range of a loop within assigns."""
        return _index_of(self.machine.insts, region, ())

    def listed(self, exit_state: State, layout: KernelArguments) -> str:
        """The text once more, of a kernel that lists its operations."""
        for made in (self.fresh, self.made, self.same, self.tuples, self.grown, self.held):
            made.clear()
        self.write_text(exit_state, emitter=ListEmitter)
        return module(self.e, layout)

    def write_text(
        self,
        exit_state: State,
        turns: bool = False,
        emitter: type[Emitter] | None = None,
        shares: tuple | None = None,
        rows: bool = False,
    ) -> list:
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
            self._begin_anew(self.states[target])
        for d, value in enumerate(self.iteration.pending):
            self.variables.keep(f"stack{d}", value)
        self.e.jump(turn_label(self.region.header) if self.iteration.alike else block_label(target))
        for at in sorted(self.region.blocks):
            if at in self.states:
                self.block(at)
        return self.results(exit_state)

    def _begin_anew(self, state: State) -> None:
        """What is summed begins anew in each part of the turns but the first one."""
        e = self.e
        whole = e.cmp("eq", BEGIN, 0)
        for name, rule in self.recurrences.items():
            if rule.kind in (Kind.SUM, Kind.PRODUCT, Kind.XOR):
                dtype = state.locals[name].dtype
                t = register_type(dtype)
                e.set(name, t, e.select(whole, e.get(name, t), identity(dtype, rule.kind)))

    def _spread(self, results) -> Spread | str:
        """How the turns of the outermost range are spread over threads, where each writes and reads elements of its own of the arrays that are
        written, and all else that is kept is combined from turn to turn (:mod:`recurrences`); else why not."""
        e = self.e
        reason = self._in_order()
        if reason is not None:
            return reason
        folded = self._folded(results)
        if isinstance(folded, str):
            return folded
        turns = self._turns()
        if turns is None:
            return "it is no loop over a range or over arrays"
        loops = self._loops_within()
        ordered = any(f.rule.kind in (Kind.SUM, Kind.PRODUCT) and f.dtype.kind in "fc" for f in folded)
        single = ordered and not self.reordered
        if single and not loops:
            return "its sums of floats are taken in the order of the turns, which are short"
        least = 1 if loops else max(LEAST // max(len(e.out), 1), 1)
        too_long, no_memory = (
            e.error("OverflowError", conversions.TOO_LONG) if folded else 0,
            e.error("MemoryError", "") if folded else 0,
        )
        return Spread(turns, least, single, e.results, folded, too_long, no_memory)

    def _turns(self) -> Turns | None:
        """Where the kernel finds the number of turns."""
        trip = self.inputs.trip
        if isinstance(trip, OverItems):
            lengths = self._lengths(trip.of)
            return lengths and Turns(lengths=lengths)
        ends = enumerate((trip.start, trip.stop))
        named = [f"symbol {id(n.token)}" if isinstance(n, Symbolic) else f"range {k}" for k, n in ends]
        first, last = (list(self.operands.ints).index(name) for name in named)
        return Turns((first, last), trip.step)

    def _lengths(self, item) -> list[int] | None:
        """Where the sizes of the arrays that a loop runs over lie among those of all operands; None for other things."""
        if isinstance(item, Written):
            item = item.codes
        if isinstance(item, GivenArray):
            n = self.operands.array(item.token).n
            return [sum(2 * array.ndim for array in self.operands.arrays[:n])]
        if not isinstance(item, Call) or item.function not in (enumerate, zip):
            return None
        inner = [self._lengths(i) for i in (item.arguments[:1] if item.function is enumerate else item.arguments)]
        return None if None in inner else [k for found in inner for k in found]

    def _in_order(self) -> str | None:
        """Why the turns have to be taken in order, but for variables that are carried."""
        written, e = self.operands.written, self.e
        if self.containers.sites:
            return "it has a list, dict or set that changes"
        if self.region.exit is None and self.inlining.recursion.frames:
            return "it is a recursive function"
        if self.inputs.trip is None or (self.index is None and not isinstance(self.inputs.trip, OverItems)):
            return "it is no loop over a range or arrays, or its variable is assigned in it too"
        shared = [n for n in sorted(written) if not e.touched.get(n)]
        if shared:
            names = [
                k
                for k, v in self.variables.initial.items()
                if isinstance(v, GivenArray) and self.operands.array(v.token).n in shared
            ]
            return f"turns may write and read the same elements of {', '.join(names) or 'an array'}"
        if not written and not self.recurrences:
            return "its turns write nothing"
        if self.fresh or self.same or self.tuples:
            return "an array or tuple that it makes is used later"
        if self.operands.drawn:
            return "it draws random numbers"
        if e.leaves_to_python:
            return "it calls NumPy"
        if self.others.own_cells:
            return "functions that it makes read variables that it assigns"
        if self.left or self.region.exit is None:
            return "it may be left before its end"
        if not self.iteration.alike:
            return "a variable changes its type in the first turn"
        if not self.inputs.rerunnable and any(kind != "MemoryError" for kind, _ in e.errors):
            return "something before it can't be done twice, should it end with an error"
        for name in sorted(self.carried):
            if isinstance(self._carried_type(name), PerhapsType):
                return f"{name} has no value before the first turn"
            rule = self.recurrences.get(name)
            if rule is None:
                return f"{name} goes from turn to turn"
            if rule.kind is not Kind.LAST and not isinstance(self._carried_type(name), ScalarType):
                return f"{name} goes from turn to turn, and is no number"
        return None

    def _carried_type(self, name: str):
        return self.states[self.region.header].locals.get(name)

    def _folded(self, results) -> list[Folded] | str:
        """How the results of parts of the turns are combined; or why they can't be."""
        out: list[Folded] = []
        at = 0
        for name, dtype, weak in results:
            if name == DONE:
                break
            rule = self.recurrences.get(name)
            if rule is None:
                return f"{name} is assigned in some turns only"
            reason = self._unfoldable(name, dtype, weak, rule)
            if reason:
                return f"{name} {reason}"
            out.append(Folded(at, name, dtype, weak, rule))
            at += (2 if dtype.kind == "c" else 1) + (weak is None)
        names = {f.name for f in out}
        if any(f.rule.kind is Kind.CHOSEN and f.rule.of not in names for f in out):
            return "an extremum whose place is wanted isn't used itself"
        return out

    def _unfoldable(self, name: str, dtype: np.dtype, weak: bool | None, rule: Recurrence) -> str | None:
        kind = rule.kind
        if kind is Kind.LAST:
            return None
        carried = self._carried_type(name)
        if carried.dtype != dtype:
            return "changes its type"
        if kind in (Kind.SUM, Kind.PRODUCT):
            if dtype.kind == "b" or (
                kind is Kind.PRODUCT and (dtype.kind == "c" or (dtype.kind == "i" and weak is not False))
            ):
                return "is a product of Python's integers, or of complex numbers"
            if dtype.kind in "fc" and not (rule.once or self.reordered):
                return "is a sum of floats, which is taken in its order (fastmath or parallel=True allows another one)"
        if kind in (Kind.LARGEST, Kind.SMALLEST) and (dtype.kind == "c" or not (rule.strict or dtype.kind in "iu")):
            return "is an extremum of which the last of equals is taken"
        if kind in (Kind.AND, Kind.OR, Kind.XOR) and dtype.kind not in "bui":
            return "is no integer"
        if kind is Kind.CONSTANT and (weak is not True or dtype.kind not in "bi"):
            return "may be NumPy's or Python's"
        return None

    def _loops_within(self) -> bool:
        """Whether a turn has loops of its own."""
        return bool(self.e.element_loops) or self.has_loops_of_turns()

    def has_loops_of_turns(self) -> bool:
        """Whether a turn has loops of its own in the bytecode."""
        region, insts = self.region, self.machine.insts
        places = [k for start, end in region.blocks.items() for k in range(start, end)]
        inside = [insts[k] for k in places if k not in self.closed_loops]
        return any(
            (i.name == "FOR_ITER" and i.index != region.header)
            or (i.target is not None and region.header < i.target < i.index)
            for i in inside
        )

    def _lie_alike(self) -> bool:
        """Whether nothing has to be converted between FOR_ITER, where the loop is over a range or an array, and what follows it."""
        header = self.region.header
        before, after = self.states.get(header), self.states.get(header + 1)
        if self.inputs.trip is None or before is None or after is None:
            return False

        def alike(a, b) -> bool:
            return a == b or (isinstance(a, ScalarType) and isinstance(b, ScalarType) and a.dtype == b.dtype)

        return all(t is CONFLICT or alike(before.locals.get(name), t) for name, t in after.locals.items())

    def results(self, state: State) -> list[tuple[str, np.dtype, bool | None]]:
        self.e.label(EXIT)
        self.variables.begin(state.locals)
        if self.region.exit is None:
            names = [RETURNED]
        else:
            names = sorted(self.live_out & self.region.assigned(self.machine.insts))
        out: list[tuple[str, np.dtype, bool | None]] = []
        self.made_containers: list[tuple[str, ContainerType]] = []
        self.made_arrays: list[tuple[str, ArrayView]] = []
        for name in names:
            self.result(name, state.locals.get(name), out)
        changed = [c for _, c in self.containers.changed(self.variables.given_containers())]
        self.apart(changed)
        inner = [self.containers.reached(c.sites) for c in (*changed, *(t for _, t in self.made_containers))]
        if sum(map(len, inner)) > len(frozenset().union(*inner)):
            raise Declined("lists that are used after the loop may hold the same list")
        for name, container in self.containers.changed(self.variables.given_containers()):
            self.e.result(self.containers.result(container))
            self.grown.append(Grown(name, container.kind, True))
        for name, t in self.made_containers:
            self.e.result(self.containers.result(self.variables.fetch(name, t)))
            self.grown.append(Grown(name, t.kind, False))
        for name, value in self.made_arrays:
            self.e.result(self.containers.array_result(name, value))
            self.grown.append(Grown(name, "array", False))
        if self.e.errors and not (self.e.results or self.operands.written or self.fresh):
            # Its errors are all that it is for: a result keeps it in the graph.
            self.e.result(constant(1))
            out.append((DONE, I64, True))
        self.e.jump(CLEANUP)
        return out

    def result(self, name: str, t, out: list) -> None:
        """Leave what is later used where the caller finds it."""
        if isinstance(t, PerhapsType):
            self.variables.require(name)
            t = t.of
        if isinstance(t, TupleType):
            if "." not in name and name != RETURNED:
                self.tuples.append((name, t))
            for k, item in enumerate(t.items):
                self.result(f"{name}.{k}", item, out)
            return
        if isinstance(t, Known) and (name.startswith(RETURNED) or "." in name):
            return
        if isinstance(t, ViewType):
            self.array_result(name, t)
            return
        if isinstance(t, ContainerType):
            self.container_result(name, t)
            return
        if not isinstance(t, ScalarType) or t.dtype == CHARACTER:
            raise Declined(f"{name} is used after the loop, and is not a number on all paths")
        value = self.variables.fetch(name, t)
        if t.dtype.kind == "c":  # results are numbers of at most 8 bytes
            of = complexes.part(t.dtype)
            for v in complexes.parts(self.e, value.v):
                self.e.result(Scalar(of, False, v))
        else:
            self.e.result(value)
        if t.weak is None:  # whose number it is is a result too
            known = self.e.cmp("ne", value.flag, conversions.UNKNOWN)
            self.e.check(
                known, "RuntimeError", f"a compiled loop lost track of whether {name} is Python's or NumPy's number"
            )
            self.e.result(Scalar(np.dtype(np.int8), True, value.flag))
        out.append((name, t.dtype, t.weak))

    def apart(self, given: list) -> None:
        """Declined where arrays that become objects of their own behind the loop may share memory in it."""
        seen = [(name, view.origins) for name, view in self.made]
        for name, c in [*((str(sorted(c.sites)), c) for c in given), *self.made_containers]:
            held = self.containers.origins(c)
            if held and any(held & other for _, other in seen):
                raise Declined(f"arrays of the list {name} are used after the loop, and may be those of {seen[-1][0]}")
            seen.append((name, held))

    def container_result(self, name: str, t: ContainerType) -> None:
        """A list, dict or set is used later: one that the loop was given, or one that it made, of which no other variable holds one."""
        if t.view:
            raise Declined(f"{name} is used after the loop, and is a view of a dict")
        given = set(self.variables.given_containers())
        if len(t.sites) == 1 and t.sites <= given:
            self.held.append((name, *t.sites))
        elif t.sites & given or any(
            self.containers.reached(t.sites) & self.containers.reached(other.sites) for _, other in self.made_containers
        ):
            raise Declined(f"{name} is used after the loop, and is a {t.kind} that another variable may hold too")
        else:
            self.made_containers.append((name, t))

    def array_result(self, name: str, t: ViewType) -> None:
        """An array that the loop made is used later. Its shape has to be known before the loop has run: it is that of the array which the
        variable held before."""
        bound = t.whole if t.whole is not None else self.bound_after(name)
        if bound is not None:
            self.same.append((name, bound))
            return
        before = self.variables.initial.get(name)
        known = isinstance(before, GivenArray) and (before.dtype, before.ndim) == (t.dtype, t.ndim)
        mixed = any(isinstance(o, int) for o in t.origins)
        any_shape = self.inputs.reshapes and t.ndim > 0 and t.owned and not self.e.noting
        if not (known or any_shape) or (mixed and not (t.owned and self.inputs.rerunnable)):
            raise Declined(f"{name} is used after the loop and is an array of which the shape isn't known, or a view")
        value = self.variables.fetch(name, t)
        if mixed:  # as it may be where the loop is left before its first turn has ended
            own = self.e.cmp("ne", value.owner, NULL)
            text = f"the array {name} of a compiled loop is one from outside{conversions.INSTEAD}"
            self.e.check(own, "RuntimeError", text)
        for other, theirs in self.made:
            if t.origins & theirs.origins:  # results are arrays of their own
                if not self.inputs.rerunnable:
                    raise Declined(f"{other} and {name} are used after the loop and may be one array")
                apart = self.e.cmp("ne", value.owner, theirs.owner)
                text = f"{other} and {name} of a compiled loop are one array{conversions.INSTEAD}"
                self.e.check(apart, "RuntimeError", text)
        self.made.append((name, value))
        if any_shape:
            self.made_arrays.append((name, value))
            return
        array = self.operands.array(before.token)
        sizes = arrays.operand(array).sizes
        for n, m in zip(value.sizes, sizes):
            self.e.check(self.e.cmp("eq", n, m), "RuntimeError", f"the array {name} {conversions.RESHAPED}")
        strides = arrays.dense_strides(self.e, sizes, t.dtype.itemsize)
        arrays.assign(
            self.e, ArrayView(Operand(f"%f{len(self.fresh)}", llvm.PTR), t.dtype, sizes, strides, frozenset()), value
        )
        self.fresh.append((name, array.n))

    def bound_after(self, name: str) -> int | None:
        """The operand that the variable is bound to after the loop, where arrays only change names in it."""
        if self.region.exit is None or self.left or self.inputs.turns is None:
            return None
        was = bindings.after(bindings.moves(self.machine.insts, self.region), name, self.inputs.turns)
        before = self.variables.initial.get(was)
        return self.operands.array(before.token).n if isinstance(before, GivenArray) else None


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
    what it does, see tape.py. Declined when something in it isn't
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
    run = Interpreter(insts, region, inputs, names, live_out, fast, spread and not recorded, recorded, reordered)
    run.others.own_cells = cells
    try:
        return run.compile()
    except (Declined, Empty) as reason:
        line = run.machine.insts[max(run.machine.at, header)].line
        raise reason if f"line {line}" in str(reason) else Declined(f"{reason} (line {line})") from None
