"""Constant folding: what depends on attributes alone is computed once, before the first call (``torch.fx.experimental.const_fold``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.tensor import Tensor
from ..modules.module import Module
from ..modules.parameter import Parameter
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .tracer import symbolic_trace

__all__ = ["FoldedGraphModule", "split_const_subgraphs"]

_NAME = "_FX_CONST_FOLDED_ATTRS"


class FoldedGraphModule(GraphModule):
    """A module whose constants come from ``const_subgraph_module`` (None: there are none), which runs before the first call."""

    def __init__(
        self,
        root: Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cpu",
        names: tuple[str, ...] = (),
    ):
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs
        self._folded_names = names

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Compute the constants; called by the first call."""
        if self.const_subgraph_module is None or self.has_folding_been_run:
            self.has_folding_been_run = True
            return
        self.has_folding_been_run = True
        for name, value in zip(self._folded_names, self.const_subgraph_module()):
            if isinstance(value, Tensor):
                self._parameters.pop(name, None)
                self._buffers.pop(name, None)
                asks = value.requires_grad
                value = value.detach().clone()
                self.register_parameter(name, Parameter(value, requires_grad=asks)) if (
                    value.is_floating_point() or value.is_complex()
                ) else self.register_buffer(name, value)
            else:
                setattr(self, name, value)


def _constant_nodes(gm: GraphModule, skip: Callable[[Node], bool] | None) -> dict[Node, None]:
    found: dict[Node, None] = {}
    for n in gm.graph.nodes:
        if n.op in ("placeholder", "output") or n.op != "get_attr" and not all(i in found for i in n.all_input_nodes):
            continue
        if skip is not None and skip(n) or n.op != "get_attr" and n.is_impure():
            continue
        found[n] = None
    return found


def split_const_subgraphs(
    module: Module | GraphModule,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """``module``, traced if need be, with what depends on its attributes alone in a graph of its own.

    ``skip_folding_node_fn(node)`` says which nodes aren't folded; what draws or writes never is.
    """
    gm = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant_nodes(gm, skip_folding_node_fn)
    frontier = [n for n in constant if n.op != "get_attr" and any(u not in constant for u in n.users)]
    if not frontier:
        return FoldedGraphModule(gm, gm.graph, device_for_folded_attrs=device_for_folded_attrs)
    apart = Graph()
    env: dict[Node, Node] = {}
    for n in constant:
        env[n] = apart.node_copy(n, env.__getitem__)
    apart.output(tuple(env[n] for n in frontier))
    apart.eliminate_dead_code()
    names = tuple(f"{_NAME}_{i}" if len(frontier) > 1 else _NAME for i in range(len(frontier)))
    rest = Graph()
    env = {}
    for n in gm.graph.nodes:
        if n in constant and n.op != "get_attr":
            if n in frontier:
                env[n] = rest.get_attr(names[frontier.index(n)])
                env[n].meta.update(n.meta)
            continue
        env[n] = rest.node_copy(n, env.__getitem__)
    rest.eliminate_dead_code()
    for name in names:
        if not hasattr(gm, name):
            setattr(gm, name, None)
    try:
        return FoldedGraphModule(gm, rest, apart, _NAME, device_for_folded_attrs, names)
    finally:
        for name in names:
            if getattr(gm, name, 0) is None:
                delattr(gm, name)
