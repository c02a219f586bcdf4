"""Whole graphs whose backward tells the reducer of each gradient when it is computed: a bucket's reduction starts right behind its last gradient
in the graph's order, and is waited for at the end.

Modules of one class share compiled code, so the code knows positions only: the node that runs it in a backward is bound to the reducer, and to the
parameters at its edges, by hooks that are put on it after the forward.
"""

from __future__ import annotations

import threading

from .. import _C
from ..aot.compiled_function import CompiledFunctionBackward
from ..aot.gradient_notes import noting
from ..core.declare import extern
from ..modules.parameter import Parameter

__all__ = ["around_backward", "bind"]


class _Bound(threading.local):
    reducer = None
    indices: tuple = ()


_bound = _Bound()


@extern(
    "flambeau_ddp::arrived(Tensor grad, int place) -> ()",
    meta=lambda grad, place: (),
    variants="",
    tags=("has_side_effects",),
)
def arrived(grad, place):
    """The gradient of the input at ``place`` of the graph that runs."""
    if _bound.reducer is not None and _bound.indices[place] is not None:
        _bound.reducer.note(_bound.indices[place], grad)
    return ()


def around_backward(reducer):
    """Backward graphs that are traced in this block tell of their parameters' gradients, to whichever reducer they are bound."""
    reducer.bind = bind
    return noting(
        lambda place, given: (arrived, (place,)) if isinstance(given, Parameter) and given.requires_grad else None
    )


def bind(reducer, nodes) -> None:
    """Compiled nodes among ``nodes`` tell ``reducer`` of the parameters that get a gradient from nowhere else in the backward that runs."""
    places = {id(p): i for i, p in enumerate(reducer.parameters)}
    for node in nodes:
        if not isinstance(node, CompiledFunctionBackward):
            continue
        edges = [to for to, _ in node.next_functions]
        indices = [places.get(id(getattr(to, "variable", None))) for to in edges]
        if any(i is not None for i in indices):
            node.register_prehook(lambda grads, edges=edges, indices=indices: _enter(reducer, edges, indices))
            node.register_hook(lambda given, got: _leave())


def _enter(reducer, edges, indices) -> None:
    _bound.reducer = reducer
    _bound.indices = tuple(
        i if i is not None and _C.backward_waits_for_one(to) and not to.variable._backward_hooks else None
        for to, i in zip(edges, indices, strict=True)
    )


def _leave() -> None:
    _bound.reducer, _bound.indices = None, ()
