"""Names of the native backward graph (csrc/autograd/node.c, autograd/saved.c) and its Python part: views replayed.

A :class:`Node` is one step of the backward pass: ``apply(*cotangents)`` gives one cotangent for each of ``next_edges`` (None where nothing
flows). ``outputs`` holds (shape, dtype, device) of each forward result, to make zeros for cotangents that never came. A subclass written in
Python calls ``super().__init__(name, next_edges, outputs)`` and defines ``apply`` and ``release``.
"""

from __future__ import annotations

from .. import _C
from ..base.memory_format import contiguous_format
from ..base.shapes import dense_order
from ..core.operator import namespace
from .handles import registered

AccumulateGrad, Node, Saved, gradient_edge, set_history = (
    _C.AccumulateGrad,
    _C.Node,
    _C.SavedTensor,
    _C.gradient_edge,
    _C.set_history,
)

aten = namespace("aten")


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


class WrittenView(Node):
    """The backward of writing into a view: the written region of the root's cotangent goes through ``inner``, the rest passes.

    It keeps the geometry of what was written and nothing of the tensors: the root refers to it. ``edges``: those of ``inner`` without the view's.
    """

    def __init__(self, root, view, inner, edges):
        super().__init__("CopySlices", [root, *edges], [_output_meta(root)])
        self.inner, self._map = inner, _C.view_map(view)
        self._order = dense_order(root._shape, root._strides)

    def name(self) -> str:
        """With PyTorch's namespace in front, which isn't printed."""
        return f"torch::autograd::{super().name()}"

    def split(self, cts):
        """(the cotangent of the view before the write or None, those of the other edges) of what ``inner`` gave."""
        raise NotImplementedError

    def apply(self, ct):
        # In the root's own memory order, or the views on the way to the region might not exist.
        whole = aten.clone.default(aten.permute.default(ct, list(self._order)), memory_format=contiguous_format)
        whole = aten.permute.default(whole, [self._order.index(d) for d in range(len(self._order))])
        region = replay(whole, self._map)
        own, rest = self.split(self.inner.apply(aten.clone.default(region)))
        if own is not None:
            aten.copy_.default(region, own)
        else:
            aten.zero_.default(region)
        return [whole, *rest]

    def release(self):
        # A saved result leads to ``inner`` itself, which then runs later in this pass.
        if not _C.backward_reaches(self.inner):
            self.inner.release()


_C.set_hook_handle(registered)
