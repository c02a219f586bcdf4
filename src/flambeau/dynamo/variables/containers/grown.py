"""Lists, dicts and sets that a native loop changed: how many items they have depends on data."""

from __future__ import annotations

from flambeau.loops.containers import take

from ..base import Variable

__all__ = ["GrownVariable", "grown"]


class GrownVariable(Variable):
    """``node``: of the number under which the object waits outside of the graph. Whatever is done with it happens outside."""

    mutable = True

    def python_type(self):
        return self.kind

    def reconstruct(self, cg):
        cg.call_function(take, lambda: cg.graph_output(self.node), 1)


def grown(v: Variable, number: Variable, kind: str) -> None:
    """The variable, wherever it is kept, holds what the loop has made of it from here on."""
    v.__class__ = GrownVariable
    v.node, v.kind = number.node, {"list": list, "dict": dict, "set": set}[kind]  # type: ignore[attr-defined]
