"""What became of the loops that were looked at: for ``explain`` and the log."""

from __future__ import annotations

from flambeau.base import logs

__all__ = ["LOG", "NOTES", "key_of", "place_of", "stays"]

LOG = logs.artifact("loops", "which loops became native ones, and why others did not")
NOTES: dict[str, str] = {}
"""What became of each loop that was looked at since explain() last began, by function, file and line."""


def place_of(tx, header: int) -> str:
    return f"{tx.code.co_name} ({tx.code.co_filename}:{tx.insts[header].line})"


def key_of(tx, header: int) -> str:
    """Of the loop in SITES."""
    return f"{place_of(tx, header)} {header}"


def stays(where: str, reason: str) -> bool:
    """Note why the loop isn't native: False."""
    LOG("loop in %s stays Python: %s", where, reason)
    if not NOTES.get(where, "").startswith("native"):
        NOTES[where] = f"stays Python: {reason}"
    return False
