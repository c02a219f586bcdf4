"""Descriptions of the launches of a compiled graph for profiles and reports. They are kept on disk with the graph."""

from __future__ import annotations

import linecache
from typing import Any

from ...base.records import slotted
from ...fx.targets import packet_of

__all__ = ["Line", "Note", "Origin", "origin", "read_notes", "write_notes"]


@slotted
class Line:
    """A line of the user's, with its text: a graph from disk may have been compiled when the line stood elsewhere."""

    file: str
    number: int
    function: str
    text: str

    def __hash__(self):
        return hash((self.file, self.number))

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

    def __hash__(self):
        return hash(self.node)


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


def origin(node: Any, lines: dict) -> Origin:
    """Of a node of an fx graph. ``lines``: those that were read already."""
    frame = node.meta.get("stack")
    line = None
    if hasattr(frame, "filename"):  # a graph that was exported has the text of a stack
        place = frame.filename, frame.lineno, frame.name
        line = lines.get(place)
        if line is None:
            line = lines[place] = Line(*place, linecache.getline(*place[:2]).strip())
    packet = packet_of(node.target) or node.target
    name = getattr(packet, "__name__", None)
    return Origin(node.name, str(packet) if name is None else name, line)


def write_notes(notes: list[Note]) -> list:
    """Rows of plain values."""
    return list(map(_row, notes))


def _row(note: Note) -> tuple:
    origins = tuple((o.node, o.operator, _place(o.line)) for o in note.origins)
    return (note.kind, note.label, note.symbol, note.bytes, note.flops, origins, tuple(map(_row, note.parts)))


def _place(line: Line | None) -> tuple | None:
    return None if line is None else (line.file, line.number, line.function, line.text)


def read_notes(rows: list) -> list[Note]:
    return [_read(row) for row in rows]


def _read(row: Any) -> Note:
    kind, label, symbol, moved, flops, origins, parts = row
    found = tuple(Origin(node, op, None if line is None else Line(*line)) for node, op, line in origins)
    return Note(kind, label, symbol, moved, flops, found, tuple(map(_read, parts)))
