"""Contexts of distributed autograd: what crossed from and to this worker within each."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["Context", "Contexts", "Received"]


class Received(NamedTuple):
    """A tensor that arrived with a history on another worker: a leaf here."""

    tensor: Any
    source: int
    # Its number among those that the source sent.
    key: tuple[int, int]


class Context:
    """One forward over several workers."""

    def __init__(self, number: int, rank: int):
        self.id, self.rank = number, rank
        self.lock = threading.Lock()
        self.sends: dict[tuple[int, int], Any] = {}
        self.arrived: list[Received] = []
        # Parameter -> gradient.
        self.gradients: dict[Any, Any] = {}
        # Of _backward.py.
        self.passes: dict[int, Any] = {}

    def sent(self, t, to: int) -> tuple[int, int]:
        """A tensor with a history goes to another worker."""
        with self.lock:
            key = (self.rank, len(self.sends))
            self.sends[key] = t
            return key

    def received(self, t, source: int, key: tuple[int, int]) -> None:
        with self.lock:
            self.arrived.append(Received(t, source, key))


class Contexts:
    """Those that this worker knows."""

    def __init__(self, agent):
        self.agent = agent
        self._lock = threading.Lock()
        self._known: dict[int, Context] = {}
        self._numbers = 0
        self._thread = threading.local()

    def new(self) -> Context:
        with self._lock:
            number = self.agent.rank << 48 | self._numbers
            self._numbers += 1
            found = self._known[number] = Context(number, self.agent.rank)
            return found

    def of(self, number: int) -> Context | None:
        """The context of that number, made when it is new here; None for -1."""
        if number < 0:
            return None
        with self._lock:
            return self._known.setdefault(number, Context(number, self.agent.rank))

    def get(self, number: int) -> Context:
        with self._lock:
            found = self._known.get(number)
        if found is None:
            raise RuntimeError(f"Could not find autograd context with id: {number}")
        return found

    def forget(self, number: int) -> None:
        with self._lock:
            self._known.pop(number, None)

    @property
    def current(self) -> Context | None:
        """That of the block that this thread is in."""
        return getattr(self._thread, "context", None)

    @contextlib.contextmanager
    def entered(self, context: Context | None) -> Iterator[None]:
        before = self.current
        self._thread.context = context
        try:
            yield
        finally:
            self._thread.context = before
