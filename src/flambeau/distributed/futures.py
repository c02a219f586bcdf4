"""``torch.futures``: results that come later, over ``concurrent.futures``."""

from __future__ import annotations

import concurrent.futures
from typing import Generic, TypeVar

from ..base.public import public_in

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


@public_in("futures")
class Future(Generic[T]):
    """``set_result`` or ``set_exception`` completes it; ``wait`` gives the value or raises; ``then`` chains a callback on this future."""

    def __init__(self, *, devices=None):
        self._inner: concurrent.futures.Future = concurrent.futures.Future()

    def done(self) -> bool:
        return self._inner.done()

    def wait(self) -> T:
        return self._inner.result()

    def value(self) -> T:
        if not self.done():
            raise RuntimeError("Future is not completed: call wait()")
        return self._inner.result()

    def set_result(self, result: T) -> None:
        if self.done():
            raise RuntimeError("Attempting to mark a completed Future as complete again")
        self._inner.set_result(result)

    def set_exception(self, result) -> None:
        if not isinstance(result, BaseException):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._inner.set_exception(result)

    def add_done_callback(self, callback) -> None:
        self._inner.add_done_callback(lambda _: callback(self))

    def then(self, callback) -> Future:
        out: Future = Future()

        self._inner.add_done_callback(lambda _: out._complete(callback, self))
        return out

    def _complete(self, fn, *args, **kwargs) -> None:
        """Complete with what a call gives, its exception included."""
        try:
            self.set_result(fn(*args, **kwargs))
        except Exception as error:
            self.set_exception(error)


def collect_all(futures: list[Future]) -> Future[list[Future]]:
    """A future of the list, complete when all of them are."""
    out: Future = Future()
    left = len(futures)
    if not left:
        out.set_result([])

    def one(_):
        nonlocal left
        left -= 1
        if not left:
            out.set_result(futures)

    for future in futures:
        future.add_done_callback(one)
    return out


def wait_all(futures: list[Future]) -> list:
    """The values of all, in order; the first error is raised."""
    return [future.wait() for future in collect_all(futures).wait()]
