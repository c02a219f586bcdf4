"""Operators of a graph replaced by what a table makes of them, by running the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base import pytree
from ..base.public import public_in
from ..fake import FakeTensorMode
from ..fx import Graph, GraphModule
from ..fx.interpreter import Interpreter
from .tracing import ProxyTorchDispatchMode

__all__ = ["DecompositionInterpreter"]


@public_in("fx.experimental.proxy_tensor")
class DecompositionInterpreter(Interpreter):
    """Runs ``module``; ``new_graph`` becomes its graph with the operators of ``decomposition_table`` (operator -> function) decomposed. Results are
    those of the module."""

    def __init__(
        self,
        module: GraphModule,
        new_graph: Graph,
        decomposition_table: dict[Any, Callable] | None = None,
        **kwargs: Any,
    ):
        super().__init__(module, **kwargs)
        self.new_graph = new_graph
        self.mode = ProxyTorchDispatchMode(
            new_graph, FakeTensorMode(allow_non_fake_inputs=True), decomposition_table or {}
        )

    def placeholder(self, target, args, kwargs):
        out = super().placeholder(target, args, kwargs)
        self.mode.placeholder(target, out)
        return out

    def get_attr(self, target, args, kwargs):
        out = super().get_attr(target, args, kwargs)
        self.mode.track(out, self.new_graph.get_attr(target))
        return out

    def output(self, target, args, kwargs):
        out = super().output(target, args, kwargs)
        self.new_graph.output(pytree.tree_map(self.mode.argument, out))
        for name, constant in self.mode.constants.items():
            setattr(self.module, name, constant)
        return out

    def run(self, *args, **kwargs):
        with self.mode:
            return super().run(*args, **kwargs)
