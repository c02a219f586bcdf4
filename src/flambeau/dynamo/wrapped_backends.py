"""A wrapper between capture and the backend in this thread: data parallelism splits graphs while its module's forward runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

__all__ = ["around", "wrapped"]


class _Wrapping(threading.local):
    wrap: Callable | None = None  # wrap(backend) -> backend


_state = _Wrapping()


@contextlib.contextmanager
def around(wrap: Callable):
    """In this block graphs go to ``wrap(backend)``."""
    before, _state.wrap = _state.wrap, wrap
    try:
        yield
    finally:
        _state.wrap = before


def wrapped(backend: Callable) -> Callable:
    return backend if _state.wrap is None else _state.wrap(backend)
