"""``torch.profiler``: wall-clock times of the operators that are called, and blocks named by ``record_function``."""

from __future__ import annotations

import contextlib
import enum
import json
import time
from collections import defaultdict

from ..core.modes import TorchDispatchMode

__all__ = [
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
]
__all__ += [
    "supported_activities",
    "tensorboard_trace_handler",
    "kineto_available",
    "ExecutionTraceObserver",
    "emit_itt",
    "emit_nvtx",
]

_running: list = []


class ProfilerActivity(enum.Enum):
    CPU = 0
    CUDA = 1
    XPU = 2
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


class DeviceType(enum.Enum):
    CPU = 0
    CUDA = 1


class ProfilerAction(enum.Enum):
    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set:
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    return False


def _default_schedule_fn(_: int) -> ProfilerAction:
    """Record every step."""
    return ProfilerAction.RECORD


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
    acc_events: bool = False,
):
    """What to do at each step: wait, warm up, record; the last recorded step of a cycle saves."""

    def action(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        cycle = wait + warmup + active
        if repeat and step / cycle >= repeat:
            return ProfilerAction.NONE
        at = step % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


class FunctionEvent:
    """Name, start and duration (microseconds) of one call."""

    def __init__(self, name: str, start: float, duration: float):
        self.name = self.key = name
        self.start, self.count = start, 1
        self.cpu_time_total = self.self_cpu_time_total = self.cpu_time = duration
        self.device_time_total = self.cuda_time_total = 0.0


class EventList(list):
    """Events, or their sums by name."""

    def table(self, sort_by=None, row_limit: int = 100, **kwargs) -> str:
        rows = sorted(self, key=lambda e: -e.cpu_time_total)[:row_limit]
        total = sum(e.cpu_time_total for e in self) or 1.0
        lines = [f"{'Name':<48}{'CPU total':>14}{'CPU %':>9}{'# of Calls':>12}"]
        lines += [
            f"{e.key[:47]:<48}{e.cpu_time_total:>12.1f}us{e.cpu_time_total / total:>9.1%}{e.count:>12}" for e in rows
        ]
        return "\n".join(lines)

    def total_average(self):
        out = FunctionEvent("Total", 0.0, sum(e.cpu_time_total for e in self))
        out.count = sum(e.count for e in self)
        return out

    @property
    def self_cpu_time_total(self) -> float:
        return sum(e.self_cpu_time_total for e in self)


class _Times(TorchDispatchMode):
    sees_parts = True

    def __init__(self, events):
        super().__init__()
        self.events = events

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        begin = time.perf_counter()
        out = func(*args, **(kwargs or {}))
        self.events.append(
            FunctionEvent(f"aten::{func.overloadpacket.__name__}", begin * 1e6, (time.perf_counter() - begin) * 1e6)
        )
        return out


class profile:  # noqa: N801
    """Context manager: records operators while on. ``key_averages()`` sums by name; ``export_chrome_trace`` writes the events."""

    def __init__(self, *args, activities=None, schedule=None, on_trace_ready=None, **kwargs):
        self.schedule, self.on_trace_ready = schedule, on_trace_ready
        self.step_num, self._mode, self._events = 0, None, EventList()

    def _apply(self) -> None:
        action = self.schedule(self.step_num) if self.schedule else ProfilerAction.RECORD
        recording = action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if recording and self._mode is None:
            self._mode = _Times(self._events)
            self._mode.__enter__()
            _running.append(self)
        elif not recording and self._mode is not None:
            self._pause()

    def _pause(self) -> None:
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
            self._mode = None
            _running.remove(self)

    def start(self) -> None:
        self._apply()

    def stop(self) -> None:
        self._pause()
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        saving = self.schedule is not None and self.schedule(self.step_num) is ProfilerAction.RECORD_AND_SAVE
        self.step_num += 1
        if saving:
            self._pause()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        self._apply()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()
        return False

    def events(self) -> EventList:
        return self._events

    def key_averages(self, *args, **kwargs) -> EventList:
        sums: dict = defaultdict(lambda: None)
        for e in self._events:
            known = sums[e.key]
            if known is None:
                sums[e.key] = FunctionEvent(e.key, e.start, e.cpu_time_total)
            else:
                known.count += 1
                known.cpu_time_total += e.cpu_time_total
                known.self_cpu_time_total = known.cpu_time_total
        return EventList(sums.values())

    def export_chrome_trace(self, path: str) -> None:
        rows = [
            {"name": e.name, "ph": "X", "ts": e.start, "dur": e.cpu_time_total, "pid": 0, "tid": 0}
            for e in self._events
        ]
        with open(path, "w") as file:
            json.dump({"traceEvents": rows}, file)

    def add_metadata(self, key: str, value: str) -> None:
        """Metadata of the trace; not written."""

    add_metadata_json = add_metadata


_KinetoProfile = profile


class record_function(contextlib.ContextDecorator):  # noqa: N801
    """Name a block in the profile."""

    def __init__(self, name: str, args=None):
        self.name = name

    def __enter__(self):
        self._begin = time.perf_counter()
        return self

    def __exit__(self, *exc):
        for p in _running:
            p._events.append(FunctionEvent(self.name, self._begin * 1e6, (time.perf_counter() - self._begin) * 1e6))
        return False


def tensorboard_trace_handler(dir_name: str, worker_name=None, use_gzip: bool = False):
    """``on_trace_ready`` that writes a trace into a folder."""
    import os

    def handler(prof) -> None:
        os.makedirs(dir_name, exist_ok=True)
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker_name or 'worker'}.{time.time_ns()}.pt.trace.json"))

    return handler


class ExecutionTraceObserver:
    def __init__(self):
        raise NotImplementedError("torch.profiler.ExecutionTraceObserver is not built")


class _Nothing(contextlib.ContextDecorator):
    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


class emit_nvtx(_Nothing):  # noqa: N801
    """Marks for a GPU's profiler: none here."""


class emit_itt(_Nothing):  # noqa: N801
    """Marks for Intel's profiler: none here."""


class KinetoStepTracker:
    """Steps of PyTorch's profiler library."""

    @classmethod
    def increment_step(cls, requester: str) -> int:
        return 0


class EnforceUnique:
    def __init__(self):
        self.seen: set = set()

    def see(self, *key) -> None:
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class MemRecordsAcc:
    def __init__(self, mem_records):
        self._records = mem_records


def load_nvprof(path: str):
    raise NotImplementedError("load_nvprof: traces of GPUs aren't read here")


parse_nvprof_trace = load_nvprof
