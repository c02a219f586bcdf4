"""The nodes of a graph, under the names of PyTorch's methods. A node doesn't change once it is made."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import text
from .values import Attribute, Result, Use, Value

if TYPE_CHECKING:
    from .blocks import Block

__all__ = ["Node"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Node:
    """A call of an operator (``aten::add``), a constant, or a construct of the language (``prim::If``). ``scope``: the modules of the call."""

    _kind: str
    _inputs: tuple[Value, ...]
    _results: tuple[Result, ...] = ()
    _attributes: dict[str, Attribute] = dataclasses.field(default_factory=dict)
    _blocks: tuple[Block, ...] = ()
    _scope: str = ""
    _schema: Any = None
    _outputs: tuple[Value, ...] = dataclasses.field(default=(), init=False)

    def __post_init__(self):
        object.__setattr__(self, "_outputs", tuple(Value(*r, self, i) for i, r in enumerate(self._results)))
        for offset, value in enumerate(self._inputs):
            value._uses.append(Use(self, offset))

    def kind(self) -> str:
        """The name with its namespace: ``"aten::add"``."""
        return self._kind

    def inputs(self) -> Iterator[Value]:
        """What the node takes, in order."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        """What the node gives, in order."""
        return iter(self._outputs)

    def input(self) -> Value:
        """The only input. RuntimeError where there are none or several."""
        return self._only(self._inputs, "input")

    def output(self) -> Value:
        """The only output. RuntimeError where there are none or several."""
        return self._only(self._outputs, "output")

    def _only(self, values: tuple[Value, ...], what: str) -> Value:
        if len(values) != 1:
            raise RuntimeError(
                f"Tried to access a single {what} on node '{self._kind}' which has {len(values)} {what}s. "
                f"You may consider using node.{what}s() instead."
            )
        return values[0]

    def inputsAt(self, i: int) -> Value:
        """The input number ``i``."""
        return self._inputs[i]

    def outputsAt(self, i: int) -> Value:
        """The output number ``i``."""
        return self._outputs[i]

    def inputsSize(self) -> int:
        """The count of the inputs."""
        return len(self._inputs)

    def outputsSize(self) -> int:
        """The count of the outputs."""
        return len(self._outputs)

    def hasMultipleOutputs(self) -> bool:
        """Whether there is more than one output."""
        return len(self._outputs) > 1

    def hasUses(self) -> bool:
        """Whether some node takes an output."""
        return any(v._uses for v in self._outputs)

    def namedInput(self, name: str) -> Value:
        """The input for an argument of the operator's schema. RuntimeError for another name."""
        names = [a.name for a in self._schema.arguments] if self._schema is not None else []
        if name not in names or names.index(name) >= len(self._inputs):
            raise RuntimeError(f"'{self._kind}' has no input named '{name}'")
        return self._inputs[names.index(name)]

    def blocks(self) -> Iterator[Block]:
        """The blocks of ``prim::If`` and ``prim::Loop``."""
        return iter(self._blocks)

    def schema(self) -> str:
        """The operator's schema; "(no schema)" for constructs of the language."""
        return "(no schema)" if self._schema is None else str(self._schema)

    def scopeName(self) -> str:
        """The calls of modules that the node belongs to: ``__module.body/__module.body.0``; empty where there are none or they aren't known."""
        return self._scope

    def attributeNames(self) -> list[str]:
        """The names of the attributes."""
        return list(self._attributes)

    def hasAttributes(self) -> bool:
        """Whether there are attributes."""
        return bool(self._attributes)

    def hasAttribute(self, name: str) -> bool:
        """Whether there is an attribute of the name."""
        return name in self._attributes

    def kindOf(self, name: str) -> str:
        """The letter of the method that gives the attribute. RuntimeError where there is none of the name."""
        return self._attribute(name).kind

    def _attribute(self, name: str, kind: str | None = None) -> Attribute:
        found = self._attributes.get(name)
        if found is None:
            raise RuntimeError(f"required keyword attribute '{name}' is undefined")
        if kind is not None and found.kind != kind:
            raise RuntimeError(f"required keyword attribute '{name}' has the wrong type")
        return found

    def i(self, name: str) -> int:
        """An attribute that is a whole number or truth value, as a number. RuntimeError where it is neither, as of all these methods."""
        return int(self._attribute(name, "i").value)

    def f(self, name: str) -> float:
        """An attribute that is a float."""
        return self._attribute(name, "f").value

    def c(self, name: str) -> complex:
        """An attribute that is a complex number."""
        return self._attribute(name, "c").value

    def s(self, name: str) -> str:
        """An attribute that is text, or a device as its text."""
        return str(self._attribute(name, "s").value)

    def t(self, name: str):
        """An attribute that is a tensor."""
        return self._attribute(name, "t").value

    def ival(self, name: str):
        """An attribute of another type."""
        return self._attribute(name, "ival").value

    def constant(self):
        """The value of a ``prim::Constant``: None where it has no attribute."""
        found = self._attributes.get("value")
        return None if found is None else found.value

    def mustBeNone(self) -> bool:
        """Whether the node is the constant None."""
        return self._kind == "prim::Constant" and "value" not in self._attributes

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        """The first node of a kind in the blocks, None where there is none."""
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """The nodes of a kind in the blocks, and with ``recurse`` in theirs."""
        return [n for block in self._blocks for n in block.findAllNodes(kind, recurse)]

    def __repr__(self) -> str:
        return text.of_node(self, "")
