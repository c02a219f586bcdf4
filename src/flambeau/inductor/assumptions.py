"""Graphs of symbolic sizes whose compilation took something for granted that the trace doesn't say: that two sizes are equal, that one isn't 0.

A trace's guards stand when it is compiled (a backward's are checked long before), so such a relation can't become a guard any more. The graph is
compiled for each answer instead, and a call takes the one whose relations hold for its sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from ..base import relations as R
from ..base.expr import Symbol, in_one_symbol
from ..base.shape_env import ShapeEnv

__all__ = ["Assuming"]


class Assuming:
    """A call of a graph that is compiled again where what was taken for granted doesn't hold. ``compile_once(gm)`` gives a graph and the relations
    that it was compiled under. Where the inputs don't tell a symbol of a relation, the operators run one by one."""

    def __init__(self, gm: Any, graph: Callable, assumed: list[Any], env: ShapeEnv, compile_once: Callable):
        self.gm, self.env, self.compile_once = gm, env, compile_once
        self.sources = _sources(gm, env)
        self.made: list[tuple[list[Any], Callable]] = []
        self._keep(graph, assumed)

    def _keep(self, graph: Callable, assumed: list[Any]) -> Callable:
        if any(s not in self.sources for relation in assumed for s in R.symbols(relation)):
            gm = self.gm
            graph, assumed = (lambda *inputs: list(gm(*inputs))), []
        self.made.append((assumed, graph))
        return graph

    def __call__(self, *inputs):
        sizes = {s: (_at(inputs[k], d) - offset) // factor for s, (k, d, factor, offset) in self.sources.items()}
        for assumed, graph in self.made:
            if all(R.evaluate(relation, sizes) for relation in assumed):
                return graph(*inputs)
        with self.env.examples(sizes):
            graph = self._keep(*self.compile_once(self.gm))
        return graph(*inputs)


def _at(value: Any, dim: int | None) -> int:
    return value if dim is None else value.shape[dim]


def _sources(gm: Any, env: ShapeEnv) -> dict[Symbol, tuple[int, int | None, int, int]]:
    """Where the inputs tell a symbol: symbol -> (input, its dimension or None for a number, factor, offset)."""
    found: dict[Symbol, tuple[int, int | None, int, int]] = {}
    for k, node in enumerate(n for n in gm.graph.nodes if n.op == "placeholder"):
        value = node.meta.get("val")
        numbers = enumerate(value.shape) if isinstance(value, _C.TensorBase) else [(None, value)]
        for dim, n in numbers:
            e = env.simplify(n.expr) if hasattr(n, "__sym__") else n
            if (told := in_one_symbol(e)) is not None:
                s, factor, offset = told
                found.setdefault(s, (k, dim, factor, offset))
    return found
