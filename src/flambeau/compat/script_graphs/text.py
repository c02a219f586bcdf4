"""The text of graphs, as PyTorch writes it: ``%3 : Tensor = aten::mul(%x, %2)``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ...base.device import Device
from ...core.tensor import Tensor
from ..torchscript.values import shown

if TYPE_CHECKING:
    from .blocks import Block, Graph
    from .nodes import Node
    from .values import Value

__all__ = ["of_graph", "of_node"]


def _names(values) -> str:
    return ", ".join(f"%{v.debugName()}" for v in values)


def _declared(values, between: str = ", ") -> str:
    return between.join(f"%{v.debugName()} : {v.type().text()}" for v in values)


def _constant(value) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str | Device):
        return json.dumps(str(value), ensure_ascii=False).replace("'", "\\'")
    if isinstance(value, Tensor):
        if value.dim():
            return "<Tensor>"
        number = value.item()
        return f"{{{number:g}}}" if isinstance(number, float) else f"{{{_constant(number)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_constant, value))}]"
    return shown(value)


def of_node(node: Node, indent: str) -> str:
    """The lines of a node and its blocks, each with its newline."""
    attributes = ", ".join(f"{name}={_constant(a.value)}" for name, a in node._attributes.items())
    kind = f"{node.kind()}[{attributes}]" if attributes else node.kind()
    scope = f", scope: {node.scopeName()}" if node.scopeName() else ""
    out = f"{indent}{_declared(node.outputs())} = {kind}({_names(node.inputs())}){scope}\n"
    for i, block in enumerate(node.blocks()):
        out += f"{indent}  block{i}({_declared(block.inputs())}):\n{_nodes(block, indent + '    ')}"
        out += f"{indent}    -> ({_names(block.outputs())})\n"
    return out


def _nodes(block: Block, indent: str) -> str:
    return "".join(of_node(node, indent) for node in block.nodes())


def of_graph(graph: Graph) -> str:
    """The lines of a graph."""
    inputs: list[Value] = list(graph.inputs())
    return (
        f"graph({_declared(inputs, f',{chr(10)}      ')}):\n{_nodes(graph, '  ')}  return ({_names(graph.outputs())})\n"
    )
