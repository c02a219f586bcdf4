"""The user's lines of what a backward pass computes: those of the forward operator whose node of the backward graph runs."""

from __future__ import annotations

import bisect
from typing import Any

from .. import _C

__all__ = ["ForwardLines"]


class ForwardLines:
    """Nodes of the backward graph are numbered in the order in which they are made, so the nodes that a call made are a range."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._lines: list[Any] = []

    def ran(self, line: Any) -> None:
        """All nodes since the last time were made by this line."""
        self._ends.append(_C.node_count())
        self._lines.append(line)

    def of_backward(self) -> Any:
        """The line of the node that a backward pass of this thread applies; None without one."""
        number = _C.backward_sequence()
        at = bisect.bisect_right(self._ends, number)
        return self._lines[at] if number >= 0 and at < len(self._lines) else None
