"""Nodes of the backward graph, and what they save of the forward pass."""

from __future__ import annotations

import itertools
import weakref

from .. import _C
from ..core import keys as K
from ..core.modes import disabled
from ..core.operator import namespace
from ..core.viewmap import ViewInfo

aten = namespace("aten")
_sequence = itertools.count()
_saved_hooks: list = []  # stack of (pack, unpack), see saved_tensors_hooks


class Node:
    """One step of the backward pass.

    ``apply(*cts)`` gives one cotangent for each of ``next_edges`` (None where nothing flows). ``outputs`` holds (shape, dtype, device) of
    each forward result, to make zeros for cotangents that never came.
    """

    def __init__(self, name: str, next_edges, outputs):
        self._name = name
        self.next_edges = list(next_edges)
        self.outputs = outputs
        self.sequence_nr = next(_sequence)
        self.pre_hooks: dict[int, dict] = {}  # output number -> {id: tensor hook}
        self.node_pre_hooks: dict = {}
        self.node_hooks: dict = {}
        self.retained: dict[int, weakref.ref] = {}
        self.metadata: dict = {}

    def name(self) -> str:
        return self._name

    @property
    def next_functions(self):
        return tuple(e if e is not None else (None, 0) for e in self.next_edges)

    def register_hook(self, fn):
        """``fn(grad_inputs, grad_outputs)`` after this node ran; may return replacements of grad_inputs."""
        return Handle(self.node_hooks, fn)

    def register_prehook(self, fn):
        """``fn(grad_outputs)`` before this node runs; may return replacements."""
        return Handle(self.node_pre_hooks, fn)

    def apply(self, *cts):
        raise NotImplementedError(f"{type(self).__name__} must define apply")

    def release(self):
        """Drop what was saved; a second backward then raises."""

    def __repr__(self):
        return f"<{self._name} object at {id(self):#x}>"


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


class Saved:
    """A tensor kept for the backward pass, with the version it had.

    An output of the node itself is kept detached (the output refers to the node, so keeping it would be a cycle) and gets its history back
    when it is unpacked. A Python-dispatch tensor is detached through the dispatcher: the subclass sees aten.detach.
    """

    __slots__ = ("tensor", "version", "output_nr", "packed", "hooks", "what")

    def __init__(self, t, output_nr: int | None, what: str):
        self.what = what
        self.output_nr = output_nr
        self.version = t._version
        self.hooks = _saved_hooks[-1] if _saved_hooks else None
        if output_nr is not None:
            t = aten.detach.default(t) if t._keys & K.PYTHON else _C.alias(t, type(t))
        self.packed = None
        if self.hooks is not None:
            self.packed = self.hooks[0](t)
            self.tensor = None
        else:
            self.tensor = t

    def unpack(self, node: Node):
        if self.hooks is not None:
            return self.hooks[1](self.packed)
        t = self.tensor
        if t is None:
            raise RuntimeError(
                "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
                "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
                "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
                "after calling backward."
            )
        if t._version != self.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"[{t._dtype} {list(t._shape)}], which is '{self.what}' of {node.name()}, is at version {t._version}; "
                "expected version "
                f"{self.version} instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, "
                "with torch.autograd.set_detect_anomaly(True)."
            )
        if self.output_nr is not None and node is not None:
            # aten.detach of a subclass gives a new object each time, a plain alias is made anew: either may carry history.
            out = _C.alias(t, type(t)) if not t._keys & K.PYTHON else t
            out._grad_fn, out._output_nr = node, self.output_nr
            out._flags |= K.REQUIRES_GRAD
            return out
        return t

    def release(self):
        self.tensor = self.packed = None
        self.hooks = None


class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds to ``leaf.grad``."""

    def __init__(self, leaf):
        super().__init__("torch::autograd::AccumulateGrad", [], [_output_meta(leaf)])
        self._leaf = weakref.ref(leaf)
        self.post_hooks: dict = {}

    @property
    def variable(self):
        return self._leaf()

    def name(self):
        return self._name


def _output_meta(t):
    return (tuple(t._shape), t._dtype, t._device)


class LeafInfo:
    """What autograd keeps on a leaf: its accumulator."""

    __slots__ = ("accumulator", "__weakref__")

    def __init__(self, leaf):
        self.accumulator = AccumulateGrad(leaf)


def gradient_edge(t):
    """Where a cotangent of ``t`` goes, or None."""
    if not t._requires_grad:
        return None
    info = t._autograd
    if isinstance(info, ViewInfo):
        _refresh(t, info)
    if t._grad_fn is not None:
        return (t._grad_fn, t._output_nr)
    info = t._autograd
    if not isinstance(info, LeafInfo):
        info = t._autograd = LeafInfo(t)
    return (info.accumulator, 0)


def _refresh(t, info: ViewInfo):
    """Give a view of a base that was written in place the history of the base as it is now."""
    if isinstance(info.base._autograd, ViewInfo):
        _refresh(info.base, info.base._autograd)
    if info.base._grad_fn is not info.generation:
        # The engine asks too, with recording off.
        info.generation = info.base._grad_fn
        grad, excluded = _C.tls("grad_enabled", 1), _C.tls("excluded")
        _C.tls("excluded", excluded & ~K.AUTOGRAD)
        try:
            with disabled("dispatch"):
                fresh = info.replay(info.base)
        finally:
            _C.tls("excluded", excluded)
            _C.tls("grad_enabled", grad)
        t._grad_fn, t._output_nr = fresh._grad_fn, fresh._output_nr
        t._flags |= fresh._flags & K.REQUIRES_GRAD


def _take_over(t):
    """Called by native code for a tensor without history on memory that has been written with one."""
    if isinstance(t._autograd, ViewInfo):
        _refresh(t, t._autograd)


_C.configure(refresh=_take_over)
