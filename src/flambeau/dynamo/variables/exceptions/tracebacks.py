"""Tracebacks of exceptions that are raised while tracing: the lines of plain Python, in frames that never ran."""

from __future__ import annotations

import types
from typing import NamedTuple

from flambeau import _frame

from ...exc import unsupported
from ...rules.reflect import has_item
from ...tracing import world
from ..base import Variable
from ..objects.namespaces import NamespaceDict
from ..values.constant import ConstantVariable

__all__ = ["Entry", "ExceptionTraceback", "TracebackVariable", "push_traceback"]


class Entry(NamedTuple):
    """A frame that an exception passed through: its code, and where it was."""

    code: types.CodeType
    globals: dict
    lasti: int
    line: int


def push_traceback(cg, entries: list[Entry], before) -> None:
    """Push a traceback with these entries, the last one in front; ``before()`` pushes the one behind them."""
    before()
    for e in entries:
        t = cg.temp()
        cg.emit("STORE_FAST", t)

        def push(e=e, t=t):
            cg.emit("LOAD_FAST", t)
            for c in e:
                cg.load_const(c)

        cg.call_function(_frame.traceback_entry, push, 5)


class ExceptionTraceback(Variable):
    """The traceback of an exception that existed before: what it says differs from call to call."""

    def __init__(self, value, source):
        super().__init__(source)
        self.value = value

    def python_type(self):
        return types.TracebackType if self.value is not None else type(None)

    def getattr(self, tx, name):
        if self.value is None:
            unsupported("traceback", "the traceback of an exception that has none yet")
        return world.library_attr(tx, self, self.value, self.source, name)


class TracebackVariable(Variable):
    """The traceback that ``exc`` has after its first ``count`` entries."""

    def __init__(self, exc, count: int):
        super().__init__()
        self.exc, self.count = exc, count
        self.entries = list(exc.raised[:count])
        self.base = exc.traceback
        self.entry = self.entries[-1]

    def python_type(self):
        return types.TracebackType

    def truth(self, tx):
        return True

    def getattr(self, tx, name):
        if name == "tb_lineno":
            return ConstantVariable(self.entry.line)
        if name == "tb_lasti":
            return ConstantVariable(self.entry.lasti)
        if name == "tb_frame":
            return FrameVariable(self)
        if name == "tb_next":
            if self.count > 1:
                return TracebackVariable(self.exc, self.count - 1)
            if self.base is not None:
                return self.base
            if self.exc.source is None:
                return ConstantVariable(None)
        unsupported("traceback", f"reading {name} of a traceback")

    def hasattr(self, tx, name):
        return has_item(types.TracebackType, name)

    def reconstruct(self, cg):
        def before():
            if self.base is not None:
                cg(self.base)
            elif self.exc.source is not None:
                self.exc.source.load(cg)
                cg.load_attr("__traceback__")
            else:
                cg.load_const(None)

        push_traceback(cg, self.entries, before)


class FrameVariable(Variable):
    """``tb_frame`` of a frame that was traced."""

    def __init__(self, tb: TracebackVariable):
        super().__init__()
        self.tb = tb

    def python_type(self):
        return types.FrameType

    def truth(self, tx):
        return True

    def getattr(self, tx, name):
        e = self.tb.entry
        if name == "f_code":
            return ConstantVariable(e.code)
        if name == "f_globals":
            return NamespaceDict(e.globals, f"globals<{e.globals.get('__name__')}>")
        unsupported(
            "frame", f"reading {name} of a frame", "Only parts of the frames of a traceback are known while tracing."
        )

    def reconstruct(self, cg):
        cg(self.tb)
        cg.load_attr("tb_frame")
