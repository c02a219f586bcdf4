"""What a compiler is told of a graph beside its nodes."""

from __future__ import annotations

from typing import Any

from ..base.records import made_by, slotted

__all__ = ["GraphFacts", "facts_of"]


@slotted(frozen=False)
class GraphFacts:
    """Inputs and outputs are told by their positions.

    ``entry``: a name that determines the graph, None when it has none.
    ``output_aliases`` (output -> input): outputs that may overwrite an input.
    ``untouched_at_errors``: whether an error of the graph has to find its inputs as they were.
    ``held``: inputs that are parameters and buffers of modules and that the graph doesn't write.
    ``free``: outputs that nobody but another compiled graph sees, so that the order in which their elements lie is the compiler's choice.
    ``orders`` (input -> dimensions, the outermost in memory first): inputs that another graph has laid otherwise than ``meta["val"]`` says.
    """

    entry: str | None = None
    output_aliases: dict[int, int] = made_by(dict)
    untouched_at_errors: bool = False
    held: tuple[int, ...] = ()
    free: tuple[int, ...] = ()
    orders: dict[int, tuple[int, ...]] = made_by(dict)


def facts_of(gm: Any) -> GraphFacts:
    """Of a graph module; nothing is known of one that has none."""
    return getattr(gm, "facts", None) or GraphFacts()  # type: ignore[call-arg]
