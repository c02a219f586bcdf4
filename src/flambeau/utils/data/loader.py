"""DataLoader: batches of a dataset, in this process or from worker processes."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import time
import warnings
from collections.abc import Iterator
from multiprocessing.connection import wait
from typing import Any, Generic, TypeVar

from ...base import accelerator
from ...base.public import public_in
from ...core import sending
from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .errors import ExceptionWrapper
from .pinning import pinned
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed
from .worker import Fetcher, IterableEnd, work

__all__ = ["DataLoader"]

T_co = TypeVar("T_co", covariant=True)


class _InfiniteConstantSampler(Sampler):
    """Indices that only count: for streams."""

    def __iter__(self):
        return itertools.repeat(None)


def _single_thread() -> None:
    """One thread in a worker: the pool's threads stayed in the parent."""
    from ... import _runtime

    _runtime.set_num_threads(1)


@public_in("utils.data.dataloader")
class _DatasetKind:
    """What kind of dataset a loader reads."""

    Map = 0
    Iterable = 1


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    """ValueError for options of worker processes that exclude each other."""
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable multiprocessing, otherwise set "
            "prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_order_of_iterable(shuffle: bool | None, sampler: object, batch_sampler: object) -> None:
    """ValueError for options that choose among the items of an iterable dataset, whose order is its own."""
    if shuffle not in (False, None):
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
        )
    for name, given in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if given is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given}"
            )


