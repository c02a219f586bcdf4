"""The counts of references to values of this worker, and the references that it lends."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from ..futures import Future

if TYPE_CHECKING:
    from ._agent import Agent
    from .references import RRef

__all__ = ["Entry", "Id", "References"]


class Id(NamedTuple):
    """Of a reference: the rank that made it, its number there."""

    rank: int
    number: int


class Entry:
    """A value of this worker that others refer to. ``made``: the call that gives it has arrived; a reference that a third worker was handed may come
    before that."""

    def __init__(self, future: Future, made: bool = True):
        self.future, self.made, self.count = future, made, 0

    def fill(self, value, error) -> None:
        """The value is there, or what was raised instead."""
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)


class References:
    """Those that this worker owns and is counted for, and those that it lends."""

    def __init__(self, agent: Agent):
        self.agent = agent
        self._lock = threading.Lock()
        self._entries: dict[Id, Entry] = {}
        self._lent: dict[int, RRef] = {}
        self._numbers = 0

    def new_id(self) -> Id:
        with self._lock:
            self._numbers += 1
            return Id(self.agent.rank, self._numbers - 1)

    def count(self, number: Id, entry: Entry) -> None:
        """One more refers to it."""
        with self._lock:
            self._entries[number] = entry
            entry.count += 1

    def discount(self, number: Id) -> Entry:
        entry = self.entry(number)
        with self._lock:
            entry.count -= 1
            if entry.made and not entry.count:
                del self._entries[number]
            return entry

    def entry(self, number: Id) -> Entry:
        """That of a number which others know; nobody asks for one that was freed."""
        with self._lock:
            return self._entries.setdefault(number, Entry(Future(), made=False))

    def lend(self, rref: RRef) -> int:
        with self._lock:
            self._numbers += 1
            self._lent[self._numbers] = rref
            return self._numbers

    def take_back(self, token: int) -> None:
        with self._lock:
            self._lent.pop(token)

    def owned(self) -> int:
        """How many values others refer to."""
        with self._lock:
            return len(self._entries)
