"""Putting off the cyclic collector while a program is captured and compiled.

Compilers make objects by the ten thousand and keep nearly all of them, so that collections find nothing and take a tenth of the time. At the end all
go to the oldest generation: what is cyclic garbage is found by the next full collection, and none runs at once.
"""

from __future__ import annotations

import functools
import gc
import os
import threading
from collections.abc import Callable

__all__ = ["collecting_later"]

_putting_off: set[int] = set()  # threads that turned it off

# How many calls go by, where something was found frozen, before it is asked again.
_ASKED_AGAIN_AFTER = 100
_not_asking = 0


def _nothing_is_frozen() -> bool:
    """Whether the program has frozen nothing. Counting walks over all that is frozen, 80 ms for a million objects: where there is something it
    counts as frozen for a hundred more calls."""
    global _not_asking
    if _not_asking:
        _not_asking -= 1
        return False
    if not gc.get_freeze_count():
        return True
    _not_asking = _ASKED_AGAIN_AFTER
    return False


def collecting_later(fn: Callable) -> Callable:
    """``fn``, while which no automatic collection runs. Only who finds the collector on turns it off, and on again; where threads overlap, the
    first to end turns it on."""

    @functools.wraps(fn)
    def run(*args, **kwargs):
        if not gc.isenabled():
            return fn(*args, **kwargs)
        me = threading.get_ident()
        try:
            _putting_off.add(me)
            gc.disable()
            return fn(*args, **kwargs)
        finally:
            try:
                if _nothing_is_frozen():  # what a program has frozen stays so
                    gc.freeze()
                    gc.unfreeze()
            finally:
                # The handler of a signal may have raised meanwhile.
                gc.enable()
                _putting_off.discard(me)

    return run


def _in_child() -> None:
    """Threads that the child doesn't have turn nothing on again."""
    gone = _putting_off - {threading.get_ident()}
    if gone:
        _putting_off.difference_update(gone)
        if not _putting_off:
            gc.enable()


os.register_at_fork(after_in_child=_in_child)
