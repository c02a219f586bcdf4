"""What a trace knows of arrays that run backwards: in the graph they are copies that nobody may write, nor the arrays that they show."""

from __future__ import annotations

from ..exc import SkipFrame, unsupported

__all__ = ["FlippedMemory"]


class FlippedMemory:
    def __init__(self):
        self.pairs: list[tuple] = []
        """(storage of the copy in the graph, storage of the array that it shows)"""

    def __bool__(self):
        return bool(self.pairs)

    def add(self, copy, shown) -> None:
        self.pairs.append((copy._storage, shown._storage))

    def refuse_writes(self, nodes) -> None:
        """A call may write into one of these nodes' values: not into an array that one running backwards shows."""
        shown = [base for _, base in self.pairs]
        if any(getattr(n.meta.get("val"), "_storage", None) is base for n in nodes for base in shown):
            unsupported(
                "numpy", "a write into an array that another one shows backwards", "NumPy's array sees the write."
            )

    def refuse_parts(self, val) -> None:
        """A view of such an array leaves captured code: it would be one of the copy."""
        if any(copy is val._storage for copy, _ in self.pairs):
            raise SkipFrame("a view of an array that runs backwards leaves captured code")
