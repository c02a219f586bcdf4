"""Values of a graph, and what nodes are made of besides them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from .types import ScriptType, TensorType

if TYPE_CHECKING:
    from .nodes import Node

__all__ = ["Attribute", "Result", "Use", "Value"]


class Attribute(NamedTuple):
    """``kind``: PyTorch's letter: "i", "f", "c", "s", "t" for a tensor, "ival" for anything else; with an "s" behind it of a list."""

    kind: str
    value: Any


class Result(NamedTuple):
    """What a node gives: the name and type of one of its values."""

    name: str
    type: ScriptType


class Use(NamedTuple):
    """A use of a value: as the input number ``offset`` of the node ``user``."""

    user: Node
    offset: int


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Value:
    """What a node gives, or an input of a graph or block, which ``prim::Param`` gives."""

    _name: str
    _type: ScriptType
    _node: Node
    _offset: int
    _uses: list[Use] = dataclasses.field(default_factory=list)  # grows while the graph is made

    def debugName(self) -> str:
        """The name in the text of the graph, without its ``%``."""
        return self._name

    def type(self) -> ScriptType:
        """The static type."""
        return self._type

    def node(self) -> Node:
        """The node that gives the value."""
        return self._node

    def offset(self) -> int:
        """Which of the node's results the value is."""
        return self._offset

    def uses(self) -> list[Use]:
        """The nodes that take the value, ``prim::Return`` among them."""
        return list(self._uses)

    def isCompleteTensor(self) -> bool:
        """Whether the value is a tensor of which dtype, sizes and device are known."""
        return isinstance(self._type, TensorType)

    def requires_grad(self) -> bool:
        """Whether it may have a gradient: True where that isn't known."""
        return self._type.requires_grad()

    requiresGrad = requires_grad

    def toIValue(self):
        """The value of a constant; None for other values."""
        return self._node.constant() if self._node.kind() == "prim::Constant" else None

    def __repr__(self) -> str:
        return f"{self._name} defined in ({self._node})"
