"""The graphs of ``torch.jit``: records that programs walk and print, made of traces and of the methods of TorchScript archives."""

from .blocks import Block, Graph
from .nodes import Node
from .types import ScriptType, TensorType
from .values import Use, Value

__all__ = ["Block", "Graph", "Node", "ScriptType", "TensorType", "Use", "Value"]
