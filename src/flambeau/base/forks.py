"""Forking while other threads import or compile: the fork waits for what must not be cut in the middle, so that the child can go on."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from collections.abc import Callable

__all__ = ["at_rest", "held_while_forking"]

held_while_forking = threading.RLock()  # a single lock for every use, so that no order of locking can be wrong

at_rest: list[Callable[[], object]] = []  # called by a fork that has the lock: native threads come to rest

PATIENCE = 5.0  # seconds a fork waits for imports of other threads that make no headway
MOST = 60.0  # seconds it waits for them at most

_locks = getattr(importlib._bootstrap, "_module_locks", {})


def _imports_of_others() -> list[str]:
    """Modules that other threads are importing. Their locks would be held for good in the child."""
    me = threading.get_ident()
    held = ((name, ref()) for name, ref in list(_locks.items()))
    return [name for name, lock in held if lock is not None and lock.owner not in (None, me)]


def _before() -> None:
    """Take the lock at a moment when no other thread imports. One that does may need the lock itself."""
    begun = seen = time.monotonic()
    last: list[str] = []
    while True:
        held_while_forking.acquire()
        for rest in at_rest:
            rest()
        names, now = _imports_of_others(), time.monotonic()
        if names != last:
            last, seen = names, now
        if not names or now - seen > PATIENCE or now - begun > MOST:
            return
        held_while_forking.release()
        time.sleep(0.001)


def _in_child() -> None:
    """An import that was cut all the same begins again when somebody wants the module."""
    for name in _imports_of_others():
        sys.modules.pop(name, None)
        _locks.pop(name, None)
    held_while_forking.release()


os.register_at_fork(before=_before, after_in_parent=held_while_forking.release, after_in_child=_in_child)
