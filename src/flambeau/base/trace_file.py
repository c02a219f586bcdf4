"""The event file that TORCH_TRACE asks for, in the form that tlparse reads."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import threading

from .forks import held_while_forking

__all__ = ["TraceFile"]


class TraceFile:
    """The event file of a process, made at the first event. ``compilation.id``: see logs."""

    def __init__(self, folder: str, compilation):
        self.folder, self.compilation, self.file, self.pid = folder, compilation, None, None

    def write(self, kind: str, text: str) -> None:
        """One event: ``kind`` (``"artifact NAME"`` for those without a kind of their own) and its text."""
        kind, _, name = kind.partition(" ")
        event: dict = {kind: {"name": name, "encoding": "string"} if name else {}}
        if kind == "compilation_metrics":  # it is JSON itself, and stands in the line
            event[kind], text = json.loads(text), ""
        frame = getattr(self.compilation, "id", None)
        if frame is not None:
            event |= {"frame_id": frame[0], "frame_compile_id": frame[1], "attempt": 0}
        lines = text.splitlines()
        if lines:
            event["has_payload"] = hashlib.md5("\n".join(lines).encode(), usedforsecurity=False).hexdigest()
        now = datetime.datetime.now()
        head = f"V{now:%m%d %H:%M:%S.%f} {threading.get_native_id()} flambeau/base/trace_file.py:1] {json.dumps(event)}"
        with held_while_forking:
            if self.pid != os.getpid():  # a forked child writes a file of its own
                os.makedirs(self.folder, exist_ok=True)
                path = os.path.join(self.folder, f"dedicated_log_torch_trace_{now:%Y%m%d_%H%M%S}_{os.getpid()}.log")
                self.file, self.pid = open(path, "a", encoding="utf-8"), os.getpid()
            self.file.write("\n\t".join([head, *lines]) + "\n")
            self.file.flush()
