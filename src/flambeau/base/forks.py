"""Forking while other threads import or compile: the fork waits for what must not be cut in the middle, so that the child can go on."""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable

__all__ = ["at_rest", "held_while_forking"]

held_while_forking = threading.RLock()  # a single lock for every use, so that no order of locking can be wrong

at_rest: list[Callable[[], object]] = []  # called by a fork that has the lock: native threads come to rest

PATIENCE = 5.0  # seconds a fork waits for imports of other threads


def _imports_of_others() -> bool:
    """Whether another thread is importing a module. Its lock would be held for good in the child."""
    me = threading.get_ident()
    locks = getattr(importlib._bootstrap, "_module_locks", {})
    return any(lock is not None and lock.owner not in (None, me) for lock in [ref() for ref in list(locks.values())])


def _wait_for_imports() -> None:
    end = time.monotonic() + PATIENCE
    while _imports_of_others() and time.monotonic() < end:
        time.sleep(0.001)


def _before() -> None:
    _wait_for_imports()
    held_while_forking.acquire()
    for rest in at_rest:
        rest()


os.register_at_fork(
    before=_before, after_in_parent=held_while_forking.release, after_in_child=held_while_forking.release
)
