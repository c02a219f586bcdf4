"""The rendezvous of machines that come and go.

The state (``_state.py``) is one value that a backend keeps and changes by compare-and-set (``_shared_state.py``). Each machine counts its
signs of life in it; a machine whose count hasn't moved for the keep-alive time, by the clock of the one that looks, is taken out. No two clocks are
compared. The first round is complete when ``max_nodes`` are there, or ``min_nodes`` and nobody else came for the last-call time; a later one when
the machines of the last round and those that waited are there.
"""

from __future__ import annotations

import datetime
import itertools
import os
import socket
import threading
import time
from collections.abc import Callable

from ...errors import DistError, DistStoreError
from ...server import Server
from ...store import PrefixStore, Store
from ...tcp_store import TCPStore
from ._settings import RendezvousSettings, RendezvousTimeout, settings_of
from ._shared_state import RendezvousBackend, SharedState
from ._state import State
from .api import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStateError,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
)

__all__ = [
    "DynamicRendezvousHandler",
    "RendezvousBackend",
    "RendezvousSettings",
    "RendezvousTimeout",
    "create_handler",
]

_PAUSE = 0.05  # seconds between two looks at the state
_numbers = itertools.count()


class DynamicRendezvousHandler(RendezvousHandler):
    """The place of one machine in a rendezvous. Made by :meth:`from_backend`; ``waiting`` is called while it waits, and may raise."""

    is_static = False

    def __init__(
        self,
        settings: RendezvousSettings,
        backend: RendezvousBackend,
        store: Store,
        local_addr: str | None = None,
        place: int | None = None,
        port: int = 0,
    ):
        self._settings, self._store, self._place, self._port = settings, store, place, port
        self._local_addr, self._backend_name = local_addr, backend.name
        self._node = f"{local_addr or socket.gethostname()}_{os.getpid()}_{next(_numbers)}"
        self._shared = SharedState(backend, self._node, settings.silence)
        self._round = -1
        self._server: Server | None = None
        self._stopped: threading.Event | None = None
        self.waiting: Callable[[], None] = lambda: None

    @classmethod
    def from_backend(
        cls,
        run_id: str,
        store: Store,
        backend: RendezvousBackend,
        min_nodes: int,
        max_nodes: int,
        local_addr: str | None = None,
        timeout: RendezvousTimeout | None = None,
        keep_alive_interval: int = 5,
        keep_alive_max_attempt: int = 3,
    ):
        """A handler with these settings; ``keep_alive_interval`` in seconds."""
        settings = RendezvousSettings(
            run_id,
            min_nodes,
            max_nodes,
            timeout or RendezvousTimeout(),
            datetime.timedelta(seconds=keep_alive_interval),
            keep_alive_max_attempt,
        )
        return cls(settings, backend, store, local_addr)

    @property
    def settings(self) -> RendezvousSettings:
        """What it was made with."""
        return self._settings

    def get_backend(self) -> str:
        return "static" if self.is_static else self._backend_name

    def get_run_id(self) -> str:
        return self._settings.run_id

    @property
    def use_agent_store(self) -> bool:
        return True

    # ---- rounds --------------------------------------------------------------------------------------------

    def next_rendezvous(self) -> RendezvousInfo:
        """Wait for the next round. Machine 0 of it starts the server at which its ranks meet, a new one for each round."""
        self._stop_server()
        end = time.monotonic() + self._settings.timeout.join.total_seconds()
        while True:
            try:
                state = self._joined(end)
            except BaseException:
                self.leave()
                raise
            self._round = state.round
            rank, size = state.participants.index(self._node), len(state.participants)
            try:
                store = PrefixStore(f"torch.rendezvous.{self._settings.run_id}/{state.round}", self._store.clone())
                place = self._meeting_place(rank, store, end)
            except (DistError, OSError) as error:
                raise RendezvousConnectionError(str(error)) from error
            if place is not None:
                return RendezvousInfo(store, rank, size, place)

    def _joined(self, end: float) -> State:
        """The state of a complete round that this machine is in."""
        settings, enough_since = self._settings, {}
        least, most = settings.min_nodes, settings.max_nodes

        def step(state: State) -> bool:
            if state.closed:
                raise RendezvousClosedError(f"The job {settings.run_id!r} has ended: nobody can join it any more.")
            self._check_place(state)
            ours = state.complete and state.round > self._round and self._node in state.participants
            if ours and not state.broken:
                return False
            changed = state.join(self._node, most, self._place)
            if state.is_enough(least):
                since = enough_since.setdefault(state.round, time.monotonic())
                overdue = time.monotonic() - since >= settings.timeout.last_call.total_seconds()
                if state.is_full(least, most) or overdue:
                    changed = state.fix()
            else:
                enough_since.pop(state.round, None)
            return changed

        while True:
            state = self._shared.update(step)
            self._keep_alive()
            if not state.is_over_for(self._node, state.round) and state.round > self._round:
                return state
            if self._node in state.waiting:
                # A job that runs on enough machines: this one is there when one of them leaves.
                end = time.monotonic() + settings.timeout.join.total_seconds()
            if time.monotonic() > end:
                raise RendezvousTimeoutError(self._too_few(state))
            self.waiting()
            time.sleep(_PAUSE)

    def _check_place(self, state: State) -> None:
        if self._place is None or state.expected or state.complete:
            return
        other = next((n for n, p in state.places.items() if p == self._place and n != self._node), None)
        if other is not None:
            raise RendezvousStateError(f"two machines have the number {self._place} (--node-rank)")

    def _too_few(self, state: State) -> str:
        settings, found = self._settings, len(state.participants)
        limit = f"{settings.timeout.join.total_seconds():g} s"
        text = f"The rendezvous of the job {settings.run_id!r} timed out after {limit}: {found} of at least {settings.min_nodes} machines are there."
        others = getattr(self._shared.backend, "other_runs", list)()
        if others:
            text += f" Other jobs meet at the same store: {', '.join(map(repr, others))}."
        return text

    def _meeting_place(self, rank: int, store: Store, end: float) -> RendezvousStoreInfo | None:
        """Where the ranks of this round meet; None when the round is over before that is known."""
        if rank == 0:
            self._server = Server("", self._port)
            threading.Thread(target=self._server.serve, daemon=True, name="flambeau-server").start()
            return RendezvousStoreInfo.build(0, store, self._own_address(), self._server.port)
        keys = [RendezvousStoreInfo.MASTER_ADDR_KEY, RendezvousStoreInfo.MASTER_PORT_KEY]
        while time.monotonic() < end:
            try:
                store.wait(keys, datetime.timedelta(seconds=0.2))
                return RendezvousStoreInfo.build(rank, store)
            except DistStoreError:
                self.waiting()
            if self.is_round_over():
                return None
        raise RendezvousTimeoutError(f"Machine 0 of the job {self._settings.run_id!r} didn't say where its ranks meet.")

    def _own_address(self) -> str:
        """``local_addr``, or the address by which this machine reaches the store."""
        if self._local_addr:
            return self._local_addr
        if isinstance(self._store, TCPStore):
            return self._store.own_address()
        return "127.0.0.1" if self._settings.max_nodes == 1 else socket.getfqdn()

    def is_round_over(self) -> bool:
        return self._shared.update().is_over_for(self._node, self._round)

    def num_nodes_waiting(self) -> int:
        """How many machines wait that the next round has room for."""
        return self._shared.update().room(self._settings.max_nodes)

    # ---- signs of life -------------------------------------------------------------------------------------

    def _keep_alive(self) -> None:
        if self._stopped is not None or self._settings.max_nodes == 1:
            return
        self._stopped = threading.Event()
        arguments = (self._stopped, self._settings.keep_alive_interval.total_seconds())
        threading.Thread(target=self._beat, args=arguments, daemon=True, name="flambeau-keep-alive").start()

    def _beat(self, stopped: threading.Event, interval: float) -> None:
        while not stopped.wait(interval):
            try:
                self._shared.update(lambda state: self._node in state.beats and state.beat(self._node))
            except RendezvousError:
                return  # the agent's own next look says it

    # ---- the end -------------------------------------------------------------------------------------------

    def is_closed(self) -> bool:
        return self._shared.update().closed

    def set_closed(self) -> None:
        self._shared.update(State.close)

    def leave(self, finished: bool = False) -> None:
        """Leave the job without ending it: the others meet again without this machine, or go on where its part is ``finished``."""
        if self._stopped is not None:
            self._stopped.set()
            self._stopped = None
        try:
            self._shared.update(lambda state: state.leave(self._node, finished))
        except RendezvousError:
            pass  # with the store the job is gone
        self._stop_server()

    def _stop_server(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    def shutdown(self) -> bool:
        try:
            self.set_closed()
        except RendezvousError:
            return False
        finally:
            self.leave()
        return True


def create_handler(
    store: Store,
    backend: RendezvousBackend,
    params: RendezvousParameters,
    kind: type[DynamicRendezvousHandler] = DynamicRendezvousHandler,
    place: int | None = None,
) -> DynamicRendezvousHandler:
    """A handler of ``params``. Options, in whole seconds: ``join_timeout``, ``last_call_timeout``, ``close_timeout``, ``heartbeat_timeout``,
    ``keep_alive_interval``; ``keep_alive_max_attempt`` is a number of intervals. ``master_port``: of the servers at which ranks meet. ValueError for
    options that aren't positive."""
    port = params.get_as_int("master_port", 0) or 0
    return kind(settings_of(params), backend, store, params.local_addr, place, port)
