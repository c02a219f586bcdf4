"""What this machine can do at most: the yardstick of a report."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from time import perf_counter

import numpy as np

import flambeau as torch

__all__ = ["Machine", "machine"]


@dataclass(frozen=True)
class Machine:
    """``bandwidth``: bytes a second that a compiled kernel reads and writes in memory larger than the caches. ``flops``: operations a second of a
    product of float32 matrices."""

    bandwidth: float
    flops: float
    threads: int


@functools.cache
def machine() -> Machine:
    """Measured once a process, in about a second: the best of a few runs each."""
    a = np.ones(16 << 20, np.float32)
    scale = torch.compile(lambda x: x * 1.5)
    x = torch.from_numpy(a)
    m = torch.ones(768, 768)
    copied = _best(lambda: scale(x), 6)
    product = _best(lambda: m @ m, 8)
    return Machine(2 * a.nbytes / copied, 2 * 768**3 / product, torch.get_num_threads())


def _best(fn, runs: int) -> float:
    fn()
    times = []
    for _ in range(runs):
        begin = perf_counter()
        fn()
        times.append(perf_counter() - begin)
    return min(times)
