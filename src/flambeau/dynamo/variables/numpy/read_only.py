"""Which arrays of the graph NumPy doesn't let anybody write into: a mark on their nodes, which views of them inherit."""

from __future__ import annotations

from ...graph import tensor_queries

__all__ = ["is_read_only", "mark_read_only", "views_read_only"]


def mark_read_only(node) -> None:
    """NumPy doesn't let anybody write into this array, nor into views of it."""
    node.meta["read_only"] = node.graph.read_only = True


def is_read_only(node) -> bool:
    return node.meta.get("read_only", False)


def views_read_only(node, val) -> bool:
    """Whether an array is a view of one that is only read."""
    inputs = [
        m
        for n in node.all_input_nodes
        for m in (n, *(n.all_input_nodes if type(n.meta["val"]) in (tuple, list) else ()))
    ]
    return any(
        is_read_only(n) and tensor_queries.is_tensor(n.meta["val"]) and n.meta["val"]._storage is val._storage
        for n in inputs
    )
