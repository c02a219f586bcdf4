"""Shapes and dtypes of every node, by running the graph on example inputs."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...base import dtypes
from ...base.memory_format import channels_last, channels_last_3d, contiguous_format
from ...core.tensor import Tensor, strided
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values. ``qparams`` is empty: there are no quantised tensors here."""

    shape: tuple
    dtype: dtypes.DType
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """The TensorMetadata of a tensor; ``memory_format`` is the first it is contiguous in, None when there is none
    or it isn't asked for."""
    dense = result.layout is strided
    memory_format = None
    if include_contiguity and dense:
        for candidate, rank in ((contiguous_format, None), (channels_last, 4), (channels_last_3d, 5)):
            if (rank is None or result.dim() == rank) and result.is_contiguous(memory_format=candidate):
                memory_format = candidate
                break
    stride = result.stride() if dense else ()
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, stride, memory_format, False, {})


class ShapeProp(Interpreter):
    """``ShapeProp(gm).propagate(*args)`` runs the graph and leaves ``meta["tensor_meta"]`` (TensorMetadata, in the structure of the value) and
    ``meta["type"]`` on each node. With ``fake_mode`` it runs on fakes of the inputs and computes nothing."""

    def __init__(self, gm: GraphModule, fake_mode=None):
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        found = []

        def look(value):
            if not isinstance(value, Tensor):
                return value
            found.append(value)
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, look)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Run the graph on ``args``; returns its result."""
        if self.fake_mode is None:
            return super().run(*args)
        fakes = [self.fake_mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args]
        with self.fake_mode:
            return super().run(*fakes)
