"""Descriptions of the launches of a compiled graph for profiles and reports. They are kept on disk with the graph."""

from __future__ import annotations

import linecache
from typing import Any

from ...base.records import astuple, slotted
from ...fx.targets import packet_of

__all__ = ["Line", "Note", "Origin", "origin", "read_notes", "write_notes"]


@slotted
class Line:
    """A line of the user's, with its text: a graph from disk may have been compiled when the line stood elsewhere."""

    file: str
    number: int
    function: str
    text: str

    def now(self) -> int:
        """Where the line is in the file today: its number, or the nearest line with its text; 0 when there is none."""
        lines = linecache.getlines(self.file)
        if not self.text or not lines:
            return self.number
        found = [i for i, line in enumerate(lines, 1) if line.strip() == self.text]
        return min(found, key=lambda i: abs(i - self.number), default=0)


@slotted
class Origin:
    """An operator of the graph that was lowered: its node's name, the operator's, and the user's line."""

    node: str
    operator: str
    line: Line | None


@slotted
class Note:
    """``kind``: "kernel" (loops made by the compiler), "product", "native" (a kernel written by hand), "call" (Python), "rows" and "planes" (several
    of them, launched as one: ``parts``). ``label``: what it computes. ``bytes``: of the distinct memory that it reads and writes,
    ``flops``: operations on numbers that it makes; of example sizes, where sizes are symbols. ``symbol``: the function's name in the code."""

    kind: str
    label: str
    symbol: str
    bytes: int
    flops: int
    origins: tuple[Origin, ...]
    parts: tuple[Note, ...] = ()

    @property
    def lines(self) -> list[Line]:
        return list(dict.fromkeys(o.line for o in self.origins if o.line is not None))

    @property
    def operators(self) -> list[str]:
        return list(dict.fromkeys(o.operator for o in self.origins))


def origin(node: Any) -> Origin:
    """Of a node of an fx graph."""
    frame = node.meta.get("stack")
    line = None
    if hasattr(frame, "filename"):  # a graph that was exported has the text of a stack
        line = Line(frame.filename, frame.lineno, frame.name, linecache.getline(frame.filename, frame.lineno).strip())
    packet = packet_of(node.target) or node.target
    return Origin(node.name, getattr(packet, "__name__", str(packet)), line)


def write_notes(notes: list[Note]) -> list:
    """Rows of plain values."""
    return [astuple(n) for n in notes]


def read_notes(rows: list) -> list[Note]:
    return [_read(row) for row in rows]


def _read(row: Any) -> Note:
    kind, label, symbol, moved, flops, origins, parts = row
    found = tuple(Origin(node, op, None if line is None else Line(*line)) for node, op, line in origins)
    return Note(kind, label, symbol, moved, flops, found, tuple(map(_read, parts)))
