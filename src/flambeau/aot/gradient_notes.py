"""Notes about gradients in a backward graph: who reduces them wants to know of each as soon as it is computed, not when the graph has ended.

While :func:`noting` is active in a thread, backward graphs that are traced there get a node behind each gradient that ``note(place, input)`` answers
a call for: ``(operator, arguments)``, called as ``operator(gradient, *arguments)``. Such graphs aren't cached on disk.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from ..fx import GraphModule, Node

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
    for place, (gradient, given) in enumerate(zip(gradients, inputs)):
        found = _state.note(place, given) if isinstance(gradient, Node) and gradient.op != "placeholder" else None
        if found is None:
            continue
        operator, arguments = found
        with backward.graph.inserting_after(gradient):
            node = backward.graph.call_function(operator, (gradient, *arguments))
        node.meta["val"] = None
    backward.recompile()
