"""A graph on tensors of the second device, compiled for the host: the same graph on the CPU, between copies of its inputs and results.

So a graph is a few fused kernels there too, and its intermediate results never leave the host.
"""

from __future__ import annotations

from typing import Any

from .. import _C
from ..base.device import CPU, Device
from ..base.logs import artifact
from ..base.records import replace
from ..core import device_memory
from ..core.generator import drawing_on
from ..fake.fake_tensor import FakeTensor
from ..fake.meta import meta_of
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node

__all__ = ["OnHost", "devices_of", "host_graph", "stays"]

_HINTS = artifact("perf_hints", "")


def devices_of(gm) -> set[Device]:
    """The devices, the CPU not among them, that values of a graph lie on."""
    found: set[Device] = set()
    for node in gm.graph.nodes:
        val = node.meta.get("val")
        for v in val if isinstance(val, (list, tuple)) else (val,):
            if isinstance(v, _C.TensorBase) and v._device.type != "cpu":
                found.add(v._device)
    return found


def stays(gm) -> bool:
    """Whether nothing that a graph computes lies on the CPU."""
    for node in gm.graph.nodes:
        val = node.meta.get("val")
        for v in val if isinstance(val, (list, tuple)) else (val,):
            if node.op == "call_function" and isinstance(v, _C.TensorBase) and v._device.type == "cpu":
                return False
    return True


def _on_cpu(val):
    if isinstance(val, FakeTensor):
        return FakeTensor(val.fake_mode, replace(meta_of(val), device=CPU))
    if isinstance(val, (list, tuple)):
        return type(val)(map(_on_cpu, val))
    return val


def _argument(x):
    if isinstance(x, Device):
        return CPU
    if isinstance(x, (list, tuple)):
        return type(x)(map(_argument, x))
    return x


def host_graph(gm) -> GraphModule | None:
    """The graph with all of its values on the CPU. None where it holds tensors of another device."""
    graph = Graph()
    env: dict[Node, Node] = {}
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            return None
        copied = env[node] = graph.node_copy(node, env.__getitem__)
        copied.meta = {**node.meta, "val": _on_cpu(node.meta.get("val"))}
        copied.args = _argument(tuple(copied.args))
        copied.kwargs = {name: _argument(x) for name, x in copied.kwargs.items()}
    return GraphModule(gm, graph)


class OnHost:
    """A call of the compiled graph. ``places``: the device of each result, None for what is no tensor."""

    def __init__(self, graph: Any, gm, device: Device):
        self.graph, self.device = graph, device
        outputs = gm.graph.output_node().args[0]
        values = [x.meta.get("val") if isinstance(x, Node) else x for x in outputs]
        self.places = [v._device if isinstance(v, _C.TensorBase) else None for v in values]
        _HINTS("a graph of %d operators goes through the host: device '%s' has no kernels", len(gm.graph.nodes), device)

    def __call__(self, *inputs):
        given = [
            _C.from_array(device_memory.read(x)) if isinstance(x, _C.TensorBase) and device_memory.on_device(x) else x
            for x in inputs
        ]
        with drawing_on(self.device):
            made = self.graph(*given)
        return [
            x if place is None or x is None or place == CPU else device_memory.upload(x, place)
            for x, place in zip(made, self.places)
        ]
