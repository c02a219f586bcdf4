"""Results that the backward makes again from their input and a few numbers, instead of having them saved.

An operator's override ``"recompute"``, called with the operator's arguments, gives these numbers (tensors) and a function that makes the result from
the first argument and them, or None. Where the input is in memory anyway, because a product makes it, and the result isn't, because only loops
read it, saving the input and the numbers needs half the memory: softmax cross-entropy keeps the scores and two numbers a row, and no matrix of
probabilities is ever written. Where both are computed again (``wide``, see wide.py), the numbers spare the backward two passes over a row.
"""

from __future__ import annotations

from collections.abc import Iterable

from .. import _C
from ..autograd import no_grad
from ..base.symint import NUMBERS
from ..core import modes
from ..core.layouts import strides_of
from ..core.modes import TorchDispatchMode
from ..fx import Graph, Node
from ..fx.node import map_arg
from ..fx.targets import override_of
from ..proxy.sizes import SizeNodes
from .costs import is_fusible, is_view

__all__ = ["Recorder", "open_for_backward", "open_parts"]


class Recorder(TorchDispatchMode):
    """Writes the operators called on fake tensors into a graph."""

    sees_parts = True

    def __init__(self, graph: Graph, like: Node, inputs: Iterable[Node] | None = None):
        super().__init__()
        self.graph, self.like = graph, like
        self.nodes: dict[int, Node] = {}
        self.values: list = []  # keeps what ``nodes`` names by id
        self.sizes = SizeNodes(graph)
        # A size may be that of an input which the operator isn't given.
        for n in symbolic_inputs(graph) if inputs is None else inputs:
            self._bind(n.meta["val"], n)

    def know(self, value, node: Node):
        self.nodes[id(value)] = node
        self.values.append(value)
        self._bind(value, node)
        return value

    def _bind(self, value, node: Node) -> None:
        if isinstance(value, _C.TensorBase):
            self.sizes.bind_tensor(value, node)
        elif isinstance(value, NUMBERS):
            self.sizes.bind_number(value, node)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        node = self.graph.call_function(func, *self._arguments(args, kwargs or {}))
        node.meta = {**self.like.meta, "val": out}
        self.know(out, node)
        return out

    def _arguments(self, args, kwargs):
        def of(a):
            if isinstance(a, (tuple, list)):
                return type(a)(map(of, a)) if type(a) in (tuple, list) else tuple(map(of, a))
            if id(a) in self.nodes:
                return self.nodes[id(a)]
            return self.sizes.node_of(a) if isinstance(a, NUMBERS) else a

        return of(tuple(args)), {k: of(v) for k, v in kwargs.items()}


def symbolic_inputs(graph: Graph) -> list[Node]:
    """The inputs that are numbers, or tensors with a size or step that the call tells."""

    def varies(val) -> bool:
        numbers = (*val.shape, *strides_of(val)) if isinstance(val, _C.TensorBase) else (val,)
        return any(isinstance(n, NUMBERS) for n in numbers)

    return [n for n in graph.nodes if n.op == "placeholder" and varies(n.meta["val"])]


def open_for_backward(graph: Graph, backward: dict[Node, None], outputs: list, wide: set[Node]) -> bool:
    """Open such operators of a joint graph. ``backward``: its nodes that depend on tangents; ``outputs``: the forward's. Whether there were any."""
    changed = False
    symbolic = symbolic_inputs(graph)
    for n in list(graph.nodes):
        again = _rule(n)
        late = [u for u in n.users if u in backward]
        if again is None or not late or n in outputs:
            continue
        early = [u for u in n.users if u not in backward]
        if n not in wide and not (_made_by_kernel(n.args[0]) and all(map(is_fusible, early))):
            continue
        args = map_arg(n.args, lambda a: a.meta["val"])
        with (
            graph.inserting_before(n),
            modes.disabled("dispatch"),
            args[0].fake_mode,
            Recorder(graph, n, symbolic) as record,
        ):
            record.know(args[0], n.args[0])
            with no_grad():
                found = again(*n.target.full(*args, **n.kwargs))
                if found is None:
                    continue
                numbers, remake = found
                # One for each side: a value that both read would count as one that is in memory.
                results = [record.nodes[id(remake(args[0], *numbers))] for _ in range(2)]
        for users, result in ((early, results[0]), (late, results[1])):
            for u in users:
                u.replace_input_with(n, result)
        graph.erase_node(n)
        changed = True
    return changed


def open_parts(graph: Graph) -> None:
    """Put its parts in the place of each operator with several results whose override ``"parts"``, called with the operator's arguments, says
    so: then a part may be saved, and what loops make of it (a normalised tensor) again."""
    decomposed = [n for n in graph.nodes if n.op == "call_function" and _opens(n)]
    symbolic = symbolic_inputs(graph)
    for n in decomposed:
        inputs = {id(v): (v, i) for i in n._inputs for v in [i.meta["val"]]}
        args, kwargs = (map_arg(a, lambda i: i.meta["val"]) for a in (n.args, n.kwargs))
        mode = args[0].fake_mode
        with graph.inserting_before(n), modes.disabled("dispatch"), mode, Recorder(graph, n, symbolic) as record:
            for value, node in inputs.values():
                record.know(value, node)
            with no_grad():
                made = n.target.definition.fn(*n.target.full(*args, **kwargs))
        for u in list(n.users):
            u.replace_all_uses_with(record.nodes[id(made[u.args[1]])])
            graph.erase_node(u)
        graph.erase_node(n)


def _opens(n: Node) -> bool:
    asks = override_of(n.target, "parts")
    return asks is not None and asks(*n.args)


def _rule(n: Node):
    return override_of(n.target, "recompute") if n.op == "call_function" else None


def _made_by_kernel(n: Node) -> bool:
    """Whether a value is in memory: an input of the graph, or what an operator makes that doesn't fuse."""
    while is_view(n):
        n = n.args[0]
    return n.op == "placeholder" or not is_fusible(n)
