"""What a second derivative sees of a joint graph in which the program left the tape.

A graph is a function of its inputs, and to compute it ``detach`` is nothing. Its gradients, differentiated again, aren't that function's derivative:
what the program detached, or computed without grad mode, is a constant to them.
"""

from __future__ import annotations

from ..core.operator import namespace
from ..fx import Graph, Node, map_arg
from ..proxy.tape import OffTape
from .partitioners import extract_graph

__all__ = ["with_detached"]

_DETACH = namespace("aten").detach.default


def with_detached(graph: Graph, num_forward: int) -> Graph | OffTape | None:
    """The gradients of a joint graph as a graph of its own, detached where the tape ended; how it ended where that gives none; None where it ends
    nowhere on their way."""
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    gradients = list(graph.output_node().args[0])[num_forward:]
    ends = _tape_ends(gradients)
    for end in (OffTape.WRITTEN, OffTape.FUNCTION):
        if end in ends:
            return end
    if not ends:
        return None
    new = extract_graph(graph, inputs, gradients, "the gradient")
    for n in list(new.nodes):
        off_tape = "off_tape" in n.meta
        if n.target is _DETACH and not off_tape:
            # As autograd keeps a result, which it attaches again.
            n.replace_all_uses_with(n.args[0])
            new.erase_node(n)
        elif off_tape and n.target is not _DETACH:
            _detach_arguments(new, n)
    return new


def _tape_ends(todo: list) -> set[OffTape]:
    """How it does at the nodes that these are made of."""
    todo, seen = [n for n in todo if isinstance(n, Node)], set()
    while todo:
        n = todo.pop()
        if n not in seen:
            seen.add(n)
            todo += n.all_input_nodes
    return {n.meta["off_tape"] for n in seen if "off_tape" in n.meta}


def _detach_arguments(graph: Graph, n: Node) -> None:
    def detached(a: Node) -> Node:
        dtype = getattr(a.meta.get("val"), "dtype", None)
        if dtype is None or not (dtype.is_floating_point or dtype.is_complex):
            return a
        node = graph.call_function(_DETACH, (a,))
        node.meta["val"] = a.meta["val"]
        return node

    with graph.inserting_before(n):
        n.args, n.kwargs = map_arg(n.args, detached), map_arg(n.kwargs, detached)
