"""Engines over memory that all ranks of a group have mapped (csrc/distributed/exchange.c)."""

from __future__ import annotations

import collections
import threading
import time

import numpy as np

from .. import _exchange
from .elements import TYPES, address
from .engine import Engine, Kind, Pending, Transfer
from .errors import DistBackendError
from .reduce_op import RedOpType

__all__ = ["SLOT", "ExchangeEngine", "ThreadEngine", "ThreadGroup"]

SLOT = 1 << 18  # bytes: two of them stay in the cache of a core
_DONE, _TIMED_OUT, _MISMATCH, _BROKEN, _UNSUPPORTED, _GONE, _LENGTHS = range(7)
_REDUCING = (Kind.ALL_REDUCE, Kind.REDUCE, Kind.REDUCE_SCATTER)
_TYPE_NAMES = {k: str(dtype).removeprefix("torch.") for dtype, k in TYPES.items()}


def described(kind: int, type: int, op: int, root: int, count: int) -> str:
    """One operation in words."""
    words = [Kind(kind).name.lower()]
    if kind in _REDUCING:
        words.append(f"({RedOpType(op).name}, {count} x {_TYPE_NAMES[type]})")
    elif kind not in (Kind.BARRIER, Kind.ALL_TO_ALL):
        words.append(f"({count} bytes)")
    if kind in (Kind.REDUCE, Kind.BROADCAST, Kind.GATHER, Kind.SCATTER):
        words.append(f"root {root}")
    return " ".join(words)


def wrong_length(ranks: tuple[int, ...], source: int, to: int, sent: int, expected: int) -> str:
    """What ranks are told whose pieces of an all_to_all don't fit."""
    return f"all_to_all: rank {ranks[source]} sends {sent} bytes to rank {ranks[to]}, which expects {expected}"


class ExchangeEngine(Engine):
    """``parts``: the address of each rank's part of the shared memory, zeroed before any rank is here; ``ranks``: their numbers in the job."""

    name = "shared memory"

    def __init__(self, rank: int, parts: tuple[int, ...], ranks: tuple[int, ...], one_process: bool, slot: int = SLOT):
        self.rank, self.size, self.ranks = rank, len(parts), ranks
        self.exchange = _exchange.Exchange(rank, parts, ranks, slot, one_process)

    def run(self, transfer: Transfer, timeout: float) -> None:
        t = transfer
        sends = tuple(x for a in t.sends for x in (address(a), a.nbytes))
        receives = tuple(x for a in t.receives for x in (address(a), a.nbytes))
        status, other = self.exchange.run(t.kind, sends, receives, t.type, t.op, t.root, t.count, timeout)
        if status != _DONE:
            raise DistBackendError(self._why(status, other, t, timeout))

    def _why(self, status: int, other: int, t: Transfer, timeout: float) -> str:
        what = described(t.kind, t.type, t.op, t.root, t.count)
        if status == _UNSUPPORTED:
            return f"{what}: there is no such reduction"
        if status == _LENGTHS:
            return wrong_length(self.ranks, *self.exchange.wrong_lengths())
        head = {
            _TIMED_OUT: f"{what} timed out after the timeout of {timeout:g} s: rank {self.ranks[other] if other >= 0 else '?'} did not come",
            _MISMATCH: "ranks called different collectives",
            _BROKEN: f"{what}: rank {self.ranks[other] if other >= 0 else '?'} gave up (a time-out, an interrupt or an error there)",
            _GONE: f"{what}: rank {self.ranks[other] if other >= 0 else '?'} has left the job",
        }[status]
        return "\n".join([head, *self.report(disagreed=status == _MISMATCH)])

    def report(self, disagreed: bool = False) -> list[str]:
        """A line for each rank with its operation: of the last operation that the ranks disagreed about, else of the current one."""
        lines = []
        for rank, (started, ended, *header) in zip(self.ranks, self.exchange.states(disagreed)):
            where = (
                "nothing yet"
                if not started
                else f"{'in' if started > ended else 'after'} operation {started}: {described(*header)}"
            )
            lines.append(f"  rank {rank}: {where}")
        return lines

    def give_up(self) -> None:
        self.exchange.give_up()


