"""Lists, dicts and sets that a native loop changed, and arrays whose shape it changed: how many items they have depends on data."""

from __future__ import annotations

import collections

import numpy as np

from flambeau.loops.containers import take

from ...variables.base import Variable

__all__ = ["GrownVariable", "grown"]


class GrownVariable(Variable):
    """``node``: of the number under which the object waits outside of the graph. Whatever is done with it happens outside. ``first``: items of a
    list before those."""

    mutable = True
    first: list[Variable] = []

    def python_type(self):
        return self.kind

    def reconstruct(self, cg):
        if not self.first:
            cg.call_function(take, lambda: cg.graph_output(self.node), 1)
            return

        def given():
            cg.all(self.first)
            cg.graph_output(self.node)

        cg.call_function(joined, given, len(self.first) + 1)


def joined(*given) -> list:
    """The first items of a list, and the object with the last number."""
    *first, number = given
    return [*first, *take(number)]


def grown(v: Variable, number: Variable, kind: str, behind: bool = False) -> None:
    """The variable, wherever it is kept, holds what the loop has made of it from here on. ``behind``: what it holds so far stays before that."""
    v.first = [*v.elements] if behind else []  # type: ignore[attr-defined]
    v.__class__ = GrownVariable
    v.node, v.kind = (
        number.node,
        {"list": list, "dict": dict, "set": set, "deque": collections.deque, "array": np.ndarray}[kind],
    )  # type: ignore[attr-defined]
