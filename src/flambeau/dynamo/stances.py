"""The reaction of a compiled call that no captured variant fits (``torch.compiler.set_stance``), and callbacks around compilation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import _frame

from ..base.records import slotted
from .guards.dynamic import Seen
from .guards.source import LocalSource

__all__ = [
    "CallbackArgs",
    "Stance",
    "clear_callbacks",
    "current",
    "note_sizes",
    "on_compile_end",
    "on_compile_start",
    "set_current_stance",
]


class Stance:
    """``backend``: takes the place of every backend. The stances that run a function's first call plainly learn from it which sizes vary."""

    FIRST_CALL_PLAINLY = ("eager_then_compile", "aot_eager_then_compile")
    NAMES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", *FIRST_CALL_PLAINLY)

    def __init__(self, name: str, backend: Callable | None = None):
        if name not in self.NAMES:
            raise RuntimeError(f"invalid torch.compile stance {name!r}, expected one of {', '.join(self.NAMES)}")
        if backend is not None and name != "default":
            raise RuntimeError(f"force_backend is for the stance 'default', not {name!r}")
        self.name, self.backend = name, backend

    @property
    def first_call_plainly(self) -> bool:
        return self.name in self.FIRST_CALL_PLAINLY


_stance = Stance("default")


def current() -> Stance:
    return _stance


def set_current_stance(stance: Stance) -> Stance:
    """The stance until now. Under ``"force_eager"`` what is captured already isn't used either."""
    global _stance
    old, _stance = _stance, stance
    _frame.set_plainly(stance.name == "force_eager")
    return old


def note_sizes(seen: Seen, names: list[str], args: tuple) -> None:
    """The sizes and numbers among the arguments of a call that runs plainly: what differs at the next is a symbol from the start."""
    for i, (name, value) in enumerate(zip(names, args)):
        where = LocalSource(name, i).name
        if isinstance(getattr(value, "shape", None), tuple):
            seen.tensor(where, tuple(value.shape))
        elif type(value) in (int, float):
            seen.number(where, value)


@slotted
class CallbackArgs:
    """What a callback is told: ``callback_trigger`` (``"DYNAMO"``), and the frame's number with how often it was compiled before."""

    callback_trigger: str
    compile_id: str


_start: list[Callable[[CallbackArgs], Any]] = []
_end: list[Callable[[CallbackArgs], Any]] = []


def on_compile_start(callback: Callable[[CallbackArgs], Any]) -> Callable[[CallbackArgs], Any]:
    """``callback(args)`` is called before each frame is captured. Returns the callback, so this is a decorator too."""
    _start.append(callback)
    return callback


def on_compile_end(callback: Callable[[CallbackArgs], Any]) -> Callable[[CallbackArgs], Any]:
    """``callback(args)`` is called after each frame was captured, or could not be."""
    _end.append(callback)
    return callback


def clear_callbacks() -> None:
    _start.clear()
    _end.clear()


class around_compilation:  # noqa: N801
    """Calls the callbacks around the capture of frame ``frame``, which was compiled ``before`` times."""

    def __init__(self, frame: int, before: int):
        self.args = CallbackArgs("DYNAMO", f"{frame}/{before}") if _start or _end else None

    def __enter__(self):
        for callback in _start:
            callback(self.args)
        return self

    def __exit__(self, *exc):
        for callback in _end:
            callback(self.args)
        return False
