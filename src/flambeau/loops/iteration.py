"""For loops within a native loop, and the loop itself: over ranges, arrays, and enumerate() and zip() of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.records import replace
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand, integer
from .containers import Containers, list_functions
from .emitter import I64, block_label, constant, turn_label
from .machine import BlockEnd, Edge, InterpreterPart, Machine
from .numbers import relations
from .numbers.bounds import LARGEST, Below
from .operands import Operands, OverItems, OverRange
from .parts import ChangingPart, Parts, is_call, lists
from .threads import inner
from .values import (
    ArrayView,
    Call,
    Container,
    Declined,
    Element,
    Iterator,
    Scalar,
    Size,
    State,
    Symbolic,
    Tuple,
    type_of,
)
from .variables import Variables

__all__ = ["Iteration"]

STRIP = 1 << 20  # turns
FEW = 16  # turns that needn't be counted


class Iteration(InterpreterPart):
    """Iterators: a counter and its end in slots of the kernel. ``trip``: of the loop itself, see Inputs; ``index``: the variable of its range.
    ``alike``: whether the variables lie alike before and behind its FOR_ITER; ``here``: the code of the
    function that the instruction at hand is part of; ``pending``: what is on the stack where it is entered."""

    def __init__(
        self,
        machine: Machine,
        operands: Operands,
        trip: OverRange | OverItems | None,
        index: str | None,
        containers: Containers,
    ):
        super().__init__(machine)
        self.operands, self.trip, self.containers = operands, trip, containers
        self.variables = Variables(machine, operands, index, lambda *which: self.parts.element(*which), containers)
        self.parts = Parts(machine, self.variables, containers)
        self.alike = False
        self.here: Callable[[], Any] = lambda: None
        self.parallel: dict[
            int, inner.InnerLoop
        ] = {}  # loops within that have functions for parts of their turns, by header
        self.pending: list = []

    def start(self, names, local):
        """The edge into the loop. The first turn begins behind FOR_ITER, since there is one; but where the variables lie alike there and at FOR_ITER
        (``self.alike``) the code begins with the test, so that LLVM sees a loop with one entry."""
        state = self.variables.entry(names, local)
        header, trip = self.machine.region.header, self.trip
        if trip is None:
            return [(header, state)]
        if isinstance(trip, OverItems):
            first = 0 if self.alike else 1
            it = self.over(self.given_iterable(trip.of), f"it{header}", first)
            begin: Size = first
            if self.e.turns:
                begin = Operand("%turns.begin", llvm.I64)
                self.e.set(f"{it.key}.cur", llvm.I64, begin)
                self.e.set(f"{it.key}.stop", llvm.I64, Operand("%turns.end", llvm.I64))
            self.strip(it, begin)
            self.pending = [it, Element(it)]
            return [(header + 1, State({**state.locals, **self.variables.types}, (it, Element(it))))]
        step = trip.step
        first, last = (
            self.operands.given(n if isinstance(n, Symbolic) else constant(n), f"range {k}")
            for k, n in enumerate((trip.start, trip.stop))
        )
        bounds = _elements(first.bounds, last.bounds, step)
        if self.e.turns:
            first, last = (
                replace(first, v=integer(self.e.add(first.v, self.e.mul(Operand(f"%turns.{end}", llvm.I64), step))))
                for end in ("begin", "end")
            )
        it = Iterator(f"it{header}", step, None, bounds, _below(first, last, step))
        self.e.set(f"{it.key}.stop", llvm.I64, last.v)
        cur = first.v if self.alike else self.e.add(first.v, step)
        self.e.set(f"{it.key}.cur", llvm.I64, cur)
        self.strip(it, cur)
        first = Scalar(I64, True, first.v, bounds, below=it.below)
        self.pending = [it, first]
        return [(header + 1, State(state.locals, (it, type_of(first))))]

    def given_iterable(self, item):
        """What the loop itself runs over: a call, or something given."""
        if isinstance(item, Call):
            return replace(item, arguments=tuple(map(self.given_iterable, item.arguments)))
        return self.operands.given(item)

    def over(self, v, key: str, first: int) -> Iterator:
        """An iterator over arrays: it counts from ``first``, and elements are read when they are wanted, as NumPy does."""
        e = self.e
        lengths: list[Size] = []
        parts = self.parts.part(v, key, lengths)
        stop = lengths[0]
        for n in lengths[1:]:
            stop = e.intrinsic("smin", stop, n)
        e.set(f"{key}.cur", llvm.I64, first)
        e.set(f"{key}.stop", llvm.I64, stop)
        known = e.bounds_of(stop)
        return Iterator(key, 1, parts, (0, max(known[1] - 1, 0)) if known else None)

    def more(self, it: Iterator) -> Operand:
        """Whether there are turns left."""
        cur, stop = self.e.get(f"{it.key}.cur", llvm.I64), self.e.get(f"{it.key}.stop", llvm.I64)
        return self.e.cmp("slt" if it.step > 0 else "sgt", cur, stop)

    def strip(self, it: Iterator, cur: Size) -> None:
        """Set the limit of the strip that starts at ``cur``. A short loop is one strip, whose turns are counted; one of a few turns isn't."""
        e, stop = self.e, self.e.get(f"{it.key}.stop", llvm.I64)
        if it.most <= STRIP:
            if it.most > FEW:
                turns = e.op("sub", stop, cur) if it.step > 0 else e.op("sub", cur, stop)
                e.spend(e.larger(turns, 0))
            return
        least = "smin" if it.step > 0 else "smax"
        limit = e.intrinsic(least, stop, e.add(cur, STRIP * it.step))
        e.set(f"{it.key}.limit", llvm.I64, limit)
        turns = e.op("sub", limit, cur) if it.step > 0 else e.op("sub", cur, limit)
        e.spend(turns)

    # ---- instructions ----------------------------------------------------------------------------------------------------
    def GET_ITER(self, inst):
        v = self.machine.pop()
        down = is_call(v, reversed)
        if down:
            v = v.first
        if isinstance(v, Container):
            key = f"it{inst.index}"
            if v.kind == "set" and self.here() not in list_functions.FREE_OF_ORDER:
                raise Declined("a loop over a set, whose order is Python's own")
            self.variables.write(f"{key}.0", v)
            self.containers.begin(v, key, down)
            self.stack.append(Iterator(key, -1 if down else 1, ChangingPart(f"{key}.0")))
            return
        if not is_call(v, range):
            it = self.over(v, f"it{inst.index}", 0)
            if it.most <= STRIP:
                self.strip(it, 0)
            self.stack.append(it)
            return
        start, stop, step = self.parts.ends(v.arguments)
        if isinstance(step, Scalar):
            self.stack.append(self.over(v, f"it{inst.index}", 0))
            return
        e = self.e
        bounds = _elements(start.bounds, stop.bounds, step)
        related = relations.between_ends(start.relations, stop.relations, step)
        it = Iterator(f"it{inst.index}", step, None, bounds, _below(start, stop, step), related)
        e.set(f"{it.key}.cur", llvm.I64, start.v)
        e.set(f"{it.key}.stop", llvm.I64, stop.v)
        if inst.index + 1 in self.parallel:
            inner.call(e, self.parallel[inst.index + 1], it, start.v, stop.v)
        if it.most <= STRIP:
            self.strip(it, e.get(f"{it.key}.cur", llvm.I64) if self.parallel else start.v)
        self.stack.append(it)

    def _turn(self, inst) -> list:
        """Where turns begin. What is on the stack below the iterator is read again there: a return of a recursive call may lead to a turn past the
        loop's start."""
        self.e.jump(turn_label(inst.index))
        self.e.label(turn_label(inst.index))
        kept = (Scalar, ArrayView, Tuple, Container)
        return [
            self.variables.fetch(f"stack{d}", type_of(value)) if isinstance(value, kept) else value
            for d, value in enumerate(self.stack[:-1])
        ]

    def _over_container(self, inst, it: Iterator, name: str):
        """FOR_ITER of a list that may grow and shrink in the loop, or of a dict."""
        e = self.e
        below = self._turn(inst)
        e.spend(1)
        c = self.variables.fetch(name, self.variables.types[name])
        at, more = self.containers.next(c, it.key)
        body, done = e.new_label(), e.new_label()
        e.branch(more, body, done)
        e.label(body)
        e.set(f"{it.key}.cur", llvm.I64, e.op("add", at, it.step))
        if c.is_table:
            body = e.new_label()
            e.branch(self.containers.is_there(c, at), body, turn_label(inst.index))
            e.label(body)
        edges = [Edge(inst.index + 1, [*below, it, self.containers.item(c, at)]), Edge(inst.target, below)]
        return BlockEnd(edges, labels=(body, done))

    def _over_lists(self, inst, it: Iterator, names: list[str]):
        """FOR_ITER of enumerate() and zip() that run over such lists."""
        e = self.e
        below = self._turn(inst)
        e.spend(1)
        at, more = e.get(f"{it.key}.cur", llvm.I64), self.more(it)
        for name in names:
            c = self.variables.fetch(name, self.variables.types[name])
            more = e.op("and", more, self.containers.has(c, at))
        body, done = e.new_label(), e.new_label()
        e.branch(more, body, done)
        e.label(body)
        e.set(f"{it.key}.cur", llvm.I64, e.op("add", at, 1))
        edges = [Edge(inst.index + 1, [*below, it, self.parts.element(it.parts, at)]), Edge(inst.target, below)]
        return BlockEnd(edges, labels=(body, done))

    def FOR_ITER(self, inst):
        it = self.stack[-1]
        if not isinstance(it, Iterator):
            raise Declined(f"a loop over a {type(it).__name__.lower()}")
        if isinstance(it.parts, ChangingPart):
            return self._over_container(inst, it, it.parts.name)
        changing = lists(it.parts)
        if changing:
            return self._over_lists(inst, it, changing)
        e = self.e
        # Two loops: one over strips, at whose start it is asked whether the loop has been interrupted, one over the turns of a strip, to which
        # the body jumps back.
        body, strip, done = e.new_label(), e.new_label(), e.new_label()
        less, limit = "slt" if it.step > 0 else "sgt", "stop"
        if it.most > STRIP:
            limit = "limit"
            e.branch(self.more(it), strip, done)
            e.label(strip)
            self.strip(it, e.get(f"{it.key}.cur", llvm.I64))
        below = self._turn(inst)
        cur = e.get(f"{it.key}.cur", llvm.I64)
        more = e.cmp(less, cur, e.get(f"{it.key}.{limit}", llvm.I64))
        e.branch(more, body, block_label(inst.index) if limit == "limit" else done)
        e.label(body)
        # Beyond the end once too often does no harm: the slot is written before it is tested.
        e.set(f"{it.key}.cur", llvm.I64, e.op("add", cur, it.step, "nsw"))
        value: Any = Element(it)
        if it.parts is None:
            value = Scalar(I64, True, cur, it.bounds, below=it.below, relations=it.relations)
        # Control gets to the end from a strip's start, or from a turn's.
        after = self.stack[:-1] if limit == "limit" else below
        edges = [Edge(inst.index + 1, [*below, it, value]), Edge(inst.target, after)]
        return BlockEnd(edges, labels=(body, done))


def _below(start: Scalar, stop: Scalar, step: int) -> Below:
    """What a range's elements are below."""
    return start.below if step < 0 else stop.below and (stop.below[0], stop.below[1] - 1)


def _elements(start, stop, step: int) -> tuple[int, int]:
    """Bounds of a range's elements, by those of its ends: all ranges stay within LARGEST."""
    (first, last), (low, high) = ((b or (-LARGEST, LARGEST)) for b in (start, stop))
    if step < 0:
        first, high, low, last = low + 1, last + 1, first - 1, high
    # An empty range has none: what is known of them is true anyway.
    return max(first, -LARGEST), min(max(high - 1, first), LARGEST)
