"""The iterators that containers, and what is read by index, give. Each knows its container and its place in it."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence

from ...exc import SkipFrame, UserRaises, unsupported
from ...rules.reflect import ABSENT, name_of, type_item
from ...tracing.current_frame import current
from ..base import HeldVariable, Variable
from ..values.constant import ConstantVariable
from .protocol import IteratorVariable

__all__ = [
    "ArrayIteratorVariable",
    "BackwardsVariable",
    "DequeIteratorVariable",
    "ElementsVariable",
    "KeyedIteratorVariable",
    "ListIteratorVariable",
    "NumpyIteratorVariable",
    "SequenceIteratorVariable",
]

LIST_ITERATOR = type(iter([]))


class ElementsVariable(IteratorVariable):
    """Over elements that are known. ``over``: the container whose own iterator it is, where it is one, and ``way``, iter or reversed; None for
    what a function returned. ``elements``: None when it has ended."""

    def __init__(self, elements: Sequence[Variable], over: Variable | None = None, cls: type = LIST_ITERATOR, way=iter):
        super().__init__(cls)
        self.elements: Sequence[Variable] | None = elements
        self.over, self.way = over, way
        self.position = 0

    def advance(self, tx):
        if self.elements is None or self.position >= len(self.elements):
            self.elements = None  # for good: what is appended to a list then is not for this one
            return None
        e = self.elements[self.position]
        self.position += 1
        return tx.realize(e)

    def call_method(self, tx, name, args, kwargs):
        if name == "__length_hint__" and not args:
            return ConstantVariable(0 if self.elements is None else len(self.elements) - self.position)
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg):
        if self.over is None and cg.returning and self.cls is not LIST_ITERATOR:
            unsupported(
                "iterator",
                f"a {name_of(self.cls)} object leaves the function",
                "Only its elements are known while tracing.",
            )
        super().reconstruct(cg)

    def parts(self):
        if self.over is None:
            return list_iterator, [] if self.elements is None else [*self.elements[self.position :]]
        way, over = self.way, self.over
        if over.holder is not None:  # past what its class overrides
            way, over = getattr(over.python_type(), f"__{way.__name__.removesuffix('ed')}__", way), over.holder
        if not self.holds() or (self.elements is not None and self.over.rewritten()):
            unsupported("iterator", f"a {name_of(self.cls)} over what is written leaves captured code")
        if self.elements is None:
            return ended, [HeldVariable(way), over]
        return iterator_at, [HeldVariable(way), over, ConstantVariable(self.position)]

    def holds(self) -> bool:
        """Whether nothing has happened to the container that the iterator refuses."""
        return True


def list_iterator(*rest):
    return iter(list(rest))


def iterator_at(way: Callable, over, position: int):
    """A container's own iterator, behind so many elements: it notices what is done to them."""
    it = way(over)
    for _ in range(position):
        next(it)
    return it


def ended(way: Callable, over):
    """A container's own iterator that has come to its end."""
    it = way(over)
    for _ in it:
        pass
    return it


class ListIteratorVariable(ElementsVariable):
    """Over a list, as it is when an element is taken."""

    def __init__(self, over: Variable):
        super().__init__(over.elements, over)

    def advance(self, tx):
        if self.elements is not None:
            self.elements = self.over.elements
        return super().advance(tx)

    def reconstruct(self, cg):
        if self.elements is None:
            return super().reconstruct(cg)
        position, self.position = self.position, 0
        super().reconstruct(cg)
        self.position = position
        if position:  # set when the list is what it is then
            cg.call_behind_writes(place, self.over.holder or self.over, position)


def place(it, over: list, index: int) -> None:
    """The element at ``index`` is the next one of a list's iterator, if there is one by then: it would take the length for too large a number."""
    missing = max(index + 1 - list.__len__(over), 0)
    list.extend(over, [None] * missing)
    it.__setstate__(index)
    list.__delitem__(over, slice(list.__len__(over) - missing, None))


class KeyedIteratorVariable(ElementsVariable):
    """Over a dict, a view of one, or a set, whose keys must not come or go meanwhile. ``keyed``: the dict or set itself."""

    def __init__(self, elements, over: Variable, keyed: Variable, cls: type, way=iter):
        super().__init__(elements, over, cls, way)
        self.keyed = keyed
        self.size, self.removed = len(keyed.entries), keyed.removed

    def advance(self, tx):
        if self.elements is None:
            return None
        entries = self.keyed.entries
        if len(entries) != self.size and self.cls in SAYS_SO:
            self.size = -1  # it says so from now on
            tx.raise_user(RuntimeError(f"{SAYS_SO[self.cls]} changed size during iteration"))
        if len(entries) != self.size or self.keyed.removed != self.removed:
            raise SkipFrame("the keys of a dict or set change while it is iterated over")
        return super().advance(tx)

    def holds(self):
        return self.elements is None or len(self.keyed.entries) == self.size


