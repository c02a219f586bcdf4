"""``torch._C._profiler``: where a program is, taken cheaply and worded later."""

from __future__ import annotations

import sys
import traceback

__all__ = ["CapturedTraceback", "gather_traceback", "symbolize_tracebacks"]


class CapturedTraceback:
    """The Python frames of a moment, innermost first: (code, line)."""

    __slots__ = ("frames",)

    def __init__(self, frames: list):
        self.frames = frames


def gather_traceback(python: bool, script: bool = False, cpp: bool = False) -> CapturedTraceback:
    """The frames of the caller and of those that called it. Of native code and of scripts there are none."""
    frames = []
    if python:
        for frame, line in traceback.walk_stack(sys._getframe(1)):
            frames.append((frame.f_code, line))
    return CapturedTraceback(frames)


def symbolize_tracebacks(tracebacks: list[CapturedTraceback]) -> list[list[dict]]:
    """For each traceback its frames as ``{"filename", "line", "name"}``, innermost first."""
    return [
        [{"filename": code.co_filename, "line": line, "name": code.co_name} for code, line in found.frames]
        for found in tracebacks
    ]
