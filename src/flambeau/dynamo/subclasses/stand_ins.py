"""The classes whose objects stand for a trace's wrappers while an operation runs for real."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import _C

from ..graph import tensor_queries
from ..rules.reflect import name_of
from ..variables.base import Variable
from ..variables.tensors.tensor_subclass import SubclassVariable

__all__ = ["StandIns"]


class StandInObject:
    """For an object that is no tensor and overrides functions."""


class StandIns:
    """The classes whose objects stand for a trace's wrappers, and the wrappers that are on the tape of fake tensors."""

    def __init__(self):
        self.classes: dict[tuple[type, bool], type] = {}
        self.users: dict[type, type] = {}
        self.running: list[Any] = []  # operations, the innermost last
        self.inputs: list[SubclassVariable] = []  # that require grad
        self.recorded = False  # whether an operation on wrappers, or one that a wrapper took over, was recorded
        self.differentiated = False  # whether the graph holds a derivative, which the region of such operations can't
        self.known: dict[int, Variable] = {}  # by id of the value, what the tape may hold
        self.alive: list[Any] = []

    def keep(self, value, v: Variable) -> None:
        self.known[id(value)] = v
        self.alive.append(value)

    def of(self, cls: type, function: bool) -> type:
        """The class of stand-ins for objects of ``cls``; derived from one another as theirs are."""
        made = self.classes.get((cls, function))
        if made is not None:
            return made
        body: dict[str, Any] = {}
        if issubclass(cls, _C.TensorBase):
            bases = tuple(self.of(b, function) for b in cls.__bases__ if tensor_queries.is_subclass(b)) or (
                tensor_queries.Tensor,
            )
            body["__torch_function__"] = _C._disabled_torch_function_impl
            if tensor_queries.overrides_dispatch(cls):
                body["__torch_dispatch__"] = classmethod(self.callback(cls, "__torch_dispatch__"))
        else:
            bases = tuple(self.of(b, function) for b in cls.__bases__ if b is not object) or (StandInObject,)
        if function and tensor_queries.overrides_function(cls):
            body["__torch_function__"] = classmethod(self.callback(cls, "__torch_function__"))
        made = self.classes[cls, function] = type(name_of(cls), bases, body)
        self.users[made] = cls
        return made

    def callback(self, cls: type, name: str) -> Callable:
        running = self.running  # the class must not keep the trace

        def handler(_, func, kinds, args=(), kwargs=None):
            return running[-1].handle(cls, name, func, kinds, args, kwargs)

        return handler
