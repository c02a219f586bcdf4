"""Passes on what programs write, whole lines with the rank in front, and keeps the end of it for the report of a failure."""

from __future__ import annotations

import collections
import contextlib
import threading

__all__ = ["Output", "is_consequence", "last_traceback"]

_KEPT = 200  # lines of a rank's stderr that are kept for its traceback
_lock = threading.Lock()  # one line at a time
# What a rank writes that ended because of another, or of the server of its round.
_CONSEQUENCES = (
    "] ended: ",
    "has left the job",
    "gave up (a time-out",
    "the connection to the store at (",
    "The client socket has timed out",
)


def is_consequence(text: str) -> bool:
    """Whether an error's text says that another rank, or the server, is the cause."""
    return any(mark in text for mark in _CONSEQUENCES)


def last_traceback(text: str) -> str:
    """The last traceback in a text, to its end."""
    return text[max(0, text.rfind("Traceback (most recent call last)")) :] if "Traceback (most" in text else ""


class Output:
    """The streams of one process. ``head`` stands in front of each line that has none of a rank's."""

    def __init__(self, head: str):
        self.head = head.encode()
        self.kept: collections.deque[bytes] = collections.deque(maxlen=_KEPT)
        self.threads: list[threading.Thread] = []

    def follow(self, stream, to, log: str, keep: bool) -> None:
        """Copy ``stream`` to ``to`` (None: nowhere) and to the file ``log`` (empty: none)."""
        file = open(log, "wb") if log else None
        thread = threading.Thread(target=self._copy, args=(stream, to, file, keep), daemon=True)
        thread.start()
        self.threads.append(thread)

    def _copy(self, stream, to, file, keep: bool) -> None:
        for line in iter(stream.readline, b""):
            if keep:
                self.kept.append(line)
            if file is not None:
                file.write(line)
                file.flush()
            if to is not None:
                head = b"" if line.startswith(b"[rank ") else self.head
                with _lock, contextlib.suppress(OSError, ValueError):
                    to.buffer.write(head + line)
                    to.flush()
        stream.close()
        if file is not None:
            file.close()

    def text(self) -> str:
        """The end of what it wrote to standard error."""
        return b"".join(list(self.kept)).decode(errors="replace")

    def join(self) -> None:
        """Wait until the rest is passed on; not for children of the process that hold its streams."""
        for thread in self.threads:
            thread.join(1.0)
