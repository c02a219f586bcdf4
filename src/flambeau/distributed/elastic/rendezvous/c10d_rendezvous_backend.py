"""The rendezvous in a store: ``c10d``. The machine of the endpoint keeps the store, in a process of its own that lives until the last agent has
left."""

from __future__ import annotations

import base64
import datetime
import os
import tempfile
from typing import Any

from ...errors import DistError, DistNetworkError
from ...file_store import FileStore
from ...store import Store
from ...tcp_store import ServerProcess, TCPStore
from ._shared_state import RendezvousBackend
from .api import RendezvousConnectionError, RendezvousParameters, RendezvousStateError
from .utils import is_this_machine, parse_rendezvous_endpoint

__all__ = ["DEFAULT_PORT", "C10dRendezvousBackend", "create_backend"]

DEFAULT_PORT = 29400
_HEAD = "torch.rendezvous."
_NONE = b"-"


class C10dRendezvousBackend(RendezvousBackend):
    """``C10dRendezvousBackend(store, run_id)``: the state is one key of the store; its token is the value."""

    def __init__(self, store: Store, run_id: str):
        if not run_id:
            raise ValueError("The run id must be a non-empty string.")
        self._store, self._key = store, f"{_HEAD}{run_id}"

    @property
    def name(self) -> str:
        return "c10d"

    def get_state(self) -> tuple[bytes, Any] | None:
        # Of no key, compare_set gives what was expected: one request, and nothing is waited for.
        value = self._ask(lambda: self._store.compare_set(self._key, _NONE, _NONE))
        return None if value == _NONE else self._decoded(value)

    def set_state(self, state: bytes, token: Any | None = None) -> tuple[bytes, Any, bool] | None:
        value = base64.b64encode(state)
        now = self._ask(lambda: self._store.compare_set(self._key, token or b"", value))
        # Of no key and a token, compare_set gives the token back.
        return (*self._decoded(now), now == value)

    def other_runs(self) -> list[str]:
        """The names of other jobs that meet at the store."""
        keys = self._ask(self._store.list_keys)
        return sorted(k.removeprefix(_HEAD) for k in keys if k.startswith(_HEAD) and k != self._key and "/" not in k)

    def _decoded(self, value: bytes) -> tuple[bytes, Any]:
        try:
            return base64.b64decode(value, validate=True), value
        except ValueError:
            raise RendezvousStateError(f"the state of the rendezvous in the store is damaged: {value[:60]!r}") from None

    def _ask(self, call):
        try:
            return call()
        except DistError as error:
            raise RendezvousConnectionError(
                f"The connection to the store of the rendezvous has failed: {error}"
            ) from error


def _tcp_store(params: RendezvousParameters, timeout: datetime.timedelta) -> TCPStore:
    host, port = parse_rendezvous_endpoint(params.endpoint, DEFAULT_PORT)
    is_host = params.get_as_bool("is_host")
    server = None
    if is_host or (is_host is None and is_this_machine(host)):
        try:
            server = ServerProcess("", port, linger=True)
            host, port = "127.0.0.1" if is_this_machine(host) else host, server.port
        except DistNetworkError as error:
            # Another agent of this machine was first.
            if is_host or not port:
                raise RendezvousConnectionError(str(error)) from error
    try:
        store = TCPStore(host, port, timeout=timeout)
    except DistNetworkError as error:
        raise RendezvousConnectionError(
            f"The rendezvous at {host}:{port} can't be reached within {timeout.total_seconds():g} s: {error}"
        ) from error
    store._server = server
    return store


def _file_store(params: RendezvousParameters) -> FileStore:
    path = params.endpoint or os.path.join(tempfile.mkdtemp(prefix="flambeau_rendezvous_"), "store")
    try:
        return FileStore(path)
    except OSError as error:
        raise RendezvousConnectionError(f"The file {path} of the rendezvous can't be used: {error}") from error


def create_backend(params: RendezvousParameters) -> tuple[C10dRendezvousBackend, Store]:
    """(the backend, its store) of ``endpoint`` ``host:port``. Options: ``store_type`` (``tcp``, or ``file`` with a path as the endpoint), ``is_host``
    (default: whether the host is this machine), ``read_timeout`` (60 seconds, for the connection). RendezvousConnectionError, ValueError."""
    seconds = params.get_as_int("read_timeout", 60)
    if seconds is None or seconds <= 0:
        raise ValueError("The read timeout must be a positive integer.")
    kind = str(params.get("store_type", "tcp")).strip().lower()
    store: Store
    if kind == "tcp":
        store = _tcp_store(params, datetime.timedelta(seconds=seconds))
    elif kind == "file":
        store = _file_store(params)
    else:
        raise ValueError("Invalid store type given. Currently only supports file and tcp.")
    return C10dRendezvousBackend(store, params.run_id), store
