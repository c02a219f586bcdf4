"""What is known of objects by identity, as long as they live: their own ``__hash__`` and ``__eq__`` (a metaclass may define them) are not asked."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["Marks", "Noted", "OwnerReference", "remembered"]


class OwnerReference(weakref.ref):
    """A reference to the object that holds its holder: a function in an object's ``__dict__`` has it instead of the object, and makes no cycle.
    Whoever gets to it through the object has the object.
    """


def remembered(compute: Callable) -> Callable:
    """Keep what ``compute(o)`` gives as long as the object lives; equal objects are told apart."""
    kept: dict[int, tuple[weakref.ref, Any]] = {}

    @functools.wraps(compute)
    def of(o):
        found = kept.get(id(o))
        if found is None:
            key = id(o)
            found = kept[key] = (weakref.ref(o, lambda _: kept.pop(key, None)), compute(o))
        return found[1]

    return of


class Marks:
    """A set of objects that leaves them when they die. What takes no weak references lives as long as it is marked."""

    def __init__(self, objects=()):
        self._of: dict[int, Callable[[], Any]] = {}
        for o in objects:
            self.add(o)

    def add(self, o) -> None:
        key, of = id(o), self._of
        try:
            of[key] = weakref.ref(o, lambda _: of.pop(key, None))
        except TypeError:
            of[key] = lambda: o

    def discard(self, o) -> None:
        self._of.pop(id(o), None)

    def clear(self) -> None:
        self._of.clear()

    def __contains__(self, o) -> bool:
        return id(o) in self._of

    def __bool__(self) -> bool:
        return bool(self._of)

    def __iter__(self) -> Iterator:
        return iter([o for o in (ref() for ref in [*self._of.values()]) if o is not None])


class Noted:
    """What is noted for objects, as long as they live; one that takes no weak references lives as long as it has a note."""

    def __init__(self):
        self._of: dict[int, tuple[Callable[[], Any], Any]] = {}

    def __setitem__(self, o, note) -> None:
        key, of = id(o), self._of
        try:
            of[key] = weakref.ref(o, lambda _: of.pop(key, None)), note
        except TypeError:
            of[key] = (lambda: o), note

    def __getitem__(self, o):
        found = self.get(o)
        if found is None:
            raise KeyError(o)
        return found

    def __contains__(self, o) -> bool:
        return self.get(o) is not None

    def get(self, o):
        """The note; None where there is none."""
        found = self._of.get(id(o))
        return found[1] if found is not None and found[0]() is o else None

    def __bool__(self) -> bool:
        return bool(self._of)
