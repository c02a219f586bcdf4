"""Replace every part of a graph that looks like a pattern. See passes/utils/matcher_utils.py for what a match is."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..modules.module import Module
from .graph import Graph
from .graph_module import GraphModule, _assign
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from .tracer import symbolic_trace

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

Pattern = Callable | Graph | GraphModule


class Match(NamedTuple):
    """``anchor`` is the pattern's node that the match starts at; ``nodes_map`` takes pattern nodes to graph nodes or constants."""

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclass
class ReplacedPatterns:
    """A match, and the nodes that stand in its place."""

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Pattern, replacement: Pattern) -> list[Match]:
    """Replace every match of ``pattern`` in ``gm`` by ``replacement`` (same inputs, same outputs). Returns the matches."""
    return [Match(m.anchor, m.nodes_map) for m in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Pattern,
    replacement: Pattern | None = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
) -> list[ReplacedPatterns]:
    """As :func:`replace_pattern`, of the matches for which all ``match_filters(match, graph, pattern)`` hold. ``replacement_callback`` makes
    the replacement of each match, in the place of ``replacement``. ValueError where the two don't take the same number of inputs."""
    looked_for = _graph(pattern)
    if (replacement is None) == (replacement_callback is None):
        raise ValueError("replace_pattern takes a replacement or a replacement_callback")
    fixed = None if replacement is None else _graph(replacement)
    matches = [
        m
        for m in SubgraphMatcher(looked_for, ignore_literals=ignore_literals).match(gm.graph)
        if all(f(m, gm.graph, looked_for) for f in match_filters or ())
    ]
    done: list[ReplacedPatterns] = []
    moved: dict[Node, Any] = {}  # results of earlier matches, which may be inputs of later ones
    for m in matches:
        new = fixed if fixed is not None else replacement_callback(m, gm.graph, looked_for)
        for p, g in m.nodes_map.items():
            if p.op == "placeholder" and isinstance(g, Node):
                m.nodes_map[p] = moved.get(g, g)
        m.placeholder_nodes = [moved.get(g, g) if isinstance(g, Node) else g for g in m.placeholder_nodes]
        made = _replace(gm.graph, m, new, looked_for, moved)
        done.append(ReplacedPatterns(m.anchors[0], m.nodes_map, made))
    if isinstance(replacement, Module):
        _bring_attributes(gm, replacement)
    gm.recompile()
    return done


def _graph(x: Pattern) -> Graph:
    return x if isinstance(x, Graph) else (x if isinstance(x, GraphModule) else symbolic_trace(x)).graph


def _replace(graph: Graph, m: InternalMatch, new: Graph, pattern: Graph, moved: dict[Node, Any]) -> list[Node]:
    """Put ``new`` in the place of the match; the nodes that were made."""
    inputs = [n for n in new.nodes if n.op == "placeholder"]
    if len(inputs) != len(m.placeholder_nodes):
        raise ValueError(
            f"replace_pattern: the pattern takes {len(m.placeholder_nodes)} inputs and the replacement {len(inputs)}"
        )
    env = dict(zip(inputs, m.placeholder_nodes))
    inside = {g for p, g in m.nodes_map.items() if p.op != "placeholder"}
    users = [u for g in m.returning_nodes for u in g.users if u not in inside]
    with graph.inserting_before(min(users) if users else max(m.returning_nodes).next):
        results = graph.graph_copy(new, env)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    if len(results) != len(m.returning_nodes):
        raise ValueError(
            f"replace_pattern: the pattern has {len(m.returning_nodes)} results and the replacement {len(results)}"
        )
    for old, result in zip(m.returning_nodes, results):
        old.replace_all_uses_with(result, lambda u: u not in inside)
        moved[old] = result
    for p in reversed(pattern.nodes):
        g = m.nodes_map.get(p)
        if p.op not in ("placeholder", "output") and isinstance(g, Node) and not g.users:
            graph.erase_node(g)
    given = set(inputs)
    return [made for n, made in env.items() if n not in given and made not in m.placeholder_nodes]


def _bring_attributes(gm: GraphModule, replacement: Module) -> None:
    """Copies of what the new nodes refer to, and nothing of what only the old ones did."""
    gm.delete_all_unused_submodules()
    for n in gm.graph.nodes:
        if n.op in ("call_module", "get_attr"):
            if _found(gm, n.target) is None:
                value = _found(replacement, n.target)
                if value is None:
                    raise RuntimeError(f"neither the graph's module nor the replacement has {n.target!r}, which {n} is")
                _assign(gm, n.target, copy.deepcopy(value))
    gm.graph.lint()


def _found(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part, None)
    return module
