"""Names beside ``torch.profiler``'s: what marks a program for the profilers of other devices, and PyTorch's own library."""

from __future__ import annotations

import contextlib

from ..base.public import public_in

__all__ = ["ExecutionTraceObserver", "emit_itt", "emit_nvtx", "kineto_available"]


def kineto_available() -> bool:
    """Whether PyTorch's library Kineto records: it doesn't, the recorder is flambeau's own."""
    return False


@public_in("profiler.profiler")
class ExecutionTraceObserver:
    """PyTorch's recorder of operators with their arguments: NotImplementedError."""

    def __init__(self):
        raise NotImplementedError("torch.profiler.ExecutionTraceObserver is not built")


class _ForeignTracer(contextlib.ContextDecorator):
    """Marks in the trace of a tool that isn't here: NotImplementedError when the block is entered, unless ``enabled`` is False."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        self.enabled, self.record_shapes = enabled, record_shapes

    def __enter__(self):
        if self.enabled:
            raise NotImplementedError(
                f"torch.autograd.profiler.{type(self).__name__}: there are no marks for {self.tool}; torch.profiler.profile records the program"
            )
        return self

    def __exit__(self, *exc):
        return False


@public_in("autograd.profiler")
class emit_nvtx(_ForeignTracer):  # noqa: N801
    """``emit_nvtx(enabled=True, record_shapes=False)``: marks for NVIDIA's profiler. NotImplementedError when it is entered enabled."""

    tool = "NVIDIA's profiler"


@public_in("autograd.profiler")
class emit_itt(_ForeignTracer):  # noqa: N801
    """``emit_itt(enabled=True, record_shapes=False)``: marks for Intel's profiler. NotImplementedError when it is entered enabled."""

    tool = "Intel's profiler"


@public_in("autograd.profiler")
class KinetoStepTracker:
    """Steps of PyTorch's profiler library."""

    @classmethod
    def increment_step(cls, requester: str) -> int:
        return 0


@public_in("autograd.profiler")
class EnforceUnique:
    """Keys that may be seen once: RuntimeError for the second time."""

    def __init__(self):
        self.seen: set = set()

    def see(self, *key) -> None:
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


@public_in("autograd.profiler_util")
class MemRecordsAcc:
    """Records of memory of a trace, as they were given."""

    def __init__(self, mem_records):
        self._records = mem_records


def load_nvprof(path: str):
    """NotImplementedError: traces of GPUs aren't read here."""
    raise NotImplementedError("load_nvprof: traces of GPUs aren't read here")


parse_nvprof_trace = load_nvprof
