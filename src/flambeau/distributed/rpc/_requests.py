"""Requests of this worker that wait for an answer: their futures, and the times at which they fail."""

from __future__ import annotations

import concurrent.futures
import contextlib
import heapq
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from ..futures import Future
from .options import WorkerInfo

__all__ = ["CallFuture", "Failure", "Requests"]


class CallFuture(Future):
    """The value of a call. Callbacks are handed to ``run``, the agent's pool, because they may wait for other calls."""

    def __init__(self, run: Callable):
        super().__init__()
        self._run = run

    def add_done_callback(self, callback) -> None:
        self._inner.add_done_callback(lambda _: self._run(callback, self))

    def then(self, callback) -> Future:
        out = CallFuture(self._run)
        self._inner.add_done_callback(lambda _: self._run(out._complete, callback, self))
        return out

    def settle(self, value=None, error: BaseException | None = None) -> None:
        """Complete it, unless its time is over."""
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            self._inner.set_result(value) if error is None else self._inner.set_exception(error)

    def when_done(self, callback: Callable[[CallFuture], None]) -> None:
        """``callback`` runs where it is completed, and must not wait."""
        self._inner.add_done_callback(lambda _: callback(self))


class Failure:
    """An exception on its way to another worker."""

    def __init__(self, error: BaseException, worker: WorkerInfo):
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.type, self.text = type(error), f"On {worker}:\n{error!r}\n{trace}"

    @staticmethod
    def exception(kind: Any, text: str) -> BaseException:
        """What the request raises."""
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            return RuntimeError(text)
        try:
            return kind(text)
        except BaseException as error:
            return RuntimeError(
                f"Failed to create original exception type. Error msg was {error} Original exception on remote side was {text}"
            )


class _Pending(NamedTuple):
    future: CallFuture
    rank: int


class _Deadline(NamedTuple):
    """``end``: of ``time.monotonic``; deadlines are sorted by it."""

    end: float
    number: int
    seconds: float


class Requests:
    """Those that wait, by number. ``lock``: the agent's, so that it counts them together with its calls."""

    def __init__(self, lock: threading.Lock):
        self._lock = lock
        self._pending: dict[int, _Pending] = {}
        self._numbers = 0
        self._deadlines: list[_Deadline] = []
        self._deadline_set = threading.Condition(lock)
        self._closing = False

    def __len__(self) -> int:
        """To be called with the lock."""
        return len(self._pending)

    def add(self, future: CallFuture, rank: int, seconds: float) -> int:
        """The number of a new request, which fails after ``seconds``; never for 0."""
        with self._lock:
            self._numbers += 1
            number = self._numbers
            self._pending[number] = _Pending(future, rank)
            if seconds > 0:
                heapq.heappush(self._deadlines, _Deadline(time.monotonic() + seconds, number, seconds))
                self._deadline_set.notify()
            return number

    def take(self, number: int) -> CallFuture | None:
        """The future of a request, which waits no longer. None where it was over before."""
        with self._lock:
            found = self._pending.pop(number, None)
        return None if found is None else found.future

    def take_those_of(self, rank: int) -> list[CallFuture]:
        """The futures of all that one worker was asked. To be called with the lock."""
        gone = [n for n, waiting in self._pending.items() if waiting.rank == rank]
        return [self._pending.pop(n).future for n in gone]

    def close(self) -> list[CallFuture]:
        """The futures of all. To be called with the lock."""
        self._closing = True
        futures = [waiting.future for waiting in self._pending.values()]
        self._pending.clear()
        self._deadline_set.notify()
        return futures

    def watch_deadlines(self) -> None:
        """Fail what is over, until they are closed: what a thread runs."""
        while True:
            # An exception that somebody caught has his frames: nothing of it is kept while this thread waits.
            over: list[tuple[CallFuture, float]] = []
            future = None
            with self._lock:
                if self._closing:
                    return
                now = time.monotonic()
                while self._deadlines and self._deadlines[0].end <= now:
                    due = heapq.heappop(self._deadlines)
                    if due.number in self._pending:
                        over.append((self._pending.pop(due.number).future, due.seconds))
                # Calls that were answered leave their deadlines behind.
                while self._deadlines and self._deadlines[0].number not in self._pending:
                    heapq.heappop(self._deadlines)
                if not over:
                    self._deadline_set.wait(self._deadlines[0].end - now if self._deadlines else None)
            while over:
                future, seconds = over.pop()
                future.settle(
                    error=RuntimeError(
                        f"RPCErr:1:RPC ran for more than set timeout ({seconds * 1000:.0f} ms) and will now be marked with an error"
                    )
                )
