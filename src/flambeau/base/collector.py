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
                if not gc.get_freeze_count():  # what a program has frozen stays so
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
