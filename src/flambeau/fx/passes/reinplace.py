"""Operators of a functional graph turned into their in-place forms where nobody can tell."""

from __future__ import annotations

from typing import Any

from ... import _C
from ...base.shapes import same_shape, statically_equal
from ...core.layouts import overlaps_itself
from ...core.operator import OpOverload, namespace
from ...fake.fake_tensor import FakeTensorMode
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node

__all__ = ["reinplace"]


def reinplace(gm: GraphModule, *sample_args: Any) -> GraphModule:
    """``add(a, 1)`` becomes ``add_(a, 1)`` where ``a`` is the graph's own memory, nothing that shares it is used afterwards, and the result has the
    shape, dtype and strides of ``a``. ``sample_args``: inputs to learn these from. Changes ``gm`` and returns it.

    Memory of inputs and attributes is never written: the caller sees it. Writes into a part of a tensor (``slice_scatter``) stay as they are.
    """
    memory = _Memory(gm, sample_args)
    order = {node: i for i, node in enumerate(gm.graph.nodes)}
    for node in list(gm.graph.nodes):
        if node.op != "call_function" or not isinstance(node.target, OpOverload):
            continue
        op = _inplace(node.target)
        written = node.args[0] if node.args else None
        if op is None or not isinstance(written, Node) or not memory.may_hold(written, node):
            continue
        aliases = memory.aliases(written)
        if any(order[user] > order[node] for alias in aliases for user in alias.users):
            continue
        if any(other in aliases for other in node.all_input_nodes if other is not written):
            continue
        node.target = op
        node.replace_all_uses_with(written, delete_user_cb=lambda user, node=node: user is not node)
        memory.merge(node, written)
    gm.recompile()
    return gm


def _inplace(op: OpOverload) -> OpOverload | None:
    """The in-place form of a functional operator, with the same arguments; None where there isn't one."""
    if op._schema.is_mutable or op._schema.is_view or len(op._schema.returns) != 1:
        return None
    packet = namespace(op.namespace)._packet(f"{op._opname}_")
    found = None if packet is None else packet._overloads.get(op._overloadname)
    if found is None or [a.name for a in found._schema.arguments] != [a.name for a in op._schema.arguments]:
        return None
    return found if found._schema.arguments[0].is_write else None


class _Memory:
    """Which nodes share memory, from a run of the graph on fake tensors."""

    def __init__(self, gm: GraphModule, sample_args: tuple):
        self.values: dict[Node, Any] = {}
        self.groups: dict[int, list[Node]] = {}  # by storage
        self.storage: dict[Node, int] = {}
        self.foreign: set[int] = set()  # storages of inputs and attributes
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        values = self.values

        class Watch(Interpreter):
            def run_node(self, n):
                values[n] = out = super().run_node(n)
                return out

        inputs = [mode.from_tensor(a) if isinstance(a, _C.TensorBase) else a for a in sample_args]
        with mode:
            Watch(gm, garbage_collect_values=False).run(*inputs)
        for node, value in values.items():
            if isinstance(value, _C.TensorBase):
                key = self.storage[node] = id(value._storage)
                self.groups.setdefault(key, []).append(node)
                if node.op in ("placeholder", "get_attr"):
                    self.foreign.add(key)

    def aliases(self, node: Node) -> list[Node]:
        return self.groups[self.storage[node]]

    def may_hold(self, written: Node, result: Node) -> bool:
        """Whether the value of ``result`` fits into the memory of ``written``, which is the graph's own."""
        a, b = self.values.get(written), self.values.get(result)
        if (
            not isinstance(a, _C.TensorBase)
            or not isinstance(b, _C.TensorBase)
            or self.storage[written] in self.foreign
        ):
            return False
        return (
            a.dtype == b.dtype
            and same_shape(a.shape, b.shape)
            and all(map(statically_equal, a.stride(), b.stride()))  # type: ignore[attr-defined]
            and not overlaps_itself(a.shape, a.stride())  # type: ignore[attr-defined]
        )

    def merge(self, node: Node, written: Node) -> None:
        """``node`` lies in the memory of ``written`` now, and so does what shares its memory."""
        key = self.storage[written]
        for alias in self.groups.pop(self.storage[node]):
            self.storage[alias] = key
            self.groups[key].append(alias)
