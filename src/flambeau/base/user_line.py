"""The line of the user's program that something belongs to."""

from __future__ import annotations

import linecache
import sys

from .records import slotted

__all__ = ["UserLine", "is_user_frame", "user_line"]


@slotted
class UserLine:
    """Where a program is: its line ``number`` of ``file``, in ``function``, and the text of that line."""

    file: str
    number: int
    function: str
    code: str

    def __str__(self) -> str:
        return f'File "{self.file}", line {self.number}, in {self.function}, code: {self.code}'


def is_user_frame(frame) -> bool:
    """Whether the frame runs code of a program."""
    name = frame.f_globals.get("__name__", "flambeau")  # generated code has none
    return not name.startswith("flambeau") or name.startswith("flambeau.testing")


def user_line() -> UserLine | None:
    """The innermost frame outside flambeau."""
    frame = sys._getframe(1)
    while frame is not None:
        if is_user_frame(frame):
            code = frame.f_code
            text = linecache.getline(code.co_filename, frame.f_lineno).strip()
            return UserLine(code.co_filename, frame.f_lineno, code.co_name, text)
        frame = frame.f_back
    return None
