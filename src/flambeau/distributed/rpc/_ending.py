"""How workers find that all work is done: each tells in the store what it has to do and how many messages it sent and received."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ._agent import Agent

__all__ = ["Counts", "wait_for_all"]


class Counts(NamedTuple):
    """Of one worker: calls and requests that aren't over, messages sent and received."""

    busy: int
    sent: int
    received: int

    def packed(self) -> str:
        return " ".join(map(str, self))

    @classmethod
    def of(cls, text: bytes) -> Counts:
        return cls(*map(int, text.split()))


def wait_for_all(agent: Agent, timeout: float) -> None:
    """Return when all workers came here and nothing is under way anywhere: two rounds in a row say that nobody has anything to do and that all
    messages have arrived. RuntimeError after ``timeout`` seconds (never for 0) and when a worker has left."""
    end = time.monotonic() + timeout if timeout > 0 else None
    before, number = None, 0
    while True:
        rows = _round(agent, number, end, timeout)
        still = not any(r.busy for r in rows) and sum(r.sent for r in rows) == sum(r.received for r in rows)
        if still and rows == before:
            return
        before, number = rows if still else None, number + 1
        time.sleep(0.001)


def _round(agent: Agent, number: int, end: float | None, timeout: float) -> list[Counts]:
    """What all workers tell in a round."""
    _check_lost(agent)
    agent.store.set(f"round{number}/{agent.rank}", agent.counts().packed())
    keys = [f"round{number}/{w.id}" for w in agent.workers]
    pause = 0.001
    while not agent.store.check(keys):
        if end is not None and time.monotonic() > end:
            gone = [w.name for w, k in zip(agent.workers, keys) if not agent.store.check([k])]
            raise RuntimeError(f"shutdown: {', '.join(gone)} didn't come within {timeout:g} s")
        _check_lost(agent)
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    return list(map(Counts.of, agent.store.multi_get(keys)))


def _check_lost(agent: Agent) -> None:
    for rank, why in agent.lost.items():
        raise RuntimeError(f"shutdown: {agent.workers[rank]} has left without it ({why})")
