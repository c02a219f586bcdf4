"""An engine without MPI, for ranks of one machine whose program has started MPI already, as a job of one rank, or whose /dev/shm is full: memory by
a file that has no name, messages through the job's store."""

from __future__ import annotations

import mmap
import os
import socket
import time

import numpy as np

from .. import _exchange
from .elements import address
from .engine import Pending
from .errors import DistBackendError
from .exchange import SLOT, ExchangeEngine
from .store import Store

__all__ = ["SharedFileEngine"]


class SharedFileEngine(ExchangeEngine):
    """``store``: of this group alone. The file is one of rank 0's (memfd), which the others open through /proc. DistBackendError for ranks on
    several machines."""

    name = "shared file"

    def __init__(self, rank: int, ranks: tuple[int, ...], store: Store, timeout):
        self.store, self.timeout, self.numbers = store, timeout, {}
        slot = max(SLOT, 128 * len(ranks))
        self.rank, self.size = rank, len(ranks)
        self.maps: list = []  # the exchange knows addresses only
        bases, _ = self._mapped(_exchange.part_bytes(slot))
        super().__init__(rank, bases, ranks, False, slot)

    def _mapped(self, nbytes: int) -> tuple[tuple[int, ...], np.ndarray]:
        """(address of each rank's part, this rank's part as bytes) of new memory, zeros. All ranks call it."""
        nbytes = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        key, here = f"file/{len(self.maps)}", socket.gethostname()
        if self.rank == 0:
            file = os.memfd_create("flambeau")
            os.ftruncate(file, nbytes * self.size)
            self.store.set(key, f"{here} /proc/{os.getpid()}/fd/{file}")
        else:
            host, path = self.store.get(key).decode().split()
            if host != here:
                raise DistBackendError(
                    f"MPI was started in this process before init_process_group, and ranks are on {host} and {here}: start MPI "
                    "by init_process_group, or the ranks by mpiexec"
                )
            file = os.open(path, os.O_RDWR)
        held = np.frombuffer(mmap.mmap(file, nbytes * self.size), np.uint8)
        if self.store.add(f"{key}/mapped", 1) == self.size:
            self.store.set(f"{key}/all", b"1")
        self.store.wait([f"{key}/all"], self.timeout)
        os.close(file)
        self.maps.append(held)
        parts = held.reshape(self.size, nbytes)
        return tuple(map(address, parts)), parts[self.rank]

    def shared(self, nbytes):
        bases, own = self._mapped(nbytes)
        self.exchange.add_region(bases, nbytes)
        return own[:nbytes]

    def _next(self, source: int, to: int, tag: int) -> str:
        """The name of the next message."""
        line = f"message/{source}/{to}/{tag}"
        self.numbers[line] = self.numbers.get(line, 0) + 1
        return f"{line}/{self.numbers[line]}"

    def send(self, array, to, tag):
        self.store.set(self._next(self.rank, to, tag), array.reshape(-1).view(np.uint8).tobytes())
        return _Sent()

    def receive(self, array, source, tag):
        return _Message(self, array, source, tag)


class _Sent(Pending):
    def done(self) -> bool:
        return True

    def wait(self, timeout: float) -> None:
        """The store has it."""


class _Message(Pending):
    """A message that is expected. Messages of one sender come in order; from anybody, the first that is there."""

    def __init__(self, engine: SharedFileEngine, array, source: int | None, tag: int):
        self.engine, self.array, self.tag, self.taken = engine, array, tag, False
        self.names = None if source is None else {source: engine._next(source, engine.rank, tag)}

    def done(self) -> bool:
        engine = self.engine
        if self.taken:
            return True
        if self.names is not None:
            found = [(s, name) for s, name in self.names.items() if engine.store.check([name])]
        else:
            found = []
            for s in range(engine.size):
                line = f"message/{s}/{engine.rank}/{self.tag}"
                if engine.store.check([f"{line}/{engine.numbers.get(line, 0) + 1}"]):
                    found.append((s, engine._next(s, engine.rank, self.tag)))
                    break
        if not found:
            return False
        self.source, name = found[0]
        message = np.frombuffer(engine.store.get(name), np.uint8)
        engine.store.delete_key(name)
        if message.nbytes != self.array.nbytes:
            raise DistBackendError(f"a message of {message.nbytes} bytes came for a tensor of {self.array.nbytes}")
        self.array.reshape(-1).view(np.uint8)[:] = message
        self.taken = True
        return True

    def wait(self, timeout: float) -> None:
        end, pause = time.monotonic() + timeout, 1e-4
        while not self.done():
            ranks = self.engine.ranks
            gone = [ranks[s] for s in self.names or () if ranks[s] in _exchange.left()]
            if gone and not self.done():
                raise DistBackendError(f"recv: rank {gone[0]} has left the job")
            if time.monotonic() > end:
                raise DistBackendError(
                    f"recv timed out after {timeout:g} s: no message from {list(self.names or ['anybody'])}"
                )
            time.sleep(pause)
            pause = min(2 * pause, 5e-3)
