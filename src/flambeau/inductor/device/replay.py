"""Graphs of the device whose launches are recorded and replayed as a whole: ``mode="reduce-overhead"``, ``config.triton.cudagraphs``.

The second call records, where nothing of the graph needs the host. A replay reads and writes the memory of the recording: inputs are copied to
it, and results from it, so what a caller holds is never written by a later call.
"""

from __future__ import annotations

from ...base import accelerator
from .graph import CallStep, DeviceGraph

__all__ = ["Replayed", "can_replay"]


def can_replay(graph: DeviceGraph) -> bool:
    """Whether a call of the graph is a list of launches that is known before: no sizes that vary, no calls, no draws, nothing that is looked at."""
    calls = any(isinstance(s, CallStep) for s in graph.steps)
    fixed = not graph.bound and all(p.dtype is not None and p.shares is None for p in graph.outputs)
    return fixed and not (calls or graph.draws or graph.fails) and None not in graph.inputs


class Replayed:
    """``info``: that of the graph."""

    def __init__(self, graph: DeviceGraph):
        self.graph, self.info, self.calls = graph, graph.info, 0
        self.recorded = None

    def __call__(self, *given):
        self.calls += 1
        driver, index = accelerator.needed(), self.graph.device.index or 0
        if self.calls < 2 or driver.capturing(index):
            return self.graph(*given)
        if self.recorded is None:
            self._record(given, driver, index)
        for own, t in zip(self.inputs, given):
            own.copy_(t.detach())
        self.recorded.launch()
        return [t.clone() for t in self.outputs]

    def _record(self, given, driver, index: int) -> None:
        self.inputs = [t.detach().clone() for t in given]
        before, side = driver.current_stream(index), driver.Stream(index)
        driver.synchronize(index)
        driver.set_stream(side)
        try:
            driver.capture_begin(index)
            try:
                self.outputs = self.graph(*self.inputs)
            finally:
                self.recorded = driver.Graph(index)
        finally:
            driver.set_stream(before if before is not None else driver.Stream(index, True))
