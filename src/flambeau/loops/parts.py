"""What a for loop runs over, in parts: arrays, text, lists, ranges, and enumerate() and zip() of these. The loop counts, and each part makes its
element of the counter when it is wanted, as NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.records import replace, slotted
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand, integer
from . import arrays, byte_strings, text
from .containers import Containers
from .emitter import I64, SMALL_SIZE, constant
from .faults import TOO_LONG
from .machine import InterpreterPart, Machine
from .numbers import conversions
from .numbers.bounds import LARGEST, Bounds
from .values import ArrayView, Call, Container, Declined, Expression, Known, Scalar, Size, Text, Tuple
from .variables import Variables

__all__ = ["ArrayPart", "ChangingPart", "ListPart", "Parts", "is_call", "lists"]


@slotted
class ArrayPart:
    """An array in this variable, along its first dimension."""

    name: str


@slotted
class TextPart:
    """Text in this variable."""

    name: str


@slotted
class BytesPart:
    data: Known


@slotted
class ListPart:
    """A list in this variable, which may grow and shrink meanwhile."""

    name: str


@slotted
class ChangingPart:
    """A list, dict or set in this variable, which is the only part."""

    name: str


@slotted
class ItemsPart:
    """The items of a tuple, one in each variable."""

    names: tuple[str, ...]


@slotted
class RangePart:
    """``first``: the slot of its start. ``step``: a number, or its slot."""

    first: str
    step: int | str


@slotted
class EnumeratePart:
    """``first``: the slot of the first number, None for 0."""

    first: str | None
    of: Any


@slotted
class IndicesPart:
    """np.ndindex(): for each dimension the slot of its size and what is known of it."""

    sizes: tuple[tuple[str, Bounds], ...]


@slotted
class ZipPart:
    parts: tuple[Any, ...]


class Parts(InterpreterPart):
    """Makes parts, and their elements."""

    def __init__(self, machine: Machine, variables: Variables, containers: Containers):
        super().__init__(machine)
        self.variables, self.containers = variables, containers

    def part(self, v, key: str, lengths: list[Size]) -> Any:
        """The part that ``v`` is of the iterator with slots named ``key``. Appends to ``lengths`` how many elements there are."""
        name = f"{key}.{len(lengths)}"
        if isinstance(v, Expression):
            v = self.variables.passing(v)
        if isinstance(v, ArrayView) and v.ndim:
            self.variables.write(name, v)
            lengths.append(v.sizes[0])
            return ArrayPart(name)
        if is_call(v, reversed) and isinstance(v.first, Text):
            v = text.backwards(self.e, v.first)
        words = text.of(self.e, v)
        if words is not None:
            self.variables.write(name, words)
            lengths.append(words.view.sizes[0])
            return TextPart(name)
        if isinstance(v, Container) and v.kind == "list":
            self.variables.write(name, v)
            lengths.append(LARGEST)  # it may grow and shrink: it is asked at each turn
            return ListPart(name)
        if byte_strings.is_bytes(v) and v.value:
            lengths.append(len(v.value))
            return BytesPart(v)
        if isinstance(v, Tuple) and v.items:
            names = tuple(f"{name}.{k}" for k in range(len(v.items)))
            for item_name, item in zip(names, v.items):
                self.variables.write(item_name, item)
            lengths.append(len(names))
            return ItemsPart(names)
        if is_call(v, range):
            return self._range(v, name, lengths)
        if is_call(v, enumerate):
            return self._enumerate(v, key, name, lengths)
        if is_call(v, np.ndindex) and v.arguments and not v.keywords:
            sizes = arrays.given_sizes(self.e, v.first if len(v.arguments) == 1 else Tuple(v.arguments))
            for d, n in enumerate(sizes):
                self.e.set(f"{name}.{d}", llvm.I64, n)
            lengths.append(arrays.count(self.e, sizes))
            return IndicesPart(tuple((f"{name}.{d}", self.e.bounds_of(n)) for d, n in enumerate(sizes)))
        if is_call(v, zip) and v.arguments and not v.keywords:
            return ZipPart(tuple(self.part(a, key, lengths) for a in v.arguments))
        raise Declined(f"a loop over a {type(v).__name__.lower()}")

    def _range(self, v: Call, name: str, lengths: list[Size]) -> RangePart:
        e, (start, stop, step) = self.e, self.ends(v.arguments)
        e.set(name, llvm.I64, start.v)
        by = step.v if isinstance(step, Scalar) else integer(step)
        up = e.cmp("sgt", by, 0)
        forward, backward = e.op("sub", stop.v, start.v), e.op("sub", start.v, stop.v)
        span = e.select(up, forward, backward)
        turns = e.op("udiv", e.op("sub", span, 1), e.abs(by))
        lengths.append(e.select(e.cmp("sgt", span, 0), e.add(turns, 1), 0))
        if isinstance(step, Scalar):
            e.set(f"{name}.step", llvm.I64, step.v)
            return RangePart(name, f"{name}.step")
        return RangePart(name, step)

    def _enumerate(self, v: Call, key: str, name: str, lengths: list[Size]) -> EnumeratePart:
        args, kwargs = v.arguments, dict(v.keywords)
        start = kwargs.pop("start", args[1] if len(args) > 1 else constant(0))
        if kwargs or not 1 <= len(args) <= 2 or not isinstance(start, Scalar) or start.kind != "i":
            raise Declined("enumerate() of these arguments")
        part = self.part(v.first, key, lengths)
        if start.const == 0:
            return EnumeratePart(None, part)
        self.e.set(f"{name}.first", llvm.I64, start.v)
        return EnumeratePart(f"{name}.first", part)

    def element(self, part: Any, at: Operand, bounds=None):
        """The element with number ``at`` of a part."""
        e = self.e
        match part:
            case ArrayPart(name):
                outermost = name.startswith(f"it{self.machine.region.header}.") and not self.variables.strange
                index = Scalar(I64, True, at, bounds or (0, LARGEST), turn=0 if outermost else None)
                return arrays.subscript(e, self.variables.read(name), index)
            case ListPart(name):
                return self.containers.item(self.variables.fetch(name, self.variables.types[name]), at)
            case TextPart(name):
                return text.at(e, self.variables.read(name), at)
            case BytesPart(data):
                return byte_strings.element(self.e, data.value, at)
            case ItemsPart(names):
                return self.chosen([self.variables.read(name) for name in names], at)
            case RangePart(first, step):
                n = e.add(e.get(first, llvm.I64), e.mul(at, e.get(step, llvm.I64) if isinstance(step, str) else step))
                return Scalar(I64, True, integer(n), (-LARGEST, LARGEST))
            case EnumeratePart(None, of):
                number = Scalar(I64, True, at, bounds or (0, LARGEST))
                return Tuple((number, self.element(of, at, bounds)))
            case EnumeratePart(first, of):
                number = Scalar(I64, True, integer(e.add(e.get(first, llvm.I64), at)))
                return Tuple((number, self.element(of, at, bounds)))
            case IndicesPart(sizes):
                places: list[Scalar] = []
                for size, known in reversed(sizes):  # the last one changes first
                    place, at = (at, at) if len(places) == len(sizes) - 1 else self.parted(at, e.get(size, llvm.I64))
                    places.append(Scalar(I64, True, integer(place), (0, known[1] - 1 if known else LARGEST)))
                return Tuple(tuple(reversed(places)))
            case ZipPart(parts):
                return Tuple(tuple(self.element(p, at, bounds) for p in parts))
        raise AssertionError(part)

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
        s = conversions.to_int(self.e, s)
        if s.bounds and s.bounds[0] == s.bounds[1] and abs(s.bounds[0]) <= SMALL_SIZE:
            # Short loops within are written out. What else is known is so where the bounds widen in another turn.
            return replace(constant(s.bounds[0]), below=s.below, relations=s.relations)
        if not (s.bounds and -LARGEST <= s.bounds[0] and s.bounds[1] <= LARGEST):
            inside = self.e.cmp("ult", self.e.op("add", s.v, LARGEST), 2 * LARGEST - 1)
            self.e.check(inside, "OverflowError", TOO_LONG)
        return s

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


def is_call(v, fn) -> bool:
    """Whether a value is a call of ``fn`` that GET_ITER is to make sense of."""
    return isinstance(v, Call) and v.function is fn


def lists(part: Any) -> list[str]:
    """The variables of a part that hold lists which may change."""
    match part:
        case ListPart(name):
            return [name]
        case EnumeratePart(_, of):
            return lists(of)
        case ZipPart(parts):
            return [name for of in parts for name in lists(of)]
    return []
