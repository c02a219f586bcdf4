"""The guards that captured code has on the process, made from the table of base/process_state.py."""

from __future__ import annotations

from typing import Any

from flambeau import _C, _frame
from flambeau.base.process_state import TABLE, State

from .source import ConstSource
from .tree import GuardBuilder

__all__ = ["ProcessGuards"]


class Unchanged:
    """Guard: this row of the table reads as it did."""

    def __init__(self, row: State, value: Any):
        self.row, self.value = row, value

    def __call__(self, _) -> bool:
        return self.row.read() == self.value

    def __repr__(self):
        return f"{self.row.name} {self.value!r}"


class ProcessGuards:
    """The state of the process when a capture begins. While tracing modes are off, and the program may change the rest."""

    def __init__(self):
        self.fields = tuple(_C.tls(name) for name in _frame.STATE)
        self.values = [(row, row.read()) for row in TABLE]

    def field(self, name: str) -> int:
        return self.fields[_frame.STATE[name]]

    def add(self, guards: GuardBuilder) -> None:
        everything = ConstSource(None, "global state")
        guards.add(everything, "GLOBAL_STATE", self.fields)
        for row, value in self.values:
            if row.held is not None:
                table, key = row.held
                guards.fact(ConstSource(table, "process state"), key, value)
            elif row.beyond_depth and self.field(row.field):
                guards.add(everything, "CALL", Unchanged(row, value))
