"""Iterators are pulled: a consumer takes one element at a time, as the interpreter does, and leaves the rest.

``v.iter(tx)`` is ``iter()`` of a value, ``it.next(tx)`` takes one element (None at the end); :func:`each` goes through a value by them, and
:func:`all_of` is ``list()``. Containers know their elements (``items``), iterators have no such method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flambeau.base.errors import InternalError

from ...exc import UserRaises, unsupported
from ...rules.reflect import has_item, name_of
from ..base import Variable, method_of
from ..values.constant import ConstantVariable

__all__ = [
    "IteratorVariable",
    "all_of",
    "checked_iterator",
    "each",
    "fast_sequence",
    "held",
    "is_iterable",
    "pulled",
]

MOST = 100_000


def each(tx, v: Variable, ask_length: bool = False) -> Iterator[Variable]:
    """The elements of ``v``, one by one: each is taken when it is asked for. ``ask_length``: of objects, how many there may be."""
    it = v.iter(tx)
    if ask_length:
        v.expected_length(tx)
    return pulled(tx, it)


def pulled(tx, it: Variable) -> Iterator[Variable]:
    """What is left in an iterator, one by one."""
    for _ in range(MOST):
        e = it.next(tx)
        if e is None:
            return
        tx.output.executed += 1  # plain Python that goes through much is given up, too
        yield e
    unsupported("long-loop", f"an iterator with more than {MOST} elements", "Loops are unrolled.")


def all_of(tx, v: Variable) -> list[Variable]:
    """What ``list(v)`` and ``tuple(v)`` hold."""
    return [*each(tx, v, ask_length=True)]


def fast_sequence(tx, v: Variable, otherwise: str) -> list[Variable]:
    """The elements of an argument that a function in C reads as a whole first (PySequence_Fast): those of a list or tuple, else of list(v).
    ``otherwise``: the error for what is not iterable."""
    if v.python_type() in (list, tuple):
        return v.items(tx)
    try:
        it = v.iter(tx)
    except UserRaises as e:
        if not isinstance(e.exception, TypeError):
            raise
        tx.raise_user(TypeError(otherwise))
    return all_of(tx, it)


def is_iterable(v: Variable) -> bool:
    """Whether the type has a method by which it is iterated over."""
    cls = v.python_type()
    return has_item(cls, "__iter__") or has_item(cls, "__getitem__")


def checked_iterator(tx, it: Variable) -> Variable:
    """What an ``__iter__`` returned, which has to be an iterator."""
    it = tx.realize(it)
    if not isinstance(it, IteratorVariable) and not (hasattr(it, "special") and it.special(tx, "__next__") is not None):
        tx.raise_user(TypeError(f"iter() returned non-iterator of type {it.python_type_name()!r}"))
    return it


class IteratorVariable(Variable):
    """An iterator. Classes say in ``advance`` how the next element is found, and in ``parts`` how captured code makes the iterator as it is then."""

    mutable = True

    def __init__(self, cls: type):
        super().__init__()
        self.cls = cls

    def python_type(self):
        return self.cls

    def truth(self, tx):
        return True

    def items(self, tx):
        raise InternalError(f"the elements of {self!r} are taken one by one")

    def iter(self, tx):
        return self

    def pull(self, tx):
        tx.side_effects.touch(self)
        return self.advance(tx)

    def advance(self, tx) -> Variable | None:
        """The next element; None at the end."""
        raise NotImplementedError

    def stop(self, tx) -> None:
        """Raise what tells that the iterator has ended."""
        tx.raise_user(StopIteration())

    def returned(self) -> Variable:
        """The value of ``yield from``."""
        return ConstantVariable(None)

    def length(self, tx):
        tx.raise_user(TypeError(f"object of type {self.python_type_name()!r} has no len()"))

    def getattr(self, tx, name):
        return method_of(tx, self, name)

    def hasattr(self, tx, name):
        return has_item(self.cls, name)

    def call_method(self, tx, name, args, kwargs):
        if name == "__next__" and not args:
            v = self.pull(tx)
            if v is None:
                self.stop(tx)
            return v
        if name == "__iter__" and not args:
            return self
        unsupported("iterator", f"calling {name} of {self!r}", f"{name_of(self.cls)}.{name} is not traced.")

    def parts(self) -> tuple[Callable, list[Variable]]:
        """A callable and its arguments that make the iterator as it is now."""
        unsupported("iterator", f"a {name_of(self.cls)} object leaves captured code", "Its state is not known there.")

    def reconstruct(self, cg):
        fn, args = self.parts()
        cg.call_function(fn, lambda: cg.all(args), len(args))


def held(it: Variable) -> Variable:
    """An iterator as an argument of ``parts``: an object of the program's is not asked for its iterator again."""
    return it if isinstance(it, IteratorVariable) else PassedVariable(it)


class PassedVariable(Variable):
    def __init__(self, it: Variable):
        super().__init__()
        self.it = it

    def reconstruct(self, cg):
        cg.call_function(Passed, lambda: cg(self.it), 1)


class Passed:
    """An iterator that takes its elements from another one."""

    __slots__ = ("it",)

    def __init__(self, it):
        self.it = it

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.it)
