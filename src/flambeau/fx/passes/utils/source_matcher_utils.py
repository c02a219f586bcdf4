"""Nodes of a captured graph by the call of the program that they come from: a function, or a module of ``nn``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...graph import Graph
from ...node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """``nodes`` of one call of ``source``; ``input_nodes`` are read from outside, ``output_nodes`` are used there, ``params`` are its attributes."""

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """The calls of each source, in order. ``filter_fn``: only those whose nodes all satisfy it."""
    calls: dict[Any, dict[str, list[Node]]] = {}
    for n in graph.nodes:
        stack = n.meta.get("source_fn_stack")
        if stack and stack[-1][1] in wanted_sources:
            name, source = stack[-1]
            calls.setdefault(source, {}).setdefault(name, []).append(n)
    found = {source: [_partition(nodes, source) for nodes in by_name.values()] for source, by_name in calls.items()}
    if filter_fn is None:
        return found
    kept = {source: [p for p in parts if all(map(filter_fn, p.nodes))] for source, parts in found.items()}
    return {source: parts for source, parts in kept.items() if parts}


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    read = dict.fromkeys(a for n in nodes for a in n.all_input_nodes if a not in inside)
    return SourcePartition(
        nodes,
        source,
        [a for a in read if a.op != "get_attr"],
        [n for n in nodes if any(u not in inside for u in n.users)],
        [n for n in (*nodes, *read) if n.op == "get_attr"],
    )


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Whether a result of the first is used in the second."""
    inside = set(subgraph2.nodes)
    return any(u in inside for n in subgraph1.nodes for u in n.users)
