"""What a row is, and the tables that rows are entered in."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..types import Type, from_node, parse

__all__ = ["NUMBERS", "PRIM", "ROWS", "Row", "prim", "row", "slices_of"]

# The signature of arithmetic: of two numbers, with the promoted type.
NUMBERS = "number, number -> ="


class Row:
    """``takes``: the types of positional arguments, ``optional`` those of keywords."""

    def __init__(self, signature: str, fn: Callable, keywords: dict[str, str] | None = None):
        takes, _, gives = signature.rpartition("->")
        node = ast.parse(f"[{takes}]", mode="eval").body
        self.takes: tuple[Type, ...] = tuple(map(from_node, node.elts))  # type: ignore[attr-defined]
        self.gives = None if gives.strip() == "=" else parse(gives.strip())
        self.fn = fn
        self.keywords = {name: parse(t) for name, t in (keywords or {}).items()}


ROWS: dict[str, list[Row]] = {}
PRIM: dict[str, list[Row]] = {}


def row(names: str, fn: Callable, *signatures: str, table=None, **keywords: str) -> None:
    """Enter rows of ``aten``'s operators of these names: one a signature, each with these keywords by their types."""
    for name in names.split():
        held = (ROWS if table is None else table).setdefault(name, [])
        held += [Row(s, fn, keywords) for s in signatures]


def prim(names: str, fn: Callable, *signatures: str) -> None:
    """Enter rows of ``prim``'s operators."""
    row(names, fn, *signatures, table=PRIM)


def slices_of(kind: str) -> list[str]:
    """The signatures of ``x[start:end:step]`` of values of this type."""
    bounds = ("", ", Optional[int]", ", Optional[int], Optional[int]", ", Optional[int], Optional[int], int")
    return [f"{kind}{given} -> {kind}" for given in bounds]
