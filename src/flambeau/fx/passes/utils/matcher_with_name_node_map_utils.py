"""Patterns that give names to some of their nodes: the last result is a dict from names to them."""

from __future__ import annotations

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from .matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict[str, Node]]:
    """The module without the dict among its results, which is given beside it. AssertionError where there is none."""
    output = gm.graph.output_node()
    *results, names = output.args[0] if isinstance(output.args[0], (list, tuple)) else (output.args[0],)
    if not isinstance(names, dict) or not all(isinstance(n, Node) for n in names.values()):
        raise AssertionError("Expecting the graph's last output to be a dict from names to nodes")
    output.args = (tuple(results),)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm, dict(names)


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A :class:`SubgraphMatcher` whose matches have ``name_node_map``: names to nodes of the graph."""

    def __init__(self, pattern_gm: GraphModule, *options: bool, **named: bool):
        gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        self.pattern_gm = gm
        super().__init__(gm.graph, *options, **named)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        found = super().match(graph, node_name_match)
        for m in found:
            m.name_node_map = {k: m.nodes_map[n] for k, n in self.name_node_map.items()}
        return found
