"""The event file that TORCH_TRACE asks for, in the form that tlparse reads."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import sys
import threading
import time

from .forks import held_while_forking

__all__ = ["TraceFile"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _frames(compiled: str) -> list[tuple[str, int, str]]:
    """(file, line, function) of the program's frames, outermost first, and of the frame that is compiled ("FILE:LINE NAME")."""
    place, _, name = compiled.rpartition(" ")
    file, _, line = place.rpartition(":")
    found, frame = [(file, int(line), name)], sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            found.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return found[::-1]


def _timeline(metrics: dict) -> list[dict]:
    """Events of a Chrome trace: a frame that was compiled just now, capture and backend one after the other."""
    total = metrics["capture_time_s"] + metrics["backend_compile_time_s"]
    begin = time.time() - total
    spans = (
        (f"compile {metrics['co_name']}", begin, total),
        ("capture", begin, metrics["capture_time_s"]),
        (f"backend {metrics['backend']}", begin + metrics["capture_time_s"], metrics["backend_compile_time_s"]),
    )
    shared = {"ph": "X", "cat": "dynamo_timed", "pid": os.getpid(), "tid": threading.get_native_id(), "args": metrics}
    return [{"name": name, "ts": at * 1e6, "dur": seconds * 1e6, **shared} for name, at, seconds in spans]


class TraceFile:
    """The event file of a process, made at the first event. ``compilation.id``: see logs."""

    def __init__(self, folder: str, compilation):
        self.folder, self.compilation, self.file, self.pid = folder, compilation, None, None
        self.strings: dict[str, int] = {}  # names of files by their numbers in the events

    def write(self, kind: str, text: str) -> None:
        """One event: ``kind`` (``"artifact NAME"`` for those without a kind of their own) and its text."""
        kind, _, name = kind.partition(" ")
        if kind == "dynamo_start":
            stack = [
                {"filename": self._number(file), "line": line, "name": function}
                for file, line, function in _frames(text)
            ]
            self._event({kind: {"stack": stack}})
        elif kind == "compilation_metrics":  # it is JSON itself, and stands in the line
            metrics = json.loads(text)
            self._event({kind: metrics})
            for span in _timeline(metrics):
                self._event({"chromium_event": {}}, json.dumps(span))
        else:
            self._event({kind: {"name": name, "encoding": "string"} if name else {}}, text)

    def _number(self, text: str) -> int:
        number = self.strings.get(text)
        if number is None:
            number = len(self.strings)
            self._line({"str": [text, number]})
            self.strings[text] = number
        return number

    def _event(self, event: dict, text: str = "") -> None:
        frame = getattr(self.compilation, "id", None)
        if frame is not None:
            event |= {"frame_id": frame[0], "frame_compile_id": frame[1], "attempt": 0}
        lines = text.splitlines()
        if lines:
            event["has_payload"] = hashlib.md5("\n".join(lines).encode(), usedforsecurity=False).hexdigest()
        self._line(event, lines)

    def _line(self, event: dict, lines: list[str] | tuple[()] = ()) -> None:
        now = datetime.datetime.now()
        start = f"V{now:%m%d %H:%M:%S.%f} {threading.get_native_id()} flambeau/base/trace_file.py:1] "
        with held_while_forking:
            if self.pid != os.getpid():  # a forked child writes a file of its own
                os.makedirs(self.folder, exist_ok=True)
                path = os.path.join(self.folder, f"dedicated_log_torch_trace_{now:%Y%m%d_%H%M%S}_{os.getpid()}.log")
                self.file, self.pid = open(path, "a", encoding="utf-8"), os.getpid()
                for text, number in self.strings.items():
                    self.file.write(f"{start}{json.dumps({'str': [text, number]})}\n")
            self.file.write("\n\t".join([start + json.dumps(event), *lines]) + "\n")
            self.file.flush()
