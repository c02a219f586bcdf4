"""One iterator of several epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["CyclingIterator"]

_T = TypeVar("_T")


class CyclingIterator(Iterator[_T], Generic[_T]):
    """The elements of ``generator_fn(epoch)`` for the epochs from ``start_epoch`` to ``n - 1``."""

    def __init__(self, n: int, generator_fn: Callable[[int], Iterator[_T]], start_epoch: int = 0):
        self._n, self._epoch, self._generator_fn = n, start_epoch, generator_fn
        self._iter = generator_fn(start_epoch)

    def __iter__(self) -> CyclingIterator[_T]:
        return self

    def __next__(self) -> _T:
        while True:
            try:
                return next(self._iter)
            except StopIteration:
                if self._epoch >= self._n - 1:
                    raise
            self._epoch += 1
            self._iter = self._generator_fn(self._epoch)
