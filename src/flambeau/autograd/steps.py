"""Steps of a backward as objects, and what the engine is doing: ``torch._C._functions`` and its neighbours."""

from __future__ import annotations

from .. import _C
from ..core.operator import namespace
from .function import Function
from .node import Node

__all__ = ["DelayedError", "UndefinedGrad", "current_graph_task_id", "will_engine_execute_node"]

aten = namespace("aten")


class _Fails(Function):
    @staticmethod
    def forward(ctx, message, tensor):
        ctx.message = message
        return aten.view_as.default(tensor, tensor)

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError(ctx.message)


class DelayedError:
    """``DelayedError(message, n)(*tensors)``: the tensors; a backward through one of them is a RuntimeError with this text."""

    def __init__(self, message: str, num_inputs: int):
        self.message, self.num_inputs = message, num_inputs

    def __call__(self, *tensors):
        if len(tensors) != self.num_inputs:
            raise ValueError(f"DelayedError: expected {self.num_inputs} tensors, but got {len(tensors)}")
        made = tuple(_Fails.apply(self.message, t) for t in tensors)
        return made if len(made) != 1 else made[0]


class _Undefined(Function):
    @staticmethod
    def forward(ctx, tensor):
        return aten.view_as.default(tensor, tensor)

    @staticmethod
    def backward(ctx, grad):
        return None


class UndefinedGrad:
    """``UndefinedGrad()(*tensors)``: the tensors; no gradient passes back through them."""

    def __call__(self, *tensors):
        made = tuple(_Undefined.apply(t) for t in tensors)
        return made if len(made) != 1 else made[0]


def current_graph_task_id() -> int:
    """The number of the backward that this thread runs; -1 outside of one."""
    return _C.backward_id()


def will_engine_execute_node(node: Node) -> bool:
    """Whether the backward that this thread runs comes through ``node``. RuntimeError outside of one and for what is no node."""
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node)}")
    if _C.backward_id() < 0:
        raise RuntimeError("_get_engine_execute_node should only be called during the backward pass")
    return bool(_C.backward_reaches(node))
