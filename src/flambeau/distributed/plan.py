"""What a step of training would take on many ranks: memory, bytes moved and time, from one rank's measured step and a model of the links.

An all-reduce of B bytes among n ranks moves 2 (n - 1) / n B in and out of each (a ring), a gather or a scattered reduction half of that; each takes
its bytes over the link's rate, and a latency for each of its ceil(log2 n) rounds (twice that for an all-reduce). Ranks compute alike and at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = ["Link", "Row", "Step", "buckets", "predict", "sizes"]

FIRST, CAP = 1 << 20, 25 << 20  # bytes of DistributedDataParallel's buckets


@dataclass(frozen=True)
class Link:
    """Bytes a second in and out of each rank, and seconds of latency."""

    rate: float
    latency: float = 20e-6

    def all_reduce(self, nbytes: float, n: int) -> float:
        return 2 * self.gather(nbytes, n)

    def gather(self, nbytes: float, n: int) -> float:
        """Seconds of an all-gather to, or a reduce-scatter of, so many bytes."""
        return 0.0 if n < 2 else (n - 1) / n * nbytes / self.rate + math.ceil(math.log2(n)) * self.latency


@dataclass
class Step:
    """One rank's step as measured: seconds, bytes, and when each gradient was there."""

    forward: float
    backward: float
    optimizer: float
    parameters: int
    state: int  # of the optimizer
    activations: int
    largest: int  # parameters of the largest part that is gathered by itself
    gradients: list[tuple[int, float]] = field(default_factory=list)  # (bytes, seconds into the backward), in order


@dataclass(frozen=True)
class Row:
    """A prediction: of ``ranks`` ranks with one way of parallelism."""

    ranks: int
    way: str
    memory: float
    moved: float
    seconds: float
    efficiency: float  # the step of one rank alone over this one


def buckets(gradients: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """(bytes, when it is full) of the buckets that gradients fill in their order."""
    out: list[tuple[int, float]] = []
    held, limit = 0, FIRST
    for k, (nbytes, when) in enumerate(gradients):
        held += nbytes
        if held >= limit or k == len(gradients) - 1:
            out.append((held, when))
            held, limit = 0, CAP
    return out


def predict(step: Step, n: int, link: Link) -> list[Row]:
    """Rows for DistributedDataParallel and for fully_shard."""
    alone, gradients = step.forward + step.backward + step.optimizer, sum(b for b, _ in step.gradients)
    done = 0.0
    for nbytes, when in buckets(step.gradients):
        done = max(done, when) + link.all_reduce(nbytes, n)
    seconds = step.forward + max(step.backward, done) + step.optimizer
    ring = 2 * (n - 1) / n
    replicated = step.parameters + 2 * gradients + step.state + step.activations if n > 1 else 0
    rows = [
        Row(
            n,
            "ddp",
            replicated or step.parameters + gradients + step.state + step.activations,
            ring * gradients,
            seconds,
            alone / seconds,
        )
    ]
    # Each part is gathered a layer ahead in both passes, so a pass takes the longer of its two; gradients are reduced when they are there.
    gather, reduce = link.gather(step.parameters, n), link.gather(gradients, n)
    seconds = max(step.forward, gather) + max(step.backward, gather) + reduce + step.optimizer / n
    memory = (step.parameters + gradients + step.state) / n + step.activations + 2 * step.largest
    moved = (n - 1) / n * (2 * step.parameters + gradients)
    rows.append(Row(n, "fsdp", memory, moved, seconds, alone / seconds))
    return rows


def sizes(text: str) -> list[int]:
    """``2..10000``: from the first by doubling to the last; or numbers with commas. ValueError for anything else."""
    first, dots, last = text.partition("..")
    if not dots:
        return [_positive(part) for part in text.split(",")]
    n, end = _positive(first), _positive(last)
    out = []
    while n < end:
        out.append(n)
        n *= 2
    return [*out, end]


def _positive(text: str) -> int:
    n = int(text)
    if n < 1:
        raise ValueError(f"{n} ranks")
    return n
