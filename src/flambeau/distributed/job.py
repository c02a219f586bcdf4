"""This process as a rank of a job: the server that all ranks know, the watch, MPI."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import json
import multiprocessing.util
import os
import socket
import struct
import sys
import time

from .. import _exchange
from . import mpi
from .engine import Engine
from .errors import DistBackendError, DistStoreError
from .exchange import ThreadEngine, ThreadGroup
from .shared_file import SharedFileEngine
from .store import PrefixStore, Store, seconds
from .tcp_store import ServerProcess, TCPStore, connect

__all__ = ["Job"]


class _Ending:
    """Whether this process ends as it should: a rank that fails must not say goodbye to the job."""

    def __init__(self):
        self.prepared_in: int | None = None
        self.failed = False
        self.hook = None

    def prepare(self) -> None:
        if self.prepared_in == os.getpid():
            return
        self.prepared_in, self.failed = os.getpid(), False
        self.hook, sys.excepthook = sys.excepthook, self._excepthook
        atexit.register(self._end)
        # Processes of multiprocessing end without atexit; what they raise passes through here.
        multiprocessing.util.Finalize(None, self._end_of_process, exitpriority=100)

    def _excepthook(self, kind, value, trace):
        self.failed = True
        self.hook(kind, value, trace)

    def _end_of_process(self) -> None:
        error = sys.exc_info()[1]
        if error is not None and not (isinstance(error, SystemExit) and error.code in (None, 0)):
            self.failed = True
        self._end()

    def _end(self) -> None:
        if self.prepared_in == os.getpid() and not self.failed:
            _exchange.unwatch()


_ending = _Ending()


class Job:
    """Ranks that found each other by ``store``. Made by all of them at once."""

    def __init__(self, rank: int, size: int, store: Store, timeout):
        self.rank, self.size, self.store = rank, size, store
        self.MPI, self._timeout = None, timeout
        self._made: dict[str, int] = {}  # engines by their members
        self._server: ServerProcess | None = None
        if size == 1:
            return
        server = self._find_server(timeout)
        host = socket.gethostname()
        server.join(json.dumps({"rank": rank, "size": size, "host": host}).encode())
        _ending.prepare()
        sock = connect(server.host, server.port, seconds(timeout))
        sock.sendall(b"\x02" + struct.pack(">I", rank))
        _exchange.watch(sock.detach(), rank)
        self.store.add("flambeau/foreign", int(mpi.is_foreign(rank, size)))
        self.store.add("flambeau/without room", int(mpi.lacks_room(size)))
        self.store.add("flambeau/apart", int(self.store.compare_set("flambeau/host", "", host) != host.encode()))
        self._meet("joined", timeout)
        told = {name: self.store.add(f"flambeau/{name}", 0) for name in ("foreign", "without room", "apart")}
        if told["foreign"] or (told["without room"] and not told["apart"]):
            ranks = tuple(range(size))
            self._engine = self._file_engine(ranks, self._store_of(ranks))
            return
        self.MPI = mpi.start(rank, size, server.host, server.port)
        self._engine = mpi.engine_of(self.MPI, tuple(range(size)))
        mpi.FileOfMpi.remove()

    def _find_server(self, timeout) -> TCPStore:
        """The server of the store, or one that rank 0 starts and tells the others of through the store."""
        base = self.store
        while isinstance(base, PrefixStore):
            base = base.underlying_store
        if isinstance(base, TCPStore):
            return base
        if self.rank == 0:
            self._server = ServerProcess("", 0)
            self.store.set("flambeau/server", f"{socket.gethostname()} {self._server.port}")
        host, port = self.store.get("flambeau/server").decode().split()
        return TCPStore("127.0.0.1" if host == socket.gethostname() else host, int(port), timeout=timeout)

    def _meet(self, name: str, timeout) -> None:
        if self.store.add(f"flambeau/{name}", 1) == self.size:
            self.store.set(f"flambeau/{name}/all", b"1")
        self.store.wait([f"flambeau/{name}/all"], timeout)

    def world_engine(self) -> Engine:
        return self._engine if self.size > 1 else self.engine((0,), self._timeout)

    def engine(self, ranks: tuple[int, ...], timeout) -> Engine:
        """The engine of a group that this rank is a member of; all members ask. DistBackendError when one doesn't within ``timeout``."""
        if len(ranks) == 1:
            return ThreadEngine(0, ThreadGroup(ranks))
        store = self._store_of(ranks)
        self._wait_for(store, ranks, timeout)
        return self._file_engine(ranks, store) if self.MPI is None else mpi.engine_of(self.MPI, ranks)

    def _store_of(self, ranks: tuple[int, ...]) -> Store:
        """For one group of these ranks."""
        members = ",".join(map(str, ranks))
        self._made[members] = self._made.get(members, 0) + 1
        return PrefixStore(f"flambeau/group/{members}/{self._made[members]}", self.store)

    def _wait_for(self, store: Store, ranks: tuple[int, ...], timeout) -> None:
        """Return when all of them are here: MPI would wait for ever, and hear of nothing."""
        store.set(f"here/{self.rank}", b"1")
        end = time.monotonic() + seconds(timeout)
        while absent := [r for r in ranks if not store.check([f"here/{r}"])]:
            rest = end - time.monotonic()
            if rest <= 0 or set(absent) & set(_exchange.left()):
                why = f"didn't come within {seconds(timeout):g} s" if rest <= 0 else "has left the job"
                store.set("given up", str(self.rank).encode())  # who comes later must not wait for this rank
                raise DistBackendError(f"new_group of the ranks {list(ranks)}: rank {absent[0]} {why}")
            with contextlib.suppress(DistStoreError):
                store.wait([f"here/{absent[0]}"], datetime.timedelta(seconds=max(0.01, min(0.5, rest))))
        if store.check(["given up"]):
            raise DistBackendError(
                f"new_group of the ranks {list(ranks)}: rank {store.get('given up').decode()} has given up"
            )

    def _file_engine(self, ranks: tuple[int, ...], store: Store) -> SharedFileEngine:
        """Of ranks some of which run another MPI than this job's, or have no room for it."""
        return SharedFileEngine(ranks.index(self.rank), ranks, store, self._timeout)

    def leave(self) -> None:
        """Say goodbye: from now on no collective may wait for this rank."""
        _exchange.unwatch()
        if self._server is not None:
            self._server.close()
