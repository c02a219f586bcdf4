"""For loops within a native loop, and the loop itself: over ranges, arrays, and enumerate() and zip() of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.records import replace
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand, integer
from . import arithmetic, arrays, byte_strings, inner, list_functions, text
from .bounds import LARGEST, Below
from .containers import Containers
from .emitter import I64, SMALL_SIZE, block_label, constant, turn_label
from .machine import InterpreterPart, Machine
from .operands import Operands
from .values import (
    ArrayView,
    Container,
    Declined,
    Element,
    Expression,
    Iterator,
    Known,
    Scalar,
    Size,
    State,
    Symbolic,
    Text,
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
        self, machine: Machine, operands: Operands, trip: tuple | None, index: str | None, containers: Containers
    ):
        super().__init__(machine)
        self.operands, self.trip, self.containers = operands, trip, containers
        self.variables = Variables(machine, operands, index, self.element, containers)
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
        if trip[0] == "over":
            first = 0 if self.alike else 1
            it = self.over(self.given_iterable(trip[1]), f"it{header}", first)
            begin: Size = first
            if self.e.turns:
                begin = Operand("%turns.begin", llvm.I64)
                self.e.set(f"{it.key}.cur", llvm.I64, begin)
                self.e.set(f"{it.key}.stop", llvm.I64, Operand("%turns.end", llvm.I64))
            self.strip(it, begin)
            self.pending = [it, Element(it)]
            return [(header + 1, State({**state.locals, **self.variables.types}, (it, Element(it))))]
        start, stop, step = trip
        first, last = (
            self.operands.given(n if isinstance(n, Symbolic) else constant(n), f"range {k}")
            for k, n in enumerate((start, stop))
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
        """What the loop itself runs over: a call (Known function, arguments) or something given."""
        if isinstance(item, tuple) and isinstance(item[0], Known):
            return item[0], [self.given_iterable(a) for a in item[1]], {}
        return self.operands.given(item)

    def ends(self, args):
        """(start, stop, step) of a range's arguments: integers, the step a number where it is known."""
        if not all(isinstance(a, Scalar) and a.kind in "iu" for a in args) or not 1 <= len(args) <= 3:
            raise Declined("a range of these arguments")
        start, stop = map(self.end, (constant(0), args[0]) if len(args) == 1 else args[:2])
        if len(args) < 3:
            return start, stop, 1
        if isinstance(args[2].const, int) and args[2].const:
            return start, stop, args[2].const
        step = self.end(args[2])
        self.e.check(self.e.cmp("ne", step.v, 0), "ValueError", "range() arg 3 must not be zero")
        return start, stop, step

    def end(self, s: Scalar) -> Scalar:
        s = arithmetic.to_int(self.e, s)
        if s.bounds and s.bounds[0] == s.bounds[1] and abs(s.bounds[0]) <= SMALL_SIZE:
            return constant(s.bounds[0])  # short loops within are written out
        if not (s.bounds and -LARGEST <= s.bounds[0] and s.bounds[1] <= LARGEST):
            inside = self.e.cmp("ult", self.e.op("add", s.v, LARGEST), 2 * LARGEST - 1)
            self.e.check(inside, "OverflowError", arithmetic.TOO_LONG)
        return s

    def over(self, v, key: str, first: int) -> Iterator:
        """An iterator over arrays: it counts from ``first``, and elements are read when they are wanted, as NumPy does."""
        e = self.e
        lengths: list[Size] = []
        parts = self.part(v, key, lengths)
        stop = lengths[0]
        for n in lengths[1:]:
            stop = e.intrinsic("smin", stop, n)
        e.set(f"{key}.cur", llvm.I64, first)
        e.set(f"{key}.stop", llvm.I64, stop)
        known = e.bounds_of(stop)
        return Iterator(key, 1, parts, (0, max(known[1] - 1, 0)) if known else None)

    def part(self, v, key: str, lengths: list) -> tuple:
        """How to make the elements of ``v``: ("array", variable), ("text", variable), ("bytes", a constant), ("list", variable),
        ("items", variables), ("range", slot, step, or its slot), ("enumerate", slot, or None for numbers from 0, part) or ("zip", *parts).
        Appends to ``lengths`` how many there are."""
        name = f"{key}.{len(lengths)}"
        if isinstance(v, Expression):
            v = self.variables.passing(v)
        if isinstance(v, ArrayView) and v.ndim:
            self.variables.write(name, v)
            lengths.append(v.sizes[0])
            return "array", name
        if _is_call(v, reversed) and isinstance(v[1][0], Text):
            v = text.backwards(self.e, v[1][0])
        words = text.of(self.e, v)
        if words is not None:
            self.variables.write(name, words)
            lengths.append(words.view.sizes[0])
            return "text", name
        if isinstance(v, Container) and v.kind == "list":
            self.variables.write(name, v)
            lengths.append(LARGEST)  # it may grow and shrink: it is asked at each turn
            return "list", name
        if byte_strings.is_bytes(v) and v.value:
            lengths.append(len(v.value))
            return "bytes", v
        if _is_call(v, range):
            start, stop, step = self.ends(v[1])
            e = self.e
            e.set(name, llvm.I64, start.v)
            by = step.v if isinstance(step, Scalar) else integer(step)
            up = e.cmp("sgt", by, 0)
            forward, backward = e.op("sub", stop.v, start.v), e.op("sub", start.v, stop.v)
            span = e.select(up, forward, backward)
            turns = e.op("udiv", e.op("sub", span, 1), e.abs(by))
            lengths.append(e.select(e.cmp("sgt", span, 0), e.add(turns, 1), 0))
            if isinstance(step, Scalar):
                e.set(f"{name}.step", llvm.I64, step.v)
                step = f"{name}.step"
            return "range", name, step
        if isinstance(v, Tuple) and v.items:
            names = tuple(f"{name}.{k}" for k in range(len(v.items)))
            for item_name, item in zip(names, v.items):
                self.variables.write(item_name, item)
            lengths.append(len(names))
            return "items", names
        if _is_call(v, enumerate):
            args, kwargs = list(v[1]), dict(v[2])
            start = kwargs.pop("start", args[1] if len(args) > 1 else constant(0))
            if kwargs or not 1 <= len(args) <= 2 or not isinstance(start, Scalar) or start.kind != "i":
                raise Declined("enumerate() of these arguments")
            part = self.part(args[0], key, lengths)
            if start.const == 0:
                return "enumerate", None, part
            self.e.set(f"{name}.first", llvm.I64, start.v)
            return "enumerate", f"{name}.first", part
        if _is_call(v, np.ndindex) and v[1] and not v[2]:
            sizes = arrays.given_sizes(self.e, v[1][0] if len(v[1]) == 1 else Tuple(tuple(v[1])))
            for d, n in enumerate(sizes):
                self.e.set(f"{name}.{d}", llvm.I64, n)
            lengths.append(arrays.count(self.e, sizes))
            return "places", tuple((f"{name}.{d}", self.e.bounds_of(n)) for d, n in enumerate(sizes))
        if _is_call(v, zip) and v[1] and not v[2]:
            return "zip", *(self.part(a, key, lengths) for a in v[1])
        raise Declined(f"a loop over a {type(v).__name__.lower()}")

    def element(self, part: tuple, at: Operand, bounds=None):
        """The element with number ``at`` of a part."""
        e = self.e
        match part:
            case ("array", name):
                outermost = name.startswith(f"it{self.machine.region.header}.") and not self.variables.strange
                index = Scalar(I64, True, at, bounds or (0, LARGEST), turn=0 if outermost else None)
                return arrays.subscript(e, self.variables.read(name), index)
            case ("list", name):
                return self.containers.item(self.variables.fetch(name, self.variables.types[name]), at)
            case ("text", name):
                return text.at(e, self.variables.read(name), at)
            case ("bytes", data):
                return byte_strings.element(self.e, data.value, at)
            case ("items", names):
                return self.chosen([self.variables.read(name) for name in names], at)
            case ("range", name, step):
                n = e.add(e.get(name, llvm.I64), e.mul(at, e.get(step, llvm.I64) if isinstance(step, str) else step))
                return Scalar(I64, True, integer(n), (-LARGEST, LARGEST))
            case ("enumerate", None, inner):
                number = Scalar(I64, True, at, bounds or (0, LARGEST))
                return Tuple((number, self.element(inner, at, bounds)))
            case ("enumerate", name, inner):
                return Tuple(
                    (Scalar(I64, True, integer(e.add(e.get(name, llvm.I64), at))), self.element(inner, at, bounds))
                )
            case ("places", sizes):
                places: list[Scalar] = []
                for size, known in reversed(sizes):  # the last one changes first
                    place, at = (at, at) if len(places) == len(sizes) - 1 else self.parted(at, e.get(size, llvm.I64))
                    places.append(Scalar(I64, True, integer(place), (0, known[1] - 1 if known else LARGEST)))
                return Tuple(tuple(reversed(places)))
            case ("zip", *parts):
                return Tuple(tuple(self.element(p, at, bounds) for p in parts))
        raise AssertionError(part)

    def parted(self, at: Operand, n: Operand) -> tuple[Operand, Operand]:
        """(remainder, quotient) of a number that isn't negative."""
        return self.e.op("urem", at, n), self.e.op("udiv", at, n)

    def chosen(self, items: list, at: Operand):
        """That of the items which has number ``at``."""
        first = items[0]
        if all(isinstance(item, Tuple) and len(item.items) == len(first.items) for item in items):
            if len({item.listed for item in items}) > 1:
                raise Declined("a loop over things of different types")
            columns = zip(*(item.items for item in items))
            return Tuple(tuple(self.chosen(list(column), at) for column in columns), first.listed)
        alike = all(isinstance(s, Scalar) and (s.dtype, s.weak) == (first.dtype, first.weak) for s in items)
        if not alike or first.weak is None:
            raise Declined("a loop over things of different types")
        out = items[-1].v
        for k, s in enumerate(items[:-1]):
            out = self.e.select(self.e.cmp("eq", at, k), s.v, out)
        known = all(s.bounds for s in items)
        bounds = (min(s.bounds[0] for s in items), max(s.bounds[1] for s in items)) if known else None
        return Scalar(first.dtype, first.weak, out, bounds)

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
        down = _is_call(v, reversed)
        if down:
            v = v[1][0]
        if isinstance(v, Container):
            key = f"it{inst.index}"
            if v.kind == "set" and self.here() not in list_functions.FREE_OF_ORDER:
                raise Declined("a loop over a set, whose order is Python's own")
            self.variables.write(f"{key}.0", v)
            self.containers.begin(v, key, down)
            self.stack.append(Iterator(key, -1 if down else 1, ("container", f"{key}.0"), None))
            return
        if not _is_call(v, range):
            it = self.over(v, f"it{inst.index}", 0)
            if it.most <= STRIP:
                self.strip(it, 0)
            self.stack.append(it)
            return
        start, stop, step = self.ends(v[1])
        if isinstance(step, Scalar):
            self.stack.append(self.over(v, f"it{inst.index}", 0))
            return
        e = self.e
        bounds = _elements(start.bounds, stop.bounds, step)
        it = Iterator(f"it{inst.index}", step, None, bounds, _below(start, stop, step))
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
        if c.kind != "list":
            body = e.new_label()
            e.branch(self.containers.is_there(c, at), body, turn_label(inst.index))
            e.label(body)
        ways = [(inst.index + 1, [*below, it, self.containers.item(c, at)]), (inst.target, below)]
        return (body, done), ways

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
        ways = [(inst.index + 1, [*below, it, self.element(it.parts, at)]), (inst.target, below)]
        return (body, done), ways

    def FOR_ITER(self, inst):
        it = self.stack[-1]
        if not isinstance(it, Iterator):
            raise Declined(f"a loop over a {type(it).__name__.lower()}")
        if it.parts is not None and it.parts[0] == "container":
            return self._over_container(inst, it, it.parts[1])
        lists = _lists(it.parts)
        if lists:
            return self._over_lists(inst, it, lists)
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
        value = Element(it) if it.parts is not None else Scalar(I64, True, cur, it.bounds, below=it.below)
        after = (
            self.stack[:-1] if limit == "limit" else below
        )  # control gets to the end from a strip's start, or from a turn's
        return (body, done), [(inst.index + 1, [*below, it, value]), (inst.target, after)]


def _is_call(v, fn) -> bool:
    """Whether a value is a call of ``fn`` that GET_ITER is to make sense of."""
    return isinstance(v, tuple) and isinstance(v[0], Known) and v[0].value is fn


def _lists(part) -> list[str]:
    """The variables of an iterator that hold lists which may change."""
    if not isinstance(part, tuple):
        return []
    return [part[1]] if part[0] == "list" else [name for inner in part[1:] for name in _lists(inner)]


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
