"""The frames that this thread is tracing. A leaf module: variables ask it for the current frame, the executor keeps it."""

from __future__ import annotations

import threading
from typing import Any


class _Active(threading.local):
    """The frames that this thread is tracing, innermost last."""

    def __init__(self):
        self.frames: list[Any] = []


_active = _Active()


def current() -> Any:
    """The innermost ``executor.Frame`` being traced, for variables that are asked something outside of an operation."""
    return _active.frames[-1]


def active_frames() -> list[Any]:
    """The frames being traced on this thread, innermost last. The executor appends and pops."""
    return _active.frames
