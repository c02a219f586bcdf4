"""Iterators that existed before the call."""

from __future__ import annotations

import gc
import itertools
import operator
import re

from ...bytecode.instructions import in_loop
from ...exc import unsupported
from ...guards.source import CallSource, ItemSource
from ...rules.reflect import ABSENT, instance_dict, name_of, type_item
from ...tracing.wrapping import WRAPPERS, exactly, pin
from ..base import Lazy, Variable
from ..operators import binary
from ..values.symbolic import number_of, wrap_number
from .protocol import IteratorVariable

__all__ = ["ExistingIteratorVariable", "advance_iterator"]


def remaining(it) -> tuple | None:
    """What an iterator over a list, tuple, range, string, dict or set still gives, found without taking it; None for other iterators."""
    if type(it) not in PEEKABLE:
        return None
    _, (over,), *at = it.__reduce__()  # a dict's or set's gives a list of what is left; changed meanwhile, it raises
    if not at:
        return tuple(over)
    # A subclass may override subscripts, which the iterator doesn't ask.
    own = next(cls for cls in (list, tuple, range, str) if cls in type(over).__mro__)
    return tuple(own.__getitem__(over, slice(at[0], None)))


def place_of(count: itertools.count) -> tuple[int, int] | None:
    """The integer that a count gives next, and its step, found without taking it; None for numbers of another class."""
    held = [o for o in gc.get_referents(count) if o is not itertools.count]
    said = re.fullmatch(r"count\((-?\d+)(?:, (-?\d+))?\)", repr(count))
    if said is None or not all(type(n) is int for n in held):
        return None
    return int(said[1]), int(said[2] or 1)


def advance_iterator(it, n: int) -> None:
    for _ in range(n):
        next(it, None)


KEYED = frozenset(map(type, map(iter, ({}, {}.values(), {}.items(), set()))))
PEEKABLE = KEYED | {type(iter([])), type(iter(())), type(iter(range(0))), type(iter("")), type(iter("é"))}


class ExistingIteratorVariable(IteratorVariable):
    """Elements that can be found without taking them are guarded and known; taking them is replayed. Otherwise each step of a loop over it is a
    graph break of its own."""

    def __init__(self, value, source):
        super().__init__(type(value))
        self.value, self.source = value, source
        self.known: list | None = None
        self.taken = 0

    def reloadable(self):
        return True

    def advance(self, tx):
        known = tx.output.unroll or not in_loop(tx.root.code, tx.root.inst.index)
        if not known or type(self.value) not in PEEKABLE:
            unsupported("iterate", f"iterating over a {name_of(self.cls)}", "Its elements are not known while tracing.")
        if self.known is None:
            left = CallSource(self.source, remaining, "remaining")
            try:
                values = remaining(self.value)
            except RuntimeError as e:
                unsupported("iterate", f"iterating over a {self.cls.__name__}", str(e))
            tx.output.guard(left, "LENGTH", len(values))
            self.known = [Lazy(v, ItemSource(left, i)) for i, v in enumerate(values)]
        for o in gc.get_referents(self.value):
            over = tx.output.objects.by_id.get(id(o))
            # Of an object that is derived from a container, the elements are a variable of their own.
            if any(id(v) in tx.side_effects.modified for v in (over, getattr(over, "contents", None))):
                unsupported("iterate", f"iterating over a {self.cls.__name__}", "What it iterates over was written.")
        if in_loop(tx.root.code, tx.root.inst.index):
            tx.root.unrolled = True
        self.taken += 1
        return self.known[self.taken - 1].real(tx) if self.taken <= len(self.known) else None

    def call_method(self, tx, name, args, kwargs):
        if name in ("__next__", "__iter__"):
            return super().call_method(tx, name, args, kwargs)
        unsupported("iterator", f"calling {name} of {self!r}")

    def replay(self, replay):
        target, taken = replay.target(self), self.taken
        if taken:
            replay.before_all(lambda r: r.call(advance_iterator, [target], [taken]))


class ExistingCountVariable(ExistingIteratorVariable):
    """A count that existed before the call: where it stands is a number that may vary, and taking its numbers is replayed."""

    at: Variable | None = None
    step: Variable | None = None

    def advance(self, tx):
        if self.at is None or self.step is None:
            place = place_of(self.value)
            steps_break = in_loop(tx.root.code, tx.root.inst.index) and not tx.output.unroll
            if place is None or steps_break:
                return super().advance(tx)
            source = CallSource(self.source, place_of, "place")
            tx.output.guard(source, "TYPE_MATCH", tuple)
            # As numbers of their own: when they are loaded, the count has gone on.
            self.at, self.step = (
                wrap_number(number_of(tx.wrap(n, ItemSource(source, i)))) for i, n in enumerate(place)
            )
        if in_loop(tx.root.code, tx.root.inst.index):
            tx.root.unrolled = True
        self.taken += 1
        at, self.at = self.at, binary(tx, operator.add, self.at, self.step)
        return at


@exactly(itertools.count)
def _(tx, value, source):
    pin(tx, source, "TYPE_MATCH", itertools.count)
    return ExistingCountVariable(value, source)


def is_iterator(cls: type) -> bool:
    """Whether it has the methods of an iterator, as the abstract class would say."""
    return not any(type_item(cls, n) is x for x in (ABSENT, None) for n in ("__iter__", "__next__"))


@WRAPPERS.row("iterator")
def _(tx, value, source):
    if not is_iterator(type(value)) or instance_dict(value) is not None:
        return None
    pin(tx, source, "TYPE_MATCH", type(value))
    return ExistingIteratorVariable(value, source)
