"""Common subexpression elimination: of equal calls on equal arguments one is kept."""

from __future__ import annotations

from typing import Any

from .....core.operator import namespace
from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node
from ....targets import packet_of
from ...infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]

_RANDOM = (
    "dropout _fused_dropout _standard_gamma bernoulli multinomial native_dropout normal poisson binomial rrelu rand_like rand randint "
    "randint_like randn randn_like randperm"
)


def get_CSE_banned_ops() -> set[Any]:  # noqa: N802
    """Packets of operators that are never the same twice: those that draw. What writes is left alone without being named."""
    aten = namespace("aten")
    return {getattr(aten, name) for name in _RANDOM.split() if aten._packet(name) is not None}


def _frozen(value: Any) -> Any:
    """``value`` as a key: with the types of its leaves, as 1, 1.0 and True are equal."""
    if isinstance(value, (list, tuple)):
        return (type(value).__name__ if isinstance(value, tuple) else "list", *map(_frozen, value))
    if isinstance(value, dict):
        return ("dict", *((k, _frozen(v)) for k, v in value.items()))
    if isinstance(value, slice):
        return ("slice", _frozen(value.start), _frozen(value.stop), _frozen(value.step))
    return (type(value), repr(value)) if isinstance(value, float) else (type(value), value)


class CSEPass(PassBase):
    """``CSEPass(banned_ops=get_CSE_banned_ops())(gm)``: a PassResult with a new module; ``modified`` says whether it has fewer nodes.

    ``banned_ops``: operators, or packets of them, whose calls are all kept. What writes is kept too, and what was computed before a write isn't
    taken for what is computed after it.
    """

    def __init__(self, banned_ops: set[Any] | None = None):
        super().__init__()
        self.banned_ops = banned_ops if banned_ops is not None else set()

    def call(self, graph_module: GraphModule) -> PassResult:
        graph = Graph()
        env: dict[Node, Node] = {}
        known: dict[Any, Node] = {}
        modified = False
        for n in graph_module.graph.nodes:
            if n.op in ("placeholder", "output", "get_attr") or self._stays(n):
                env[n] = graph.node_copy(n, env.__getitem__)
                if n.op.startswith("call") and n.is_impure():
                    known.clear()
                continue
            copied = graph.node_copy(n, env.__getitem__)
            try:
                key = (n.op, n.target, _frozen(copied.args), _frozen(dict(copied.kwargs)))
                same = known.get(key)
            except TypeError:  # an argument that can't be a key
                env[n] = copied
                continue
            if same is None:
                known[key] = env[n] = copied
            else:
                graph.erase_node(copied)
                env[n], modified = same, True
        return PassResult(GraphModule(graph_module, graph), modified)

    def _stays(self, n: Node) -> bool:
        target = n.target
        packet = packet_of(target)
        return n.op == "call_module" or target in self.banned_ops or packet in self.banned_ops or n.is_impure()
