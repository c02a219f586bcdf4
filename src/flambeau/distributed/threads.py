"""Ranks that are threads of one process: each has its own default process group. For tests, and for looking at a program of several ranks
under a debugger."""

from __future__ import annotations

import threading
from collections.abc import Callable

from . import world as worlds
from .exchange import ThreadEngine, ThreadGroup
from .store import HashStore

__all__ = ["Crew", "spawn"]


class _Shared:
    """What the ranks of one crew have in common."""

    def __init__(self, size: int):
        self.size, self.store = size, HashStore()
        self.groups: dict = {}
        self.lock = threading.Lock()

    def group(self, key, ranks) -> ThreadGroup:
        with self.lock:
            return self.groups.setdefault(key, ThreadGroup(ranks))


class Crew:
    """One rank's place among threads."""

    def __init__(self, shared: _Shared, rank: int):
        self.shared, self.rank, self.size, self.store = shared, rank, shared.size, shared.store
        self.inits = 0

    def engine(self, ranks: tuple[int, ...], name: str | None = None) -> ThreadEngine:
        if name is None:
            self.inits += 1
        return ThreadEngine(ranks.index(self.rank), self.shared.group((self.inits, name), ranks))


def spawn(fn: Callable, nprocs: int, args=(), *, init: bool = True, timeout=None) -> list:
    """``fn(rank, *args)`` in ``nprocs`` threads, each a rank of a process group (made unless ``init`` is false); the list of what they return.

    The first exception is raised when all have ended; ranks that wait for the one that raised get a DistBackendError.
    """
    shared = _Shared(nprocs)
    results: list = [None] * nprocs
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        world = worlds.World()
        world.threads = Crew(shared, rank)
        worlds.use(world)
        try:
            if init:
                worlds.init_process_group("threaded", timeout=timeout)
            results[rank] = fn(rank, *args)
        except BaseException as error:
            with shared.lock:
                errors.append(error)
            for pg in list(world.groups.values()):
                pg._engine.give_up()
        finally:
            for pg in list(world.groups.values()):
                pg.shutdown()
            worlds.use(None)

    threads = [threading.Thread(target=run, args=(rank,), name=f"rank {rank}") for rank in range(nprocs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
