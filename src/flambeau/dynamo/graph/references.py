"""What a trace knows of references: generators, weak references, frames of functions that are called."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

__all__ = ["References"]


class References:
    def __init__(self):
        self.generators: weakref.WeakSet = weakref.WeakSet()
        """Those of traced code."""
        self.generator_dropped = False
        """Whether one was that is suspended inside try or with: the interpreter closes it there and then."""
        self.weakly_known: weakref.WeakSet = weakref.WeakSet()
        """What weak references made while tracing lead to."""
        self.weak_references: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        """Those without a callback, by what they lead to."""
        self.calling_references: weakref.WeakSet = weakref.WeakSet()
        """Those with one."""
        self.inlined: list[weakref.ref] = []
        """Frames of functions that are called."""
        self.at_end: list[Callable[[], Any]] = []
        """What lets go of the trace."""

    def release(self) -> None:
        for end in self.at_end:
            end()
        self.at_end.clear()
        for frame in filter(None, [ref() for ref in self.inlined]):  # in cycles with what they made
            vars(frame).clear()
            frame.started = False  # whatever is a generator of it asks
        self.inlined.clear()
