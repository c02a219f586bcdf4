"""A worker process: gets lists of indices, sends batches.

A worker never blocks on sending (a thread does that), so that it always comes back to receive: neither side can wait for the other's full pipe.
"""

from __future__ import annotations

import os
import queue
import random
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np

from ...core import sending
from ...core.generator import manual_seed
from ...eager import backend
from .errors import ExceptionWrapper

__all__ = ["Fetcher", "IterableEnd", "WorkerInfo", "get_worker_info", "work"]


@dataclass(frozen=True)
class WorkerInfo:
    """Which worker this process is: ``id`` of ``num_workers``, its ``seed``, its copy of the ``dataset``."""

    id: int
    num_workers: int
    seed: int
    dataset: object


_info: list[WorkerInfo] = []


def get_worker_info() -> WorkerInfo | None:
    """In a worker process what it is; None elsewhere."""
    return _info[-1] if _info else None


class IterableEnd:
    """A worker's stream is at its end."""


class Fetcher:
    """Samples by indices, or the next ones of a stream, collated."""

    def __init__(self, dataset, iterable: bool, auto_collation: bool, collate_fn, drop_last: bool):
        self.dataset, self.auto, self.collate, self.drop_last = dataset, auto_collation, collate_fn, drop_last
        self.stream = iter(dataset) if iterable else None
        self.ended = False

    def __call__(self, indices):
        """StopIteration at the end of a stream."""
        if self.stream is not None:
            return self._next(indices)
        if not self.auto:
            return self.collate(self.dataset[indices])
        many = getattr(self.dataset, "__getitems__", None)
        return self.collate(many(indices) if callable(many) else [self.dataset[i] for i in indices])

    def _next(self, indices):
        if self.ended:
            raise StopIteration
        if not self.auto:
            return self.collate(next(self.stream))
        batch = []
        for _ in indices:
            try:
                batch.append(next(self.stream))
            except StopIteration:
                self.ended = True
                break
        if not batch or (self.drop_last and len(batch) < len(indices)):
            raise StopIteration
        return self.collate(batch)


def numpy_seed(base_seed: int, worker: int) -> list[int]:
    """The four numbers that NumPy's generator of a worker is seeded with."""
    return np.random.SeedSequence([worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]).generate_state(4).tolist()


def seed_worker(base_seed: int, worker: int) -> int:
    """Seed Python's, NumPy's and flambeau's generators as PyTorch seeds its workers'."""
    seed = base_seed + worker
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(numpy_seed(base_seed, worker))
    return seed


def _send(results: queue.SimpleQueue, out: Connection) -> None:
    while (message := results.get()) is not None:
        try:
            sending.send(out, *message)
            message = None  # the storages in it
        except (BrokenPipeError, OSError):
            return  # the loader is gone


def work(
    tasks: Connection,
    out: Connection,
    worker: int,
    count: int,
    base_seed: int,
    dataset,
    make,
    init_fn,
    single_thread,
) -> None:
    """Body of the process. ``make(dataset)`` gives a Fetcher. Messages: (task number, batch | ExceptionWrapper | IterableEnd)."""
    backend.set_accelerator(None)  # the compiler's threads stayed behind in the parent process
    single_thread()
    seed = seed_worker(base_seed, worker)
    _info.append(WorkerInfo(worker, count, seed, dataset))
    results: queue.SimpleQueue = queue.SimpleQueue()
    sender = threading.Thread(target=_send, args=(results, out), daemon=True)
    sender.start()
    parent = os.getppid()
    fetcher = failed = None
    where = f"in DataLoader worker process {worker}"
    try:
        if init_fn is not None:
            init_fn(worker)
    except Exception:
        failed = ExceptionWrapper(where=where)
    while True:
        while not tasks.poll(5.0):
            if os.getppid() != parent:
                return  # the parent died without saying so
        try:
            task = tasks.recv()
        except EOFError:
            break
        if task is None:
            break
        number, indices = task
        if number is None:  # a new epoch of persistent workers
            fetcher = None
            continue
        try:
            if failed is not None:
                result, failed = failed, None
            else:
                if fetcher is None:
                    fetcher = make(dataset)
                result = fetcher(indices)
        except StopIteration:
            result = IterableEnd()
        except Exception:
            result = ExceptionWrapper(where=where)
        try:
            message = sending.dumps((number, result))
        except Exception:
            message = sending.dumps((number, ExceptionWrapper(where=where)))
        results.put(message)
    results.put(None)
    sender.join()
