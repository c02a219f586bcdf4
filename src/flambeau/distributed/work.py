"""Work: the handle of an operation that goes on."""

from __future__ import annotations

import threading

from .errors import DistBackendError
from .futures import Future
from .store import seconds

__all__ = ["MessageWork", "Work"]


class Work:
    """The result of a collective with ``async_op=True``. ``wait()`` returns True when the collective is done, and raises its error."""

    def __init__(self, what: str = "", result=None):
        self._what, self._result = what, result
        self._done = threading.Event()
        self._error: BaseException | None = None
        self._future: Future | None = None
        self._lock = threading.Lock()

    def _finish(self, error: BaseException | None = None) -> None:
        with self._lock:
            self._error = error
            self._done.set()
            future = self._future
        if future is not None:
            self._tell(future)

    def _tell(self, future: Future) -> None:
        if self._error is None:
            future.set_result(self.result())
        else:
            future.set_exception(self._error)

    def wait(self, timeout=None) -> bool:
        """Return when the operation is done. Raises its error, DistBackendError after ``timeout``."""
        limit = None if timeout is None or seconds(timeout) <= 0 else seconds(timeout)
        if not self._done.wait(limit):
            raise DistBackendError(f"{self._what} isn't done after {limit:g} s")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        return self._done.is_set()

    def is_success(self) -> bool:
        return self._done.is_set() and self._error is None

    def exception(self) -> BaseException | None:
        return self._error

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> list:
        """The tensors that were written."""
        found = self._result
        return found if isinstance(found, list) else [] if found is None else [found]

    def get_future(self) -> Future:
        """A future of :meth:`result`."""
        with self._lock:
            if self._future is not None:
                return self._future
            self._future = future = Future()
            done = self._done.is_set()
        if done:
            self._tell(future)
        return future

    def source_rank(self) -> int:
        raise RuntimeError(
            "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
        )

    def _source_rank(self) -> int:
        return self.source_rank()

    def block_current_stream(self) -> None:
        """There are no streams."""

    def boxed(self) -> Work:
        return self


class MessageWork(Work):
    """A message: the waiting thread moves it on. ``arrived()`` runs once, when it is complete."""

    def __init__(self, pending, timeout: float, what: str, result, arrived=None, source=None):
        super().__init__(what, result)
        self._pending, self._timeout, self._arrived, self._source = pending, timeout, arrived, source
        self._moving = threading.Lock()

    def _settle(self, error: BaseException | None) -> None:
        if error is None and self._arrived is not None:
            self._arrived()
        self._pending = self._arrived = None if error is None else self._arrived
        self._finish(error)

    def _move(self, limit: float | None) -> None:
        with self._moving:
            if self._done.is_set():
                return
            pending = self._pending
            try:
                if limit is not None:
                    pending.wait(limit)
                elif not pending.done():
                    return
                if pending.source is not None:
                    self._source = pending.source
            except DistBackendError as error:
                self._settle(error)
                return
            self._settle(None)

    def wait(self, timeout=None) -> bool:
        self._move(self._timeout if timeout is None or seconds(timeout) <= 0 else seconds(timeout))
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        self._move(None)
        return super().is_completed()

    def get_future(self) -> Future:
        future = super().get_future()
        if not self._done.is_set():
            threading.Thread(target=self._move, args=(self._timeout,), daemon=True, name="flambeau-message").start()
        return future

    def source_rank(self) -> int:
        """The rank of the group that the message came from."""
        if self._source is None:
            return super().source_rank()
        return self._source
