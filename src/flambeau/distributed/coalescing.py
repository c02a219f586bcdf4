"""Several collectives waited for as one."""

from __future__ import annotations

import contextlib

from . import world
from .process_group import ProcessGroup
from .work import Work

__all__ = ["coalescing", "gathering"]


class Manager:
    """The operations of one block. ``wait()`` waits for all of them."""

    def __init__(self):
        self.works: list[Work] = []

    def append(self, work: Work | None) -> None:
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        for work in self.works:
            work.wait()

    def joined(self, results: list) -> Work:
        """One Work of all, done when the last is."""
        out = Work("coalesced operations", results)
        left = len(self.works)
        if not left:
            out._finish()

        def one(future):
            nonlocal left
            left -= 1
            if not left:
                out._finish(next((w.exception() for w in self.works if w.exception() is not None), None))

        for work in self.works:
            work.get_future().add_done_callback(one)
        return out


@contextlib.contextmanager
def coalescing(group=None, device=None, async_ops: bool | None = False):
    """``with _coalescing_manager(async_ops=True) as cm: ...; cm.wait()``. The collectives in the block are started; without ``async_ops`` they are
    done at its end."""
    pg = world.of(group)
    if pg._coalesced is not None:
        raise ValueError("ProcessGroup has non-empty op list at the start of coalescing")
    manager = Manager()
    pg._coalesced = manager
    try:
        yield manager
    finally:
        pg._coalesced = None
    if not async_ops:
        manager.wait()


def gathering(pg: ProcessGroup) -> Manager | None:
    """The block that the group's operations are in."""
    return pg._coalesced
