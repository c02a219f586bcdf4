"""Passes over a functional ATen graph before it is partitioned. Each keeps ``meta`` and leaves a graph that lints."""

from __future__ import annotations

import operator

from ..base.symbolic_queries import sizes_of
from ..base.symint import NUMBERS
from ..fx import Graph, Node
from ..fx.targets import is_view, kind_of, override_of, tags_of

__all__ = ["common_subexpressions", "draws", "fallible", "identities", "overwritten_parts"]


def identities(graph: Graph) -> None:
    """Drop operators that only rename a value: detach, alias, and views that undo each other.

    Without mutation a view is a value: a view that lies in memory exactly as what it is (indirectly) a view of is that.
    """
    for n in list(graph.nodes):
        if not _is_view(n) or _place(n) is None:
            continue
        source = n
        while _is_view(source):
            source = source.args[0]
            if _place(source) == _place(n):
                n.replace_all_uses_with(source)
                graph.erase_node(n)
                break


def _is_view(n: Node) -> bool:
    is_op = n.op == "call_function" and kind_of(n.target) == "view"
    return is_op and bool(n.args) and isinstance(n.args[0], Node)


def _place(n: Node) -> tuple | None:
    """Where a tensor lies in its storage. The stride of a dimension of size one is never used."""
    t = n.meta.get("val")
    if not (hasattr(t, "dtype") and hasattr(t, "shape")):
        return None
    shape = sizes_of(t.shape)  # compared by structure, without guards
    strides = tuple(s for s, size in zip(sizes_of(t.stride()), shape) if size != 1)
    return shape, strides, sizes_of((t.storage_offset(),)), t.dtype


def overwritten_parts(graph: Graph) -> None:
    """Where the same part of a value is written twice, the first write is left out: the second begins from what was there before. Python does so in
    ``a[i] += x``, which writes the part itself and then assigns it to its place."""
    for n in graph.nodes:
        while _is_slice_scatter(n) and _is_slice_scatter(before := n.args[0]) and before.args[2:] == n.args[2:]:
            n.args = (before.args[0], *n.args[1:])


def _is_slice_scatter(n) -> bool:
    return isinstance(n, Node) and str(n.target) == "aten.slice_scatter.default" and not n.kwargs


def common_subexpressions(graph: Graph) -> None:
    """Merge nodes that apply the same operator to the same arguments. Random draws and unknown functions are left
    alone, and so are two of whose memory views go out: a program that writes to one result finds the other as it was. (What goes out itself is
    copied behind this pass.)
    """
    seen: dict = {}
    out = _going_out(graph)
    for n in list(graph.nodes):
        kind = kind_of(n.target) if n.op == "call_function" else None
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
        if first is n or (n in out and first in out and (out[n] or out[first])):
            continue
        # Sizes that depend on data have symbols of their own at each node, which what follows refers to.
        if _sizes(first) == _sizes(n):
            n.replace_all_uses_with(first)
            graph.erase_node(n)


def _going_out(graph: Graph) -> dict[Node, bool]:
    """The nodes that make the memory of outputs, and whether a view of it goes out."""
    out: dict[Node, bool] = {}
    for n in graph.output_node().all_input_nodes:
        viewed = False
        while is_view(n.target) or n.target is operator.getitem:
            viewed = viewed or n.target is not operator.getitem
            n = n.args[0]
        out[n] = out.get(n, False) or viewed
    return out


def _sizes(n: Node) -> list:
    """The sizes of a node's tensors, and its numbers."""
    val = n.meta.get("val")
    values = val if isinstance(val, (list, tuple)) else [val]
    return [sizes_of(v.shape) if hasattr(v, "shape") else getattr(v, "expr", None) for v in values]


def draws(n: Node) -> bool:
    """Whether a node draws random numbers; composites that do so carry the tag as well."""
    return "nondeterministic_seeded" in tags_of(n.target)


_INFALLIBLE = {"pointwise", "reduction", "view", "contraction", "factory", "random"}


_DIVISIONS = {operator.floordiv, operator.mod, operator.truediv, operator.pow}


def _takes_places(op) -> bool:
    """Whether a tensor among an operator's arguments says which elements it reads or writes."""
    return any(a.name in ("index", "indices") for a in op._schema.arguments)


def fallible(n: Node) -> bool:
    """Whether a node may end the graph with an error that depends on data, and doesn't itself see to what happens then. An operator of which that
    depends on the call says it: ``override("fallible", fn)``, called with the node's arguments."""
    if n.op != "call_function" or n.target is operator.getitem:
        return False
    depends = override_of(n.target, "fallible")
    if depends is not None:
        return depends(*n.args)
    if getattr(n.target, "__module__", None) == "_operator" and isinstance(n.meta.get("val"), NUMBERS):
        return n.target in _DIVISIONS and not (isinstance(n.args[1], (int, float)) and n.args[1] > 0)
    if kind_of(n.target) == "index" and not _takes_places(n.target):
        return False  # at places that were known when the shapes were
    return kind_of(n.target) not in _INFALLIBLE and "may_run_plainly" not in tags_of(n.target)


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