class _Mail(Pending):
    """A message to a thread, taken from its box."""

    def __init__(self, group: ThreadGroup, array, key, source):
        self.group, self.array, self.key, self.wanted, self.taken = group, array, key, source, False

    def done(self) -> bool:
        with self.group.mail:
            return self._take()

    def _take(self) -> bool:
        if self.taken:
            return True
        to, tag = self.key
        sources = range(self.group.size) if self.wanted is None else [self.wanted]
        for source in sources:
            box = self.group.boxes[source, to, tag]
            if box:
                message = box.popleft()
                if message.nbytes != self.array.nbytes:
                    raise DistBackendError(
                        f"a message of {message.nbytes} bytes came for a tensor of {self.array.nbytes}"
                    )
                self.array.reshape(-1).view(np.uint8)[:] = message
                self.source, self.taken = source, True
                return True
        gone = self.group.gone.intersection(sources)
        if gone:
            raise DistBackendError(
                f"recv: rank {self.group.ranks[min(gone)]} gave up (a time-out, an interrupt or an error there)"
            )
        return False

    def wait(self, timeout: float) -> None:
        with self.group.mail:
            if not self.group.mail.wait_for(self._take, timeout):
                raise DistBackendError(f"recv timed out after {timeout:g} s: no message from rank {self.wanted}")


class _Sent(Pending):
    def done(self) -> bool:
        return True

    def wait(self, timeout: float) -> None:
        pass


class ThreadGroup:
    """What the threads of one group share: a part for each, and boxes for messages."""

    def __init__(self, ranks: tuple[int, ...], slot: int = 1 << 16):
        self.ranks, self.size, self.slot = ranks, len(ranks), max(slot, 128 * len(ranks))
        self.memory = [np.zeros(_exchange.part_bytes(self.slot), np.uint8) for _ in ranks]
        self.boxes: dict = collections.defaultdict(collections.deque)
        self.mail = threading.Condition()
        # Ranks that gave up, who send nothing more.
        self.gone: set[int] = set()


class ThreadEngine(ExchangeEngine):
    """A rank that is a thread, or the only one of its group."""

    name = "threads"

    def __init__(self, rank: int, group: ThreadGroup):
        self.group = group
        super().__init__(rank, tuple(map(address, group.memory)), group.ranks, True, group.slot)

    def send(self, array, to, tag):
        message = array.reshape(-1).view(np.uint8).copy()
        with self.group.mail:
            self.group.boxes[self.rank, to, tag].append(message)
            self.group.mail.notify_all()
        return _Sent()

    def receive(self, array, source, tag):
        return _Mail(self.group, array, (self.rank, tag), source)

    def shared(self, nbytes):
        return np.empty(nbytes, np.uint8)

    def give_up(self):
        super().give_up()
        with self.group.mail:
            self.group.gone.add(self.rank)
            self.group.mail.notify_all()


class ThrottledEngine(Engine):
    """Another engine behind a slow link: each operation also sleeps for its bytes / ``bandwidth`` (bytes a second). For measuring overlap."""

    name = "throttled"

    def __init__(self, engine: Engine, bandwidth: float):
        self.engine, self.bandwidth, self.rank, self.size = engine, bandwidth, engine.rank, engine.size

    def run(self, transfer, timeout):
        begin = time.perf_counter()
        self.engine.run(transfer, timeout)
        time.sleep(max(0.0, begin + transfer.nbytes / self.bandwidth - time.perf_counter()))

    def send(self, array, to, tag):
        return self.engine.send(array, to, tag)

    def receive(self, array, source, tag):
        return self.engine.receive(array, source, tag)

    def shared(self, nbytes):
        return self.engine.shared(nbytes)

    def give_up(self):
        self.engine.give_up()

    def close(self):
        self.engine.close()
