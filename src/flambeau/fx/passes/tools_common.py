"""What passes share: the nodes of a graph in an order in which each comes behind its inputs."""

from __future__ import annotations

from collections import deque

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node

__all__ = ["legalize_graph", "stable_topological_sort"]


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Put the nodes of ``gm.graph`` in topological order, breadth first from those without inputs. RuntimeError for a cycle."""
    return _sorted(gm, breadth_first=True)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """As :func:`legalize_graph`, in the old order where that is one."""
    return _sorted(gm, breadth_first=False)


def _sorted(gm: GraphModule, breadth_first: bool) -> GraphModule:
    order = _topological(gm.graph, breadth_first)
    for before, n in zip(order, order[1:]):
        before.append(n)
    if isinstance(gm, GraphModule):
        gm.recompile()
    return gm


def _topological(graph: Graph, breadth_first: bool) -> list[Node]:
    waiting = {n: len(n.all_input_nodes) for n in graph.nodes}
    place = {n: k for k, n in enumerate(waiting)}
    ready = deque(n for n, count in waiting.items() if not count)
    order: list[Node] = []
    while ready:
        if not breadth_first:
            ready = deque(sorted(ready, key=place.__getitem__))
        n = ready.popleft()
        order.append(n)
        for user in n.users:
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    if len(order) != len(waiting):
        done = set(order)
        raise RuntimeError(f"Input graph has cycles, unable to add {[n.name for n in waiting if n not in done]}")
    return order
