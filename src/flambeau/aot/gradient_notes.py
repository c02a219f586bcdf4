"""Notes about gradients in a backward graph: a reducer is told of each gradient as soon as it is computed, not when the graph has ended.

While :func:`noting` is active in a thread, backward graphs that are traced there get a node behind each gradient that ``note(place, input)`` answers
a call for: ``(operator, arguments)``, called as ``operator(gradient, *arguments)``. Such graphs aren't cached on disk.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from ..fx import GraphModule, Node
from .partitioners import has_effects

__all__ = ["active", "insert", "noting"]


class _Noting(threading.local):
    note: Callable | None = None


_state = _Noting()


@contextlib.contextmanager
def noting(note: Callable):
    """``note(place, input) -> (operator, arguments) | None`` for each input of the graph that gets a gradient."""
    before, _state.note = _state.note, note
    try:
        yield
    finally:
        _state.note = before


def active() -> bool:
    return _state.note is not None


def insert(backward: GraphModule, inputs: list) -> None:
    """Put the notes into a backward graph that returns one gradient, or None, for each of ``inputs``."""
    gradients = backward.graph.output_node().args[0]
    if len(gradients) != len(inputs):
        return
    noted = []
    for place, (gradient, given) in enumerate(zip(gradients, inputs)):
        found = _state.note(place, given) if isinstance(gradient, Node) and gradient.op != "placeholder" else None
        if found is None:
            continue
        operator, arguments = found
        with backward.graph.inserting_after(gradient):
            node = backward.graph.call_function(operator, (gradient, *arguments))
        node.meta["val"] = None
        noted.append(node)
    _hasten(backward, noted)
    backward.recompile()


def _own(note: Node, order: dict) -> list[Node]:
    """The nodes that are computed for ``note`` alone, and itself, in the graph's order."""
    own, todo = {note}, list(note.all_input_nodes)
    while todo:
        node = todo.pop()
        if (
            node.op == "call_function"
            and node not in own
            and all(user in own for user in node.users if user.op != "output")
        ):
            own.add(node)
            todo += node.all_input_nodes
    return sorted(own, key=order.__getitem__)


def _hasten(backward: GraphModule, notes: list[Node]) -> None:
    """Compute each noted gradient as soon as what it is computed of is there: that of a layer's weight before that of its input, of which the
    layers before wait anyway, so that its reduction takes the time that the rest of the backward takes."""
    order = {n: k for k, n in enumerate(backward.graph.nodes)}
    for note in notes:
        own = _own(note, order)
        if any(has_effects(n) for n in own if n is not note):
            continue
        given = {n for node in own for n in node.all_input_nodes} - set(own)
        if not given:
            continue
        last = max(given, key=order.__getitem__)
        if last.op != "call_function":
            continue
        for node in reversed(own):
            last.append(node)
        order = {n: k for k, n in enumerate(backward.graph.nodes)}
