"""The autograd node of a compiled graph: forward and backward graphs behind one :class:`CompiledFunctionBackward`.

``create_graph=True`` differentiates the backward: the gradient part of the joint graph is then run from the inputs
again, itself traced and compiled ahead of time, so any order of derivative works. It needs the inputs as they were
and draws no random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .. import autograd as _autograd
from ..autograd.node import Node, Saved, _output_meta, gradient_edge
from ..core.keys import REQUIRES_GRAD
from ..core.operator import namespace
from ..fx import GraphModule
from .facts import Traced
from .partitioners import extract_graph

__all__ = ["CompiledFunctionBackward", "Plan"]


class CompiledFunctionBackward(Node):
    """The backward of one call: the compiled backward graph on what the forward saved."""

    def __init__(self, plan: Plan, inputs: tuple, outputs: list, saved: list):
        edges = [gradient_edge(t) if isinstance(t, _C.TensorBase) else None for t in inputs]
        carries = plan.traced.tangent_of
        super().__init__(
            "CompiledFunctionBackward",
            edges,
            [_output_meta(o) if k in carries else None for k, o in enumerate(outputs)],
        )
        self.plan = plan
        self.inputs: tuple | None = inputs
        numbers = {id(outputs[k]): k for k in plan.traced.tangent_of}
        self.saved = [Saved(t, numbers.get(id(t)), f"saved tensor {i}") for i, t in enumerate(saved)]

    @property
    def saved_tensors(self) -> tuple:
        return tuple(s.unpack(self) for s in self.saved)

    def apply(self, *cts):
        plan = self.plan
        if self.inputs is None:
            raise RuntimeError(
                "Trying to backward through the graph a second time: the saved values of a compiled graph were freed by the "
                "first backward. Specify retain_graph=True to keep them."
            )
        tangents = []
        for k, (shape, dtype, device) in zip(plan.traced.tangent_of, plan.tangents):
            ct = cts[k]
            if ct is None:
                ct = namespace("aten").zeros(list(shape), dtype=dtype, device=device)
            tangents.append(ct if ct.is_contiguous() else ct.contiguous())
        if _autograd.is_grad_enabled():
            return list(plan.differentiable_backward()(*self.inputs, *tangents))
        return list(plan.backward(*self.saved_tensors, *tangents))

    def release(self):
        for s in self.saved:
            s.release()
        self.inputs = None


class Plan:
    """What all calls of one compiled graph share. ``recompile(fn)`` compiles a function that is differentiated again."""

    def __init__(self, traced: Traced, forward: Callable, backward: Callable, recompile: Callable):
        self.traced, self.forward, self.backward, self._recompile = traced, forward, backward, recompile
        self.tangents = [(tuple(t.shape), t.dtype, t.device) for t in traced.fake_tangents]
        self._second: Callable | None = None

    def differentiable_backward(self) -> Callable:
        if self._second is None:
            self._second = self._recompile(_gradient_function(self.traced))
        return self._second

    def __call__(self, *inputs):
        """The forward outputs, carrying one node."""
        n = self.traced.num_forward
        if not _autograd.is_grad_enabled():
            return tuple(self.forward(*inputs)[:n])
        with _autograd.no_grad():
            outs = self.forward(*inputs)
            outputs = list(outs[:n])
            node = CompiledFunctionBackward(self, inputs, outputs, outs[n:])
        for k in self.traced.tangent_of:
            o = outputs[k]
            o._grad_fn, o._output_nr = node, k
            o._flags |= REQUIRES_GRAD
        return tuple(outputs)


def _gradient_function(traced: Traced) -> Callable[..., list[Any]]:
    """The gradients as a function of inputs and tangents: a module that autograd can run through."""
    if traced.random:
        raise RuntimeError(
            "a second derivative through a compiled graph that draws random numbers is not supported: the draws "
            "would be repeated with other values. Compile without the random operator, or run this part eagerly."
        )
    if traced.mutated:
        raise RuntimeError(
            f"a second derivative through a compiled graph that writes its inputs (number {traced.mutated}) is not "
            "supported: their former contents are gone. Clone them first, or run this part eagerly."
        )
    graph = traced.graph_module().graph
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    outputs = list(graph.output_node().args[0])[traced.num_forward :]
    return GraphModule(traced.graph_module(), extract_graph(graph, inputs, outputs, "the gradient"))
