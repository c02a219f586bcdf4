"""Operators that the library runs within an operation on tensor subclasses, as nodes of the graph being made."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from flambeau import _C
from flambeau.core.modes import TorchDispatchMode

from ..exc import unsupported
from ..variables.base import Variable
from ..variables.tensors.tensor import TensorVariable

__all__ = ["Recorder"]


class Recorder(TorchDispatchMode):
    """Records, as operators, what the library computes of plain tensors within an operation on wrappers: parts of composites, derivatives.
    ``known``: variables by the id of their value."""

    sees_parts = True

    def __init__(self, tx, known: Mapping[int, Variable], is_stand_in: Callable[[type], bool]):
        super().__init__()
        self.tx, self.known, self.is_stand_in = tx, known, is_stand_in
        self.nodes: dict[int, Any] = {}
        self.alive: list[Any] = []
        self.places: dict[tuple, Any] | None = None

    def node_of(self, t):
        """The node of a tensor of the tape; what is saved is another object in the same memory."""
        found = self.nodes.get(id(t))
        if found is None and id(t) in self.known:
            found = self.known[id(t)].node
        if found is None:
            found = self.by_place().get(place(t))
        if found is None:
            unsupported("tensor-subclass", "a tensor that the library made for itself meets a tensor subclass")
        return found

    def by_place(self) -> dict[tuple, Any]:
        if self.places is None:
            self.places = {}
            output = self.tx.output
            for n in [n for g in (output.recorder.root, *(lv.graph for lv in output.recorder.levels)) for n in g.nodes]:
                val = n.meta.get("val")
                if isinstance(val, _C.TensorBase):
                    self.places[place(val)] = n
        return self.places

    def variable(self, t) -> Variable:
        return TensorVariable(self.node_of(t), t)

    def argument(self, a):
        if isinstance(a, _C.TensorBase):
            return self.node_of(a)
        if isinstance(a, (list, tuple)):
            return type(a)(map(self.argument, a))
        return a

    def __torch_dispatch__(self, func, kinds, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(map(self.is_stand_in, kinds)):
            return func(*args, **kwargs)
        given, named = tuple(map(self.argument, args)), {k: self.argument(v) for k, v in kwargs.items()}
        out = func(*args, **kwargs)
        node = self.tx.output.recorder.create_node(self.tx, "call_function", func, given, named)
        node.meta["effects"] = frozenset(func.effects)
        self.track(out, node)
        return out

    def track(self, out, node) -> None:
        node.meta["val"] = node.meta["example_value"] = out
        if isinstance(out, _C.TensorBase):
            self.nodes[id(out)] = node
            self.alive.append(out)
            if self.places is not None:
                self.places[place(out)] = node
        elif isinstance(out, (list, tuple)):
            for i, o in enumerate(out):
                self.track(
                    o, self.tx.output.recorder.create_node(self.tx, "call_function", operator.getitem, (node, i), {})
                )


def place(t) -> tuple:
    return id(t._storage), t._offset, tuple(t._shape), tuple(t._strides), t._dtype
