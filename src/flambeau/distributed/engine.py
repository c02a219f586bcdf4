"""What a process group needs of whatever moves the data: the interface of engines, and its record of an operation."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Engine", "Kind", "Pending", "Transfer"]


class Kind(enum.IntEnum):
    """Of collectives; numbered as in csrc/distributed/exchange.c."""

    BARRIER = 0
    ALL_REDUCE = 1
    REDUCE = 2
    BROADCAST = 3
    ALL_GATHER = 4
    GATHER = 5
    SCATTER = 6
    ALL_TO_ALL = 7
    REDUCE_SCATTER = 8


@dataclass(slots=True)
class Transfer:
    """One collective of one rank. ``sends`` and ``receives`` are contiguous arrays: none, one, or one for each rank of the group.
    ``count`` is what all ranks must agree on: elements of a reduction, bytes of a piece else."""

    kind: Kind
    sends: list[np.ndarray] = field(default_factory=list)
    receives: list[np.ndarray] = field(default_factory=list)
    type: int = 0
    op: int = 0
    root: int = 0
    count: int = 0

    @property
    def nbytes(self) -> int:
        return max(sum(a.nbytes for a in self.sends), sum(a.nbytes for a in self.receives))


class Pending:
    """A message under way."""

    source: int | None = None

    def done(self) -> bool:
        """Whether it has arrived (been taken). DistBackendError when it can't any more."""
        raise NotImplementedError

    def wait(self, timeout: float) -> None:
        """Return when it has. DistBackendError after ``timeout`` seconds."""
        raise NotImplementedError


class Engine:
    """Moves data between the ranks of one group. ``run`` is called by one thread at a time, in the same order on all ranks."""

    name = ""
    # Whether ranks may call `run` with one rank only present (a fake group, a group of one).
    rank: int
    size: int

    def run(self, transfer: Transfer, timeout: float) -> None:
        """Do it. DistBackendError when ranks disagree, one is gone, or the time is over; KeyboardInterrupt while waiting."""
        raise NotImplementedError

    def send(self, array: np.ndarray, to: int, tag: int) -> Pending:
        raise NotImplementedError(f"{self.name}: messages between two ranks aren't built")

    def receive(self, array: np.ndarray, source: int | None, tag: int) -> Pending:
        raise NotImplementedError(f"{self.name}: messages between two ranks aren't built")

    def shared(self, nbytes: int) -> np.ndarray | None:
        """Bytes that all ranks can reach, so that an all_reduce there copies nothing; None where there is no such memory. All ranks must ask."""
        return None

    def give_up(self) -> None:
        """This rank won't take part any more: others that wait are told."""

    def close(self) -> None:
        """Give back what the group holds. No other rank is waited for."""
