"""Names of the native backward graph (csrc/autograd/node.c, autograd/saved.c) and its Python part: hooks' handles and views replayed.

A :class:`Node` is one step of the backward pass: ``apply(*cotangents)`` gives one cotangent for each of ``next_edges`` (None where nothing
flows). ``outputs`` holds (shape, dtype, device) of each forward result, to make zeros for cotangents that never came. A subclass written in
Python calls ``super().__init__(name, next_edges, outputs)`` and defines ``apply`` and ``release``.
"""

from __future__ import annotations

import itertools

from .. import _C
from ..core.operator import namespace

AccumulateGrad, Node, Saved, gradient_edge, set_history = (
    _C.AccumulateGrad,
    _C.Node,
    _C.SavedTensor,
    _C.gradient_edge,
    _C.set_history,
)

aten = namespace("aten")


class Handle:
    """Returned by the register_* methods; ``remove()`` undoes."""

    _ids = itertools.count()

    def __init__(self, hooks: dict, fn):
        self.id = next(Handle._ids)
        self._hooks = hooks
        hooks[self.id] = fn

    def remove(self):
        self._hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


def _output_meta(t):
    return (tuple(t._shape), t._dtype, t._device)


def replay(root, steps):
    """The view of ``root`` that a chain of steps describes; see ``_C.view_map``."""
    chain = []
    while steps is not None:
        steps, *step = steps
        chain.append(step)
    t = root
    for op, rest, which in reversed(chain):
        if op is None:
            size, stride, offset = rest
            t = aten._as_strided.default(t, size, stride, offset, root._strides)
        else:
            args, kwargs = op.split((t, *rest))
            t = op(*args, **kwargs)
            t = t if which is None else t[which]
    return t


_C.set_hook_handle(Handle)
