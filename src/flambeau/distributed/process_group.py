"""ProcessGroup: ranks that communicate, the queue of their operations, and the thread that runs it."""

from __future__ import annotations

import collections
import datetime
import threading
import weakref

from .. import _C
from ..base.public import public_in
from ..core.bindings import function
from .engine import Engine, Transfer
from .store import Store, seconds
from .work import MessageWork, Work

__all__ = ["GroupName", "ProcessGroup", "RankType"]

view_as_real = function("view_as_real")

GroupName, RankType = str, int
_COLLECTIVE = 6  # profiling/recorded.py, which imports the compiler


class _Queue:
    """Operations in the order in which the program called them. An operation that the caller waits for runs in his thread when nothing
    is under way; the others run in one thread, which starts with the first of them."""

    def __init__(self, name: str):
        self.name = name
        self.changed = threading.Condition()
        self.jobs: collections.deque = collections.deque()
        self.running = False
        self.closed = False
        self.thread: threading.Thread | None = None

    def now(self, job) -> bool:
        """Run the job here, unless others are before it."""
        with self.changed:
            if self.running or self.jobs:
                return False
            self.running = True
        try:
            job()
        finally:
            with self.changed:
                self.running = False
                self.changed.notify_all()
        return True

    def later(self, job, work: Work) -> None:
        with self.changed:
            self.jobs.append((job, work))
            if self.thread is None:
                # It holds the queue alone: a group that nobody has any more ends it.
                self.thread = threading.Thread(
                    target=_serve, args=(weakref.ref(self), self.changed), daemon=True, name=self.name
                )
                self.thread.start()
            self.changed.notify_all()

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def drain(self) -> None:
        """Return when nothing is under way."""
        with self.changed:
            self.changed.wait_for(lambda: not self.running and not self.jobs)


def _serve(reference, changed) -> None:
    while True:
        queue = reference()
        if queue is None:
            return
        with changed:
            if queue.closed and not queue.jobs:
                return
            if not queue.jobs or queue.running:
                del queue
                changed.wait(1.0)
                continue
            job, work = queue.jobs.popleft()
            queue.running = True
        error = None
        try:
            job()
        except BaseException as found:
            error = found
        with changed:
            queue.running = False
            changed.notify_all()
        work._finish(error)
        del job, work, error, queue


@public_in("distributed")
class ProcessGroup:
    """Ranks of a job that communicate. Made by ``init_process_group`` and ``new_group``; ``dist.all_reduce(t, group=group)`` and its like use it."""

    def __init__(
        self,
        engine: Engine,
        ranks: tuple[int, ...],
        name: str,
        backend: str,
        timeout,
        store: Store | None,
        desc: str = "",
    ):
        self._engine, self._ranks, self._backend_name = engine, tuple(ranks), backend
        self._timeout, self._store, self._desc = timeout, store, desc or "undefined"
        self.group_name, self.group_size = name, len(self._ranks)
        self._queue = _Queue(f"flambeau-group-{name}")
        self._coalesced = None  # the block of coalescing.py that it is in
        self._numbers: dict[str, int] = {}
        self.bound_device_id = None

    def rank(self) -> int:
        """This rank's number in the group."""
        return self._engine.rank

    def size(self) -> int:
        return len(self._ranks)

    def name(self) -> str:
        """The backend."""
        return self._backend_name

    @property
    def group_desc(self) -> str:
        return self._desc

    @property
    def timeout(self) -> datetime.timedelta:
        return self._timeout

    def get_group_store(self) -> Store:
        return self._store

    def group_rank(self, global_rank: int) -> int:
        """The number in the group of a rank of the job. ValueError when it isn't a member."""
        try:
            return self._ranks.index(global_rank)
        except ValueError:
            raise ValueError(f"Global rank {global_rank} is not part of group {self.group_name}") from None

    def _set_default_timeout(self, timeout) -> None:
        self._timeout = timeout

    def _get_backend(self, device=None) -> ProcessGroup:
        return self

    def submit(
        self,
        transfer: Transfer | list[Transfer],
        async_op: bool,
        result=None,
        after=None,
        timeout=None,
        given: tuple | None = None,
    ) -> Work | None:
        """Run a collective, or several as one. ``after()`` follows it, in the thread that ran it. Without ``async_op`` it is done on
        return. ``given``: the tensors that profiles tell the shapes of; those of ``result`` unless told."""
        limit = seconds(self._timeout if timeout is None else timeout)
        todo = transfer if isinstance(transfer, list) else [transfer]
        engine, name = self._engine, todo[0].kind.name.lower()
        shown = tuple(given if given is not None else result or ())

        def job():
            event = self.event(name, shown)
            try:
                for each in todo:
                    engine.run(each, limit)
                if after is not None:
                    after()
            finally:
                _C.event_end(event)

        return self.call(job, async_op, result, name)

    def event(self, name: str, tensors: tuple = ()):
        """Begin an event of a profile, for ``_C.event_end``."""
        if any(t.dtype.is_complex for t in tensors):
            tensors = tuple(view_as_real(t) if t.dtype.is_complex else t for t in tensors)
        return _C.event_begin(_COLLECTIVE, f"{self._backend_name}:{name}", tensors)

    def call(self, job, async_op: bool, result=None, what: str = "") -> Work | None:
        """Run ``job()`` in the order of the group's operations."""
        if self._queue.closed:
            raise ValueError(f"the process group {self.group_name} was destroyed")
        if not async_op and self._queue.now(job):
            return None
        work = Work(what, result)
        self._queue.later(job, work)
        if async_op:
            return work
        work.wait()
        return None

    def message(self, pending, what: str, result, arrived=None, source=None, timeout=None) -> MessageWork:
        limit = seconds(self._timeout if timeout is None else timeout)
        return MessageWork(pending, limit, what, result, arrived, source)

    def next_number(self, what: str) -> int:
        """Counts this rank's calls of one kind: the same on all ranks."""
        self._numbers[what] = self._numbers.get(what, 0) + 1
        return self._numbers[what]

    def shutdown(self) -> None:
        """No more operations; those in the queue are finished."""
        self._queue.close()

    def abort(self) -> None:
        """No more operations, and ranks that wait for this one are told."""
        self._engine.give_up()
        self._queue.close()

    def __repr__(self) -> str:
        return f"<flambeau.distributed.ProcessGroup {self.group_name} ({self._backend_name}): rank {self.rank()} of {self.size()}>"

    def __reduce__(self):
        raise TypeError("a ProcessGroup can't be pickled: it belongs to this process")
