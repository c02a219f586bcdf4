"""Find a small pattern graph inside a graph, and replace it.

The match is anchored at the pattern's output and goes up the arguments; inner nodes must not be used outside the match.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_arg
from .tracer import symbolic_trace

__all__ = ["Match", "SubgraphMatcher", "replace_pattern"]


class Match(NamedTuple):
    """``anchor`` is the node matched by the pattern's (last) output; ``nodes_map`` takes pattern nodes to graph nodes
    or constants.
    """

    anchor: Node
    nodes_map: dict[Node, Any]


class SubgraphMatcher:
    """``SubgraphMatcher(pattern).match(graph)``: the non-overlapping matches, first come first."""

    def __init__(self, pattern: Graph):
        self.pattern = pattern
        out = pattern.output_node()
        found: list[Node] = []
        map_arg(out.args[0], found.append)
        if not found:
            raise ValueError("the pattern's output contains no node")
        self.outputs = found

    def match(self, graph: Graph) -> list[Match]:
        matches: list[Match] = []
        taken: set[Node] = set()
        for node in graph.nodes:
            env: dict[Node, Any] = {}
            if len(self.outputs) != 1 or not self._same(self.outputs[0], node, env):
                continue
            inner = [g for p, g in env.items() if p.op not in ("placeholder", "get_attr")]
            inside = set(inner)
            if inside & taken or any(u not in inside for g in inner if g is not node for u in g.users):
                continue
            taken |= inside
            matches.append(Match(node, env))
        return matches

    def _same(self, p: Any, g: Any, env: dict[Node, Any]) -> bool:
        if isinstance(p, Node):
            if p in env:
                return env[p] is g
            if p.op == "placeholder":
                # As in torch.fx an input of the pattern stands for a node, not for a literal.
                env[p] = g
                return isinstance(g, Node)
            if not isinstance(g, Node) or p.op != g.op or p.target != g.target:
                return False
            env[p] = g
            return self._same(p.args, g.args, env) and self._same(dict(p.kwargs), dict(g.kwargs), env)
        if isinstance(p, (list, tuple)):
            return (
                isinstance(g, (list, tuple)) and len(p) == len(g) and all(self._same(a, b, env) for a, b in zip(p, g))
            )
        if isinstance(p, dict):
            return isinstance(g, dict) and p.keys() == g.keys() and all(self._same(p[k], g[k], env) for k in p)
        if isinstance(g, Node):
            return False
        return type(p) is type(g) and p == g


def replace_pattern(
    gm: GraphModule, pattern: Callable | Graph | GraphModule, replacement: Callable | Graph | GraphModule
) -> list[Match]:
    """Replace every match of ``pattern`` in ``gm`` by ``replacement`` (same inputs, same outputs); returns the
    matches.
    """

    def graph_of(x) -> Graph:
        if isinstance(x, Graph):
            return x
        return (x if isinstance(x, GraphModule) else symbolic_trace(x)).graph

    pattern, new = graph_of(pattern), graph_of(replacement)
    inputs = [n for n in pattern.nodes if n.op == "placeholder"]
    new_inputs = [n for n in new.nodes if n.op == "placeholder"]
    if len(inputs) != len(new_inputs):
        raise ValueError(
            f"replace_pattern: the pattern takes {len(inputs)} inputs and the replacement {len(new_inputs)}"
        )
    matches = SubgraphMatcher(pattern).match(gm.graph)
    replaced: dict[Node, Node] = {}
    for m in matches:
        # An earlier match may have been the input of this one.
        env = {a: map_arg(m.nodes_map[b], lambda n: replaced.get(n, n)) for a, b in zip(new_inputs, inputs)}
        with gm.graph.inserting_before(m.anchor):
            out = gm.graph.graph_copy(new, env)
        m.anchor.replace_all_uses_with(out)
        replaced[m.anchor] = out
        for p, g in reversed(list(m.nodes_map.items())):
            if p.op != "placeholder" and not g._erased and not g.users:
                gm.graph.erase_node(g)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return matches