SAYS_SO = {type(iter(set())): "Set"} | {
    t: "dictionary" for view in ({}, {}.values(), {}.items()) for t in (type(iter(view)), type(reversed(view)))
}
"""Which of them say that the size has changed, and of what."""


class DequeIteratorVariable(ElementsVariable):
    """Over a deque, which must not be changed meanwhile."""

    def __init__(self, over: Variable, elements, way=iter):
        super().__init__(elements, over, type(way(collections.deque())), way)
        self.state = over.state

    def advance(self, tx):
        if self.state != self.over.state:
            self.elements = []
            tx.raise_user(RuntimeError("deque mutated during iteration"))
        return super().advance(tx)

    def holds(self):
        return self.state == self.over.state and not self.over.rewritten()


class BackwardsVariable(IteratorVariable):
    """``reversed`` of what is read by index. ``element(tx, at)`` is one."""

    def __init__(self, over: Variable, n: int, element: Callable, cls: type):
        super().__init__(cls)
        self.over, self.element, self.at = over, element, n - 1

    def advance(self, tx):
        at, self.at = self.at, self.at - 1
        if at < 0:
            return self._end()
        try:
            return tx.realize(self.element(tx, at))
        except IndexError:
            return self._end()
        except UserRaises as e:
            if isinstance(e.exception, IndexError | StopIteration):
                return self._end()
            raise

    def _end(self) -> None:
        self.at = -1

    def expected_length(self, tx):
        if self.at >= 0:
            self.over.length(tx)

    def parts(self):
        return backwards_at, [self.over.holder or self.over, ConstantVariable(self.at)]

    def reconstruct(self, cg):
        if self.over.python_type() is not list:
            return super().reconstruct(cg)
        cg.call_function(reversed, lambda: cg(self.over), 1)
        cg.call_behind_writes(place, self.over, self.at)


def backwards_at(sequence, index: int):
    """``reversed(sequence)`` as it is when the element at ``index`` is next."""
    it = reversed(sequence)
    it.__setstate__(index)
    return it


class SequenceIteratorVariable(IteratorVariable):
    """Over an object that has ``__getitem__`` only."""

    def __init__(self, over: Variable):
        super().__init__(type(iter(OfIndices())))
        self.over: Variable | None = over
        self.at = 0

    def expected_length(self, tx):
        if self.over is not None and type_item(self.over.python_type(), "__len__") is not ABSENT:
            self.over.length(tx)

    def advance(self, tx):
        if self.over is None:
            return None
        try:
            e = self.over.getitem(tx, ConstantVariable(self.at))
        except UserRaises as e:
            if not isinstance(e.exception, IndexError | StopIteration):
                raise
            self.over = None
            return None
        self.at += 1
        return e

    def parts(self):
        if self.over is None:
            return sequence_ended, []
        return sequence_at, [self.over, ConstantVariable(self.at)]


class OfIndices:
    """A sequence without elements that has ``__getitem__`` only."""

    def __getitem__(self, at):
        raise IndexError


def sequence_ended():
    return ended(iter, OfIndices())


def sequence_at(sequence, index: int):
    it = iter(sequence)
    it.__setstate__(index)
    return it


class ArrayIteratorVariable(ElementsVariable):
    """Over a tensor's first dimension. ``array``: it, as long as nothing was taken; all elements are views that are made then."""

    def __init__(self, array: Variable):
        super().__init__([], cls=type(iter(())))
        self.array: Variable | None = array

    def fill(self, tx) -> None:
        if self.array is not None:
            self.elements, self.array = self.array.items(tx), None

    def advance(self, tx):
        self.fill(tx)
        return super().advance(tx)

    def reconstruct(self, cg):
        self.fill(current())
        rest = [] if self.elements is None else self.elements[self.position :]
        cg.call_function(tuple_iterator, lambda: cg.all(rest), len(rest))


def tuple_iterator(*rest):
    return iter(rest)


# Elements of an array that are taken one by one: graphs of unrolled loops take longer than their length to compile.
_UNROLLED = 2000


class NumpyIteratorVariable(SequenceIteratorVariable):
    """Over a NumPy array's first dimension, each element of which is read when it is taken. ``n``: its size, which becomes known then."""

    def __init__(self, array: Variable, n):
        super().__init__(array)
        self.n = n

    def advance(self, tx):
        self.n = int(self.n)
        if self.at >= self.n:
            self.over = None
        elif self.at >= _UNROLLED:
            raise SkipFrame(
                f"a loop over the {self.n} elements of an array is no native loop, and too long to be unrolled"
            )
        return super().advance(tx)
