"""Gradients that are made where they are reduced: the allocator is told of the places in the buckets (csrc/core/places.c)."""

from __future__ import annotations

import sys

import numpy as np

from .. import _C
from .buckets import Bucket, Memory, move_back

__all__ = ["Landing"]

_MOST_MISSES = 4  # formulas are recorded when they run for the first times, and keep results longer
_SMALLEST = 1 << 15  # bytes: smaller results aren't worth it, and the allocator doesn't ask


class Landing:
    """Of all parameters of ``buckets``. A gradient takes the first place of its size in the order of the buckets, in which gradients come. That is a
    guess, so what became of a place is asked before it is written."""

    def __init__(self, memory: Memory, buckets: list[Bucket]):
        views = [(i, v._array) for b in buckets for i, v in zip(b.indices, b.views)]
        views = [(i, a) for i, a in views if a.nbytes >= _SMALLEST]
        self.at = {i: k for k, (i, _) in enumerate(views)}
        self.landed = 0  # gradients that were made in their places
        self.misses = dict.fromkeys(self.at, 0)
        self.places = _C.Places(memory.bytes, tuple((_address(a), a.nbytes) for _, a in views))

    def expect(self, parameters, buckets: list[Bucket]) -> None:
        """Gradients of these will be made, by this thread. A gradient that is there lies in its place, perhaps."""
        for bucket in buckets:
            if bucket.home is not None and not any(
                self.places.taken(self.at[i]) for i in bucket.indices if i in self.at
            ):
                move_back(bucket)
        for i, k in self.at.items():
            if parameters[i].grad is None and self.misses[i] < _MOST_MISSES:
                self.places.open(k)

    def close(self, i: int) -> bool:
        """Nothing is made in the place of parameter i from here on. Whether something lies there."""
        k = self.at.get(i)
        if k is None:
            return False
        self.places.close(k)
        return self.places.taken(k)

    def close_all(self) -> None:
        self.places.close_all()

    def missed(self, i: int) -> None:
        """Another result lay in the place of parameter i. It isn't tried for ever."""
        self.misses[i] += 1


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def lies_in(view: np.ndarray, array: np.ndarray) -> bool:
    """Whether ``array`` is the memory of ``view``, in the same order."""
    return array.strides == view.strides and array.dtype == view.dtype and _address(array) == _address(view)


def alone(tensor, names: int) -> bool:
    """Whether nobody but ``names`` names has the tensor and its memory, which then may be written without anybody seeing it."""
    # This function's argument and that of getrefcount.
    if sys.getrefcount(tensor) > names + 2:
        return False
    # References of the tensor, of its storage to what owns the memory, and of this function.
    array = tensor._array
    if sys.getrefcount(tensor._storage) > 2 or sys.getrefcount(array) > 3 + (array.base is None):
        return False
    owner = array.base
    return owner is None or sys.getrefcount(owner) <= 4
