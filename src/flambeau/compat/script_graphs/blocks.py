"""Blocks of nodes, and graphs, which are the outermost ones. They don't change once they are made."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from . import text
from .nodes import Node
from .values import Value

__all__ = ["Block", "Graph"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Block:
    """Nodes of a branch or of a loop's body, with inputs and outputs of their own."""

    _param: Node
    _nodes: tuple[Node, ...]
    _return: Node

    def inputs(self) -> Iterator[Value]:
        """What is given to the block."""
        return self._param.outputs()

    def outputs(self) -> Iterator[Value]:
        """What the block gives."""
        return self._return.inputs()

    def nodes(self) -> Iterator[Node]:
        """The nodes in order, without those of inner blocks."""
        return iter(self._nodes)

    def paramNode(self) -> Node:
        """The ``prim::Param`` whose outputs are the inputs."""
        return self._param

    def returnNode(self) -> Node:
        """The ``prim::Return`` whose inputs are the outputs."""
        return self._return

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        """The first node of a kind, None where there is none."""
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """The nodes of a kind, and with ``recurse`` those of inner blocks."""
        found = []
        for node in self._nodes:
            found += [node] if node.kind() == kind else []
            found += node.findAllNodes(kind) if recurse else []
        return found


class Graph(Block):
    """What a traced or archived function does: its nodes in order. ``str(graph)`` is its text."""

    def param_node(self) -> Node:
        """The ``prim::Param`` whose outputs are the graph's inputs."""
        return self._param

    def return_node(self) -> Node:
        """The ``prim::Return`` whose inputs are the graph's outputs."""
        return self._return

    def str(self, print_source_ranges: bool = True):
        """The text of the graph; places in the source aren't in it."""
        return repr(self)

    def copy(self) -> Graph:
        """The graph itself: it doesn't change."""
        return self

    def lint(self) -> None:
        """Nothing: a graph is well formed when it is made."""

    def __repr__(self) -> str:
        return text.of_graph(self)
