"""A worker's threads: a pool for calls, which may wait, and one thread that sends what the reading threads and finalizers have to send."""

from __future__ import annotations

import collections
import concurrent.futures
import queue
import threading
import traceback
from collections.abc import Callable

__all__ = ["Work"]


class Work:
    """``lock`` guards ``active``, the number of calls that aren't over; the agent counts its messages under it too. ``is_quiet()``: errors of
    ``later`` aren't worth a word."""

    def __init__(self, lock: threading.Lock, name: str, threads: int, is_quiet: Callable[[], bool]):
        self.lock, self.active, self._is_quiet = lock, 0, is_quiet
        self._later: queue.SimpleQueue = queue.SimpleQueue()
        # One for each that is in the queue or runs.
        self._put: collections.deque = collections.deque()
        self._pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix=f"rpc-{name}")
        threading.Thread(target=self._serve_later, daemon=True, name="rpc-later").start()

    def run(self, function, *args) -> None:
        """In the pool; here once that is closed."""
        with self.lock:
            self.active += 1
        try:
            self._pool.submit(self.run_here, function, args)
        except RuntimeError:
            self.run_here(function, args)

    def run_here(self, function, args) -> None:
        """Run what ``active`` counts already."""
        try:
            function(*args)
        finally:
            with self.lock:
                self.active -= 1

    def later(self, function, *args) -> None:
        """Soon, in the thread that sends what nobody waits for; may be called in a finalizer."""
        # No lock: a finalizer may run in a thread that holds it.
        self._put.append(None)
        self._later.put((function, args))

    def _serve_later(self) -> None:
        while True:
            item = self._later.get()
            if item is None:
                return
            function, args = item
            try:
                function(*args)
            except (OSError, RuntimeError) as error:
                if not self._is_quiet():
                    traceback.print_exception(error)
            finally:
                self._put.pop()
            del function, args, item

    def busy(self) -> int:
        """How much isn't over; the caller holds the lock."""
        return self.active + len(self._put)

    def close(self) -> None:
        self._later.put(None)
        self._pool.shutdown(wait=False)
