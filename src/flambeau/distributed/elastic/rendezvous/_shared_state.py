"""The state of a rendezvous in its backend: changed by compare-and-set, and rid of machines that are silent."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from ....base.public import public_in
from ._state import State
from .api import RendezvousStateError

__all__ = ["RendezvousBackend", "SharedState"]


@public_in("distributed.elastic.rendezvous.dynamic_rendezvous")
class RendezvousBackend(ABC):
    """Keeps one value for all machines."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The backend's name."""

    @abstractmethod
    def get_state(self) -> tuple[bytes, Any] | None:
        """(the value, its token); None when there is none."""

    @abstractmethod
    def set_state(self, state: bytes, token: Any | None = None) -> tuple[bytes, Any, bool] | None:
        """Set the value if its token is ``token`` (None: if there is none): (the value now, its token, whether it was set)."""


class _Pulses:
    """When the count of each machine was last seen to move, by this process's clock."""

    def __init__(self, limit: float):
        self.limit, self.last = limit, 0.0
        self.seen: dict[str, tuple[int, float]] = {}

    def silent(self, state: State, own: str) -> list[str]:
        now = time.monotonic()
        if now - self.last > self.limit / 2:
            # Nobody looked for so long (this process was stopped, or the machine slept) that silence means nothing.
            self.seen.clear()
        self.last = now
        for node, count in state.beats.items():
            if node not in self.seen or self.seen[node][0] != count:
                self.seen[node] = (count, now)
        return [n for n in state.beats if n != own and now - self.seen[n][1] > self.limit]


class SharedState:
    """The state as all machines see it."""

    def __init__(self, backend: RendezvousBackend, node: str, limit: float):
        self.backend, self.node, self.pulses = backend, node, _Pulses(limit)
        self.lock = threading.RLock()

    def _decoded(self, data: bytes) -> State:
        try:
            return State.decode(data)
        except (ValueError, TypeError):
            raise RendezvousStateError("the state of the rendezvous in the store is damaged") from None

    def update(self, change: Callable[[State], bool] = lambda state: False) -> State:
        """Take silent machines out, make the change, and return the state. The change is made again where another machine was faster."""
        with self.lock:
            found = self.backend.get_state()
            while True:
                state = State() if found is None else self._decoded(found[0])
                changed = False
                for node in self.pulses.silent(state, self.node):
                    changed = state.leave(node) or changed
                if not (change(state) or changed):
                    return state
                result = self.backend.set_state(state.encode(), None if found is None else found[1])
                if result is None:
                    found = self.backend.get_state()
                elif result[2]:
                    return state
                else:
                    found = result[:2]
