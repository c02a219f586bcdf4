"""Making a graph, node after node."""

from __future__ import annotations

import itertools
from typing import Any

from ...base.device import Device
from ...core.tensor import Tensor
from .blocks import Block, Graph
from .nodes import Node
from .types import TENSOR, ScriptType, of_value
from .values import Attribute, Result, Value

__all__ = ["Builder"]

_KINDS = {bool: "i", int: "i", float: "f", complex: "c", str: "s"}


def _attribute(value) -> Attribute:
    if isinstance(value, Tensor):
        return Attribute("t", value)
    if isinstance(value, Device):
        return Attribute("s", value)
    if isinstance(value, list) and value and type(value[0]) in _KINDS:
        return Attribute(f"{_KINDS[type(value[0])]}s", value)
    return Attribute(_KINDS.get(type(value), "ival"), value)


class Builder:
    """Nodes so far, and names that are taken. Blocks are made by builders of the same names (:meth:`inner`).

    ``inputs``: of the graph or block. ``scope``: of the nodes to come."""

    def __init__(self, inputs: list[Result], taken: set[str] | None = None):
        self.taken = set() if taken is None else taken
        self.param = Node("prim::Param", (), tuple(Result(self.named(name), kind) for name, kind in inputs))
        self.nodes: list[Node] = []
        self.scope = ""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values of the inputs."""
        return self.param._outputs

    def inner(self, inputs: list[Result]) -> Builder:
        """What makes a block of this graph."""
        made = Builder(inputs, self.taken)
        made.scope = self.scope
        return made

    def named(self, wanted: str = "") -> str:
        """A name that no value has: the one that is wanted, with a number behind it where it is taken; of none a number."""
        numbers = itertools.count(1 if wanted else len(self.taken))
        name = wanted or str(next(numbers))
        while name in self.taken:
            name = f"{wanted}.{next(numbers)}" if wanted else str(next(numbers))
        self.taken.add(name)
        return name

    def node(
        self,
        kind: str,
        inputs=(),
        types=(),
        *,
        name: str = "",
        attributes: dict[str, Any] | None = None,
        blocks: tuple[Block, ...] = (),
        schema=None,
    ) -> Node:
        """A node that gives values of these types; ``name``: of its only one."""
        results = tuple(Result(self.named(name if len(types) == 1 else ""), t) for t in types)
        held = {key: _attribute(value) for key, value in (attributes or {}).items()}
        made = Node(kind, tuple(inputs), results, held, blocks, self.scope, schema)
        self.nodes.append(made)
        return made

    def constant(self, value, kind: ScriptType | None = None, name: str = "") -> Value:
        """A constant of a number, text, device, tensor or None."""
        attributes = {} if value is None else {"value": value}
        return self.node("prim::Constant", (), (kind or of_value(value),), attributes=attributes, name=name).output()

    def attribute(self, of: Value, name: str, kind: ScriptType = TENSOR, wanted: str = "") -> Value:
        """The attribute ``name`` of an object."""
        wanted = wanted or (f"_{name}" if name.isdigit() else name)
        return self.node("prim::GetAttr", (of,), (kind,), name=wanted, attributes={"name": name}).output()

    def collected(self, kind: ScriptType, values) -> Value:
        """A list or tuple of values."""
        return self.node(f"prim::{kind.base}Construct", values, (kind,)).output()

    def block(self, outputs) -> Block:
        """The block of the nodes so far."""
        return Block(self.param, tuple(self.nodes), Node("prim::Return", tuple(outputs)))

    def graph(self, outputs) -> Graph:
        """The graph of the nodes so far."""
        return Graph(self.param, tuple(self.nodes), Node("prim::Return", tuple(outputs)))
