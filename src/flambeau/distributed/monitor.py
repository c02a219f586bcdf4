"""monitored_barrier over the group's store: it names the ranks that have not arrived."""

from __future__ import annotations

import time

from .errors import DistBackendError, DistStoreError
from .process_group import ProcessGroup
from .store import seconds

__all__ = ["waited_for"]


def waited_for(store, pg: ProcessGroup, key: str, timeout, wait_all: bool) -> None:
    """Rank 0 of the group waits for all others, and tells them the outcome. RuntimeError with the global ranks that are missing."""
    limit = seconds(timeout)
    end = time.monotonic() + limit
    names = [f"{key}/{k}" for k in range(pg.size())]
    if pg.rank() != 0:
        try:
            store.wait([f"{key}/done"], limit + 10.0)
        except DistStoreError:
            raise DistBackendError(
                f"Rank {pg._ranks[pg.rank()]} successfully reached monitoredBarrier, but rank 0 did not answer"
            ) from None
        said = store.get(f"{key}/done").decode()
        if said:
            raise DistBackendError(
                f"Rank {pg._ranks[pg.rank()]} successfully reached monitoredBarrier, but received errors while waiting for rank 0: {said}"
            )
        return
    missing: list[int] = []
    if limit <= 0:
        raise DistBackendError(f"[Rank 0]: Rank {pg._ranks[0]} timed out in monitoredBarrier after 0 ms.")
    for k, name in enumerate(names):
        try:
            store.wait([name], max(0.001, end - time.monotonic()))
        except DistStoreError:
            missing.append(pg._ranks[k])
            if not wait_all:
                break
    text = ""
    if missing:
        who = f"Ranks {', '.join(map(str, missing))}" if wait_all else f"Rank {missing[0]}"
        text = f"{who} failed to pass monitoredBarrier in {round(limit * 1000)} ms"
    store.set(f"{key}/done", text)
    if text:
        raise DistBackendError(f"[Rank 0]: {text}")
