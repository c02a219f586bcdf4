"""Passes over a functional ATen graph before it is partitioned. Each keeps ``meta`` and leaves a graph that lints."""

from __future__ import annotations

from ..fx import Graph, Node

__all__ = ["common_subexpressions", "draws", "identities"]


def identities(graph: Graph) -> None:
    """Drop operators that only rename a value: detach, alias, and views that change nothing.

    Without mutation a view is a value, so a view with the metadata of its argument is its argument.
    """
    for n in list(graph.nodes):
        if n.op != "call_function" or getattr(n.target, "kind", None) != "view" or not n.args or not isinstance(n.args[0], Node):
            continue
        a, b = n.args[0].meta.get("val"), n.meta.get("val")
        if not (hasattr(a, "dtype") and hasattr(b, "dtype")):
            continue
        if a.dtype == b.dtype and tuple(a.shape) == tuple(b.shape) and _strides(a) == _strides(b) and _offset(a) == _offset(b):
            n.replace_all_uses_with(n.args[0])
            graph.erase_node(n)


def _strides(t) -> tuple:
    # The stride of a dimension of size one is never used.
    return tuple(s for s, n in zip(t.stride(), t.shape) if n != 1)


def _offset(t) -> int:
    return t.storage_offset()


def common_subexpressions(graph: Graph) -> None:
    """Merge nodes that apply the same operator to the same arguments. Random draws and unknown functions are left
    alone.
    """
    seen: dict = {}
    for n in list(graph.nodes):
        kind = getattr(n.target, "kind", None) if n.op == "call_function" else None
        is_getitem = n.op == "call_function" and getattr(n.target, "__name__", "") == "getitem"
        if n.op == "get_attr":
            key = ("get_attr", n.target)
        elif is_getitem or (kind is not None and kind != "random" and not n.is_impure() and not draws(n)):
            key = (n.target, _key(n.args), _key(dict(n.kwargs)))
        else:
            continue
        try:
            first = seen.setdefault(key, n)
        except TypeError:  # an unhashable argument
            continue
        if first is not n:
            n.replace_all_uses_with(first)
            graph.erase_node(n)


def draws(n: Node) -> bool:
    """Whether a node draws random numbers; composites that do so carry the tag as well."""
    return "nondeterministic_seeded" in getattr(n.target, "tags", ())


def _key(a):
    # 1, 1.0 and True are equal but not the same argument.
    if isinstance(a, (tuple, list)):
        return (type(a).__name__, *map(_key, a))
    if isinstance(a, dict):
        return tuple((k, _key(v)) for k, v in a.items())
    if isinstance(a, slice):
        return ("slice", _key(a.start), _key(a.stop), _key(a.step))
    # repr tells -0.0 from 0.0.
    return (type(a).__name__, repr(a)) if isinstance(a, (int, float, complex)) else a
