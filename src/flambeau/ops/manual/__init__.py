"""The manual of the operators: what a schema can't say, a sentence or two and an example. A text file has the operators of a field.

An entry is the operator's name and a colon, its sentences, and an example as it is typed and printed in a session with
``import flambeau as torch``.
The files are read when the first help is asked for. tests/core/test_describe.py runs the examples.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

__all__ = ["entries", "entry"]

_HEAD = re.compile(r"^(\w+): (.*)$")


@functools.cache
def entries() -> dict[str, tuple[str, str | None]]:
    """{operator: (sentences, example or None)} of all files. ValueError for an operator that has two entries."""
    found: dict[str, tuple[str, str | None]] = {}
    for file in sorted(Path(__file__).parent.glob("*.txt")):
        for block in file.read_text(encoding="utf-8").split("\n\n"):
            head = _HEAD.match(block.partition("\n")[0])
            if head is None:
                continue  # the first lines of a file say what it has
            if head[1] in found:
                raise ValueError(f"{file.name}: the operator {head[1]} has two entries")
            text, mark, example = block[head.start(2) :].partition("\n>>> ")
            found[head[1]] = (text.strip(), f">>> {example.rstrip()}" if mark else None)
    return found


def entry(name: str) -> tuple[str, str | None] | None:
    """(sentences, example) of an operator; None where it has no entry."""
    return entries().get(name)