@public_in("utils.data.dataloader")
class DataLoader(Generic[T_co]):
    """Iterate over batches of ``dataset`` (by index, or an IterableDataset). The arguments are PyTorch's.

    With ``num_workers`` the samples are made in that many processes; tensors come through shared memory; batches keep their order. Workers draw from
    seeds derived from the default generator (or ``generator``), an error in a worker is raised here with its traceback, and a worker that dies is
    reported. With ``pin_memory`` tensors of batches are pinned where there is a device to copy to.
    """

    def __init__(
        self,
        dataset,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler=None,
        batch_sampler=None,
        num_workers: int = 0,
        collate_fn=None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset, self.num_workers, self.timeout, self.worker_init_fn = (
            dataset,
            num_workers,
            timeout,
            worker_init_fn,
        )
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device, self.in_order = pin_memory, pin_memory_device, in_order
        self.multiprocessing_context, self.generator, self.persistent_workers = (
            multiprocessing_context,
            generator,
            persistent_workers,
        )
        self._dataset_kind = _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        self._IterableDataset_len_called: int | None = None
        if self._iterable:
            _check_order_of_iterable(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._iterable:
                sampler = _InfiniteConstantSampler()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.sampler, self.batch_sampler = (
            batch_size,
            drop_last,
            sampler,
            batch_sampler,
        )
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self._iterator = None

    @property
    def _iterable(self) -> bool:
        return self._dataset_kind == _DatasetKind.Iterable

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    @property
    def multiprocessing_context(self):
        return self.__context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None and self.num_workers == 0:
            raise ValueError(
                f"multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers={self.num_workers}"
            )
        if isinstance(context, str):
            if context not in multiprocessing.get_all_start_methods():
                raise ValueError(
                    "multiprocessing_context option should specify a valid start method in "
                    f"{multiprocessing.get_all_start_methods()!r}, but got multiprocessing_context={context!r}"
                )
            context = multiprocessing.get_context(context)
        self.__context = context

    _FIXED = frozenset({"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"})

    def __setattr__(self, name, value):
        if name in self._FIXED and "_iterator" in self.__dict__:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def _get_iterator(self) -> _BaseDataLoaderIter:
        """A new iterator: what subclasses replace."""
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0 or not self.persistent_workers:
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator.reset(self)
        return self._iterator

    def __len__(self):
        if not self._iterable:
            return len(self._index_sampler)
        n = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def check_worker_number_rationality(self):
        """PyTorch warns here about more workers than processors; so does this."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if cores and self.num_workers > cores:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of worker in current system is "
                f"{cores}, which is smaller than what this DataLoader is going to create. Please be aware that excessive worker creation might get "
                "DataLoader running slow or even freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )


def _fetcher(loader):
    """What makes a Fetcher of a dataset."""
    return functools.partial(
        Fetcher,
        iterable=loader._dataset_kind == _DatasetKind.Iterable,
        auto_collation=loader._auto_collation,
        collate_fn=loader.collate_fn,
        drop_last=loader.drop_last,
    )


class _BaseDataLoaderIter:
    """Reads of a loader what PyTorch's iterators read, and no more: fastai hands them one of its own."""

    def __init__(self, loader: DataLoader):
        self._loader = loader
        self._base_seed = draw_seed(loader.generator)
        self._indices = iter(loader._index_sampler)
        self._yielded = 0
        self._pin = pinned if loader.pin_memory and accelerator.count() else lambda batch: batch

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loader._index_sampler)

    def _count(self) -> None:
        self._yielded += 1
        loader = self._loader
        if (
            loader._dataset_kind == _DatasetKind.Iterable
            and loader._IterableDataset_len_called is not None
            and self._yielded > (n := loader._IterableDataset_len_called)
        ):
            warnings.warn(
                f"Length of IterableDataset {loader.dataset} was reported to be {n}(when accessing len(dataloader)), but {self._yielded} samples "
                "have been fetched. ",
                stacklevel=3,
            )


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader):
        super().__init__(loader)
        self._fetch = _fetcher(loader)(loader.dataset)

    def __next__(self):
        batch = self._fetch(next(self._indices))
        self._count()
        return self._pin(batch)


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Tasks go round over the workers; batches are given in the order of the tasks (``in_order=False``: as they come)."""

    def __init__(self, loader):
        super().__init__(loader)
        context = loader.multiprocessing_context or multiprocessing
        self._workers = []
        self._ready: dict[int, object] = {}
        self._at: dict[int, int] = {}  # task -> worker
        self._pid = os.getpid()
        self._closed = False
        self._interval = loader.timeout or None
        for k in range(loader.num_workers):
            tasks_in, tasks_out = context.Pipe(duplex=False)
            results_in, results_out = context.Pipe(duplex=True)  # a socket, for descriptors
            process = context.Process(
                target=work,
                args=(
                    tasks_in,
                    results_out,
                    k,
                    loader.num_workers,
                    self._base_seed,
                    loader.dataset,
                    _fetcher(loader),
                    loader.worker_init_fn,
                ),
                kwargs={"single_thread": _single_thread},
                daemon=True,
            )
            process.start()
            tasks_in.close()
            results_out.close()
            self._workers.append((process, tasks_out, results_in))
        self._start()

    def _start(self) -> None:
        self._next_task = self._next_out = 0
        self._ready.clear()
        self._at.clear()
        self._ended = [False] * len(self._workers)
        self._turn = 0
        for _ in range(max(self._loader.prefetch_factor, 1) * len(self._workers)):
            self._assign()

    def reset(self, loader) -> None:
        """Begin a new epoch with the same processes."""
        while self._at:
            self._receive()
        self._indices = iter(loader._index_sampler)
        self._yielded = 0
        for _, tasks, _ in self._workers:
            tasks.send((None, None))
        self._start()

    def _assign(self) -> None:
        """Give the next list of indices to the next worker that isn't at its end."""
        for _ in self._workers:
            k, self._turn = self._turn, (self._turn + 1) % len(self._workers)
            if not self._ended[k]:
                break
        else:
            return
        try:
            indices = next(self._indices)
        except StopIteration:
            return
        self._at[self._next_task] = k
        try:
            self._workers[k][1].send((self._next_task, indices))
        except (BrokenPipeError, OSError):
            self._died(k)
        self._next_task += 1

    def _died(self, k: int):
        process = self._workers[k][0]
        process.join(1)
        code, pid = process.exitcode, process.pid
        self.close()
        import signal

        if code is not None and code < 0:
            how = f"is killed by signal: {signal.Signals(-code).name}."
            more = (
                " It is possible that dataloader's workers are out of shared memory or memory."
                if -code in (7, 9)
                else ""
            )
            raise RuntimeError(f"DataLoader worker (pid {pid}) {how}{more}")
        raise RuntimeError(
            f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {code}. Its output above may tell why."
        )

    def _receive(self) -> None:
        """Take in what has arrived. RuntimeError for a dead worker and after the timeout."""
        waiting = {k for k in self._at.values()}
        connections = {self._workers[k][2]: k for k in waiting}
        sentinels = {self._workers[k][0].sentinel: k for k in waiting}
        ready = wait([*connections, *sentinels], self._interval)
        if not ready:
            self.close()
            raise RuntimeError(f"DataLoader timed out after {self._loader.timeout} seconds")
        got = False
        for connection in (c for c in ready if c in connections):
            k = connections[connection]
            try:
                number, result = sending.receive(connection)
            except (EOFError, OSError):
                self._died(k)
            del self._at[number]
            got = True
            if isinstance(result, IterableEnd):
                self._ended[k] = True
            self._ready[number] = result
        if not got:
            self._died(sentinels[next(s for s in ready if s in sentinels)])

    def __next__(self):
        while True:
            number = self._next_out if self._loader.in_order else next(iter(self._ready), self._next_out)
            if number in self._ready:
                result = self._ready.pop(number)
                self._next_out += 1
                self._assign()
                if isinstance(result, IterableEnd):
                    continue
                if isinstance(result, ExceptionWrapper):
                    result.reraise()
                self._count()
                return self._pin(result)
            if self._closed or not self._at:
                break
            self._receive()
        if not self._loader.persistent_workers:
            self.close()
        raise StopIteration

    def close(self) -> None:
        """Stop the workers. What they have sent and nobody has received ends with the sockets."""
        if self._closed:
            return
        self._closed = True
        self._at.clear()
        self._ready.clear()
        for _, tasks, results in self._workers:
            try:
                tasks.send(None)
            except (BrokenPipeError, OSError):
                results.close()
            tasks.close()
        deadline = time.monotonic() + 5
        for process, _, results in self._workers:
            while process.is_alive() and time.monotonic() < deadline:
                try:
                    if results.poll(0.01) and not os.read(results.fileno(), 1 << 16):  # lets its sender finish
                        process.join(0.05)
                except (EOFError, OSError):
                    process.join(0.05)
            if process.is_alive():
                process.terminate()
                process.join(5)
            results.close()

    def __del__(self):
        if not getattr(self, "_closed", True) and self._pid == os.getpid():  # not in a worker that inherited it
            self.close()
