"""The demo's first part: a NumPy function, plain and compiled."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

import flambeau as torch
from flambeau import _C
from flambeau.demo.fused import Fused, look
from flambeau.demo.timing import Pairs, in_turn

__all__ = ["ArrayResult", "measure", "outer_sum"]


def outer_sum(X, Y):
    """README's example: the sum over all products of two rows."""
    return np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1))


@dataclass
class ArrayResult:
    first: float  # seconds of the first compiled call
    pairs: Pairs
    memory: tuple[int, int]  # most bytes beside the arguments: plain, compiled
    agree: bool
    fused: Fused

    def as_data(self) -> dict[str, Any]:
        """What a program reads of it."""
        return {
            "first_call_seconds": self.first,
            **self.pairs.as_data(),
            "memory_bytes": {"plain": self.memory[0], "compiled": self.memory[1]},
            "agree": self.agree,
            **self.fused.as_data(),
        }


def peak_bytes(fn) -> int:
    """The most memory of arrays that ``fn`` holds at one time, by flambeau's allocator, which NumPy's arrays come from too. Only blocks from
    32 KiB are counted."""
    before = _C.memory_counters(True)["in_use"]
    result = fn()
    peak = _C.memory_counters(True)["peak"]
    del result
    return max(peak - before, 0)


def measure(rows: int = 1024, columns: int = 64, pairs: int = 21) -> ArrayResult:
    """Time, memory and kernels of ``outer_sum`` for two arrays (rows, columns) of float64."""
    X = np.random.default_rng(0).standard_normal((rows, columns))
    compiled = torch.compile(outer_sum)
    start = perf_counter()
    got = compiled(X, X)
    first = perf_counter() - start
    agree = bool(np.allclose(got, outer_sum(X, X), rtol=1e-10))
    timed = in_turn(lambda: outer_sum(X, X), lambda: compiled(X, X), pairs, seconds=4)
    memory = peak_bytes(lambda: outer_sum(X, X)), peak_bytes(lambda: compiled(X, X))
    return ArrayResult(first, timed, memory, agree, look(lambda: compiled(X, X)))
