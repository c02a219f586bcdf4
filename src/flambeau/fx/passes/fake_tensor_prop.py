"""Fake values of every node: the graph run on fakes of example inputs."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...fake.fake_tensor import FakeTensorMode
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """``FakeTensorProp(gm).propagate(*args)`` leaves the fake value of each node in ``meta["val"]``."""

    def __init__(self, module: GraphModule, mode: FakeTensorMode | None = None, *, check_consistency: bool = True):
        super().__init__(module)
        self._mode = FakeTensorMode(allow_non_fake_inputs=True) if mode is None else mode

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        n.meta["val"] = map_aggregate(result, lambda v: v.detach() if isinstance(v, Tensor) else v)
        return result

    def propagate(self, *args):
        """Run on fakes of ``args``; returns the graph's result as fakes."""
        return self.propagate_dont_convert_inputs(
            *(self._mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args)
        )

    def propagate_dont_convert_inputs(self, *args):
        """As :meth:`propagate`, on inputs that are fakes already."""
        with self._mode:
            return super().run(*args)
