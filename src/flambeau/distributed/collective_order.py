"""The order of collectives in compiled graphs, compared between ranks before a graph runs: ranks that captured different ones get an error.

Each group's members compare the part that concerns them, once for each order that they haven't compared before. A recompilation on one rank alone,
for another size say, keeps its order, so nothing is waited for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..fx import GraphModule
from . import objects, world
from .errors import DistBackendError

__all__ = ["compared"]


def compared(gm: GraphModule, compiled: Callable) -> Callable:
    """``compiled``, with the comparison before its first run."""
    orders: dict[str, list[str]] = {}
    _collect(gm, orders)
    ready: set = set()

    @functools.wraps(compiled, assigned=(), updated=())
    def run(*inputs):
        here = world.current()
        if id(here) not in ready:
            for name, order in orders.items():
                _compare(here, name, order)
            ready.add(id(here))
        return compiled(*inputs)

    return run


def _collect(gm: GraphModule, orders: dict[str, list[str]]) -> None:
    """{group: its collectives in the order of the graph}."""
    for node in gm.graph.nodes:
        if "collective" in getattr(node.target, "tags", ()):
            values = dict(zip((a.name for a in node.target._schema.arguments), (*node.args, *node.kwargs.values())))
            rest = [f"{k}={v}" for k, v in values.items() if isinstance(v, str | int) and k not in ("group_name",)]
            orders.setdefault(values["group_name"], []).append(f"{node.target._opname}({', '.join(rest)})")
        elif node.op == "get_attr":
            part = getattr(gm, node.target, None) if "." not in node.target else None
            if isinstance(part, GraphModule):
                _collect(part, orders)


def _compare(here: world.World, name: str, order: list[str]) -> None:
    text = "\n".join(order)
    if (name, text) in here.orders:
        return
    group = world.resolve(name)
    every: list = [None] * group.size()
    objects.all_gather_object(every, text, group)
    if any(other != text for other in every):
        shown = "\n".join(f"  rank {r}: {', '.join(other.splitlines())}" for r, other in enumerate(every))
        raise DistBackendError(f"ranks of the group {name} compiled graphs with different collectives:\n{shown}")
    here.orders.add((name, text))
