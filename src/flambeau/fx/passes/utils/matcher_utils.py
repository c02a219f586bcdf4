"""Find a pattern, a small graph, in a graph.

A match is anchored where the pattern's results are and goes up the arguments; what is inside a match must not be used outside of it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from ....core.tensor import Tensor
from ...graph import Graph
from ...node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """``anchors``: the nodes of the pattern that it starts at. ``nodes_map``: nodes of the pattern to nodes of the graph (or literals, for
    placeholders). ``placeholder_nodes``, ``returning_nodes``: what the pattern's inputs and results are. ``name_node_map``: for patterns
    whose results have names."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)


class SubgraphMatcher:
    """``SubgraphMatcher(pattern).match(graph)``: the matches, first come first.

    ``match_output``: the pattern's results must be the graph's. ``match_placeholder``: its inputs must be the graph's.
    ``remove_overlapping_matches``: of matches that share a node the first. ``ignore_literals``: any number stands for any other. ValueError
    for a pattern without results."""

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ):
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        output = pattern.output_node()
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        self.pattern_returning_nodes = output.all_input_nodes
        if not self.pattern_returning_nodes:
            raise ValueError("the pattern's output contains no node")
        inner = [n for n in self.pattern_returning_nodes if len(n.users) == 1]
        self.pattern_anchors = [output] if match_output else inner

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """``node_name_match``: for nodes of this name in the pattern a name alike is enough."""
        places = [[n for n in graph.nodes if self._alike(a, n, node_name_match)] for a in self.pattern_anchors]
        found: list[InternalMatch] = []
        taken: set[Node] = set()
        for chosen in itertools.product(*places):
            match = InternalMatch(self.pattern_anchors)
            if not all(self._same(a, n, match, node_name_match) for a, n in zip(self.pattern_anchors, chosen)):
                continue
            inside = {g for p, g in match.nodes_map.items() if p.op not in ("placeholder", "output")}
            if not self._contained(match, inside) or (self.remove_overlapping_matches and inside & taken):
                continue
            if not all(p in match.nodes_map for p in self.pattern_returning_nodes):
                continue
            taken |= inside
            match.placeholder_nodes = [match.nodes_map.get(p) for p in self.pattern_placeholder_nodes]
            match.returning_nodes = [match.nodes_map[p] for p in self.pattern_returning_nodes]
            found.append(match)
        return found

    def _contained(self, match: InternalMatch, inside: set[Node]) -> bool:
        """Whether all but the results of the pattern are used within the match."""
        returned = {match.nodes_map.get(p) for p in self.pattern_returning_nodes}
        ends = {g for p, g in match.nodes_map.items() if p.op == "output"}
        return all(u in inside or u in ends for g in inside - returned if g.op != "get_attr" for u in g.users)

    def _alike(self, p: Node, g: Node, name: str) -> bool:
        if name and name in p.name:
            return name in g.name
        if p.op == "placeholder" and not self.match_placeholder:
            return True
        if p.op != g.op:
            return False
        if p.op == "get_attr":
            # What is read is compared by kind, as in PyTorch: the values are another model's.
            mine, other = _read(p), _read(g)
            return mine is None or other is None or isinstance(mine, Tensor) and isinstance(other, Tensor)
        return p.op in ("placeholder", "output") or p.target == g.target

    def _same(self, p: Any, g: Any, match: InternalMatch, name: str) -> bool:
        if isinstance(p, Node):
            return self._same_node(p, g, match, name)
        if isinstance(p, (list, tuple)):
            alike = isinstance(g, (list, tuple)) and len(p) == len(g)
            return alike and all(self._same(a, b, match, name) for a, b in zip(p, g))
        if isinstance(p, dict):
            alike = isinstance(g, dict) and p.keys() == g.keys()
            return alike and all(self._same(p[k], g[k], match, name) for k in p)
        if isinstance(p, slice):
            return isinstance(g, slice) and all(
                self._same(getattr(p, part), getattr(g, part), match, name) for part in ("start", "stop", "step")
            )
        return not isinstance(g, Node) and (self.ignore_literals or (type(p) is type(g) and p == g))

    def _same_node(self, p: Node, g: Any, match: InternalMatch, name: str) -> bool:
        known = match.nodes_map
        if p in known:
            return known[p] is g or (not isinstance(g, Node) and known[p] == g)
        if not isinstance(g, Node):
            if p.op != "placeholder":
                return False
            known[p] = g
            return True
        if not self._alike(p, g, name) or any(g is k for k in known.values()):
            return False
        before = dict(known)
        known[p] = g
        if p.op == "placeholder":
            return True
        mine, others = _arguments(p, g)
        if mine is not None and self._same(mine, others, match, name):
            return True
        known.clear()
        known.update(before)
        return False


def _arguments(p: Node, g: Node) -> tuple[Any, Any]:
    """The arguments of two calls, to be compared one by one: by the schema where they are passed in different ways; None where they can't be."""
    if len(p.args) == len(g.args) and p.kwargs.keys() == g.kwargs.keys():
        return [*p.args, *p.kwargs.values()], [*g.args, *(g.kwargs[k] for k in p.kwargs)]
    if p.op != "call_function" or not hasattr(p.target, "_schema"):
        return None, None
    mine, others = [], []
    for i, a in enumerate(p.target._schema.arguments):
        x, y = (n.kwargs.get(a.name, n.args[i] if i < len(n.args) and not a.kwarg_only else _MISSING) for n in (p, g))
        mine.append(_default(a, y) if x is _MISSING else x)
        others.append(_default(a, x) if y is _MISSING else y)
    return mine, others


_MISSING = object()


def _default(argument: Any, other: Any) -> Any:
    """What leaving the argument out means, where the other call gives ``other``: one number stands for all of a list."""
    value = argument.default_value
    return value * len(other) if isinstance(value, list) and len(value) == 1 and isinstance(other, list) else value


def _read(n: Node) -> Any:
    """What a get_attr node reads; None where its graph has no module."""
    obj: Any = n.graph.owning_module
    for part in n.target.split("."):
        obj = getattr(obj, part, None)
    return obj
