"""An event of a profile, lists of them, and their sums."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from ..base.public import public_in

__all__ = ["DeviceType", "EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]

METRICS = ("self_cpu_time_total",)


@public_in("_C._autograd")
class DeviceType(enum.Enum):
    """Where an event ran: ``CPU`` for all events recorded here."""

    CPU = 0
    CUDA = 1


class Interval:
    """``start`` and ``end`` in microseconds of the monotonic clock."""

    __slots__ = ("end", "start")

    def __init__(self, start: float, end: float):
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """Microseconds from start to end."""
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval({self.start:.1f}, {self.end:.1f})"


class _Times:
    """What one event and a sum of events have in common. Times are in microseconds. The time of a device is that of launches and copies from when
    they are given to it until they are done."""

    key: str
    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_type = DeviceType.CPU
    use_device = None
    device_time_total: float
    self_device_time_total: float
    device_memory_usage = self_device_memory_usage = 0
    is_async = is_remote = is_legacy = False

    @property
    def cpu_time(self) -> float:
        """Microseconds of a call, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Microseconds of the device for a call, on average."""
        return self.device_time_total / self.count if self.count else 0.0

    # The same under the names that CUDA's had.
    cuda_time = property(lambda self: self.device_time)
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)


@public_in("autograd.profiler_util")
class FunctionEvent(_Times):
    """One call.

    ``category``: "cpu_op", "autograd", "compiled_graph", "kernel", "native_loop", "collective", "device" (a launch or
    a copy, as the host sees it) or "user_annotation". ``lines``: of the
    user's, for what is compiled. ``note``: what a kernel is, and ``bytes`` that it moves. ``stack``: entries ``file(line): function``, the innermost
    first, None unless asked for. ``forward``: the call that made a node of a backward pass."""

    def __init__(
        self,
        id: int,
        name: str,
        category: str,
        thread: int,
        time_range: Interval,
        sequence_nr: int = -1,
    ):
        self.id, self.name, self.key, self.trace_name = id, name, name, name
        self.category, self.thread, self.time_range, self.sequence_nr = category, thread, time_range, sequence_nr
        self.count = 1
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.forward: FunctionEvent | None = None
        self.input_shapes: list = []
        self.input_dtypes: list[str] = []
        self.concrete_inputs: list = []
        self.stack: list[str] | None = None
        self.lines: list = []
        self.note: Any = None
        self.bytes = self.flops = self.cpu_memory_usage = 0
        self.counted = False  # whether its operations are counted, by itself or by an event around it

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds from the beginning to the end."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds in the event itself, without the events within it."""
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:  # type: ignore[override]
        """Microseconds of the device, where the event is a launch or a copy."""
        return self.cpu_time_total if self.category == "device" else 0.0

    @property
    def device_time_total(self) -> float:  # type: ignore[override]
        """Microseconds of the device for the event and those within it."""
        return self.self_device_time_total + sum(c.device_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes taken (given back: negative) by the event itself."""
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    @property
    def is_user_annotation(self) -> bool:
        return self.category == "user_annotation"

    @property
    def location(self) -> list[str]:
        """Where it comes from: the lines of what is compiled, or the stack."""
        if self.lines:
            return [f"{line.file}({line.now() or line.number}): {line.function}" for line in self.lines]
        return self.stack or []

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.name!r} {self.cpu_time_total:.1f} us, thread {self.thread}>"


class FunctionEventAvg(_Times):
    """Sums over events of one key."""

    def __init__(self, first: FunctionEvent):
        self.key = first.key
        self.category, self.lines, self.stack = first.category, first.lines, first.stack
        self.input_shapes = first.input_shapes
        self.location = first.location
        self.is_user_annotation = first.is_user_annotation
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.device_time_total = self.self_device_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = self.flops = self.bytes = 0

    def add(self, event: FunctionEvent) -> None:
        """Count an event. What runs within an event of the same key is counted once in the totals."""
        self.count += 1
        self.self_cpu_time_total += event.self_cpu_time_total
        self.self_device_time_total += event.self_device_time_total
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.flops += event.flops
        self.bytes += event.bytes
        if not _within_its_like(event):
            self.cpu_time_total += event.cpu_time_total
            self.device_time_total += event.device_time_total
            self.cpu_memory_usage += event.cpu_memory_usage

    def __repr__(self) -> str:
        return f"<FunctionEventAvg {self.key!r} x {self.count}, self {self.self_cpu_time_total:.1f} us>"


def _within_its_like(event: FunctionEvent) -> bool:
    parent = event.cpu_parent
    while parent is not None and parent.key != event.key:
        parent = parent.cpu_parent
    return parent is not None


@public_in("autograd.profiler_util")
class EventList(list):
    """Events, or their sums. ``lost``: how many events there was no memory for."""

    def __init__(self, events: Iterable = (), lost: int = 0, flags: int = 0, flops: bool = False):
        super().__init__(events)
        self.lost, self.flags, self.with_flops = lost, flags, flops

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all events."""
        return sum(e.self_cpu_time_total for e in self)

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Sums by name; also by the shapes of the arguments, and by the innermost ``group_by_stack_n`` entries of the stack."""
        if group_by_overload_name:
            raise NotImplementedError(
                "key_averages(group_by_overload_name=True): overloads have no names in profiles here"
            )
        if group_by_stack_n < 0:
            raise ValueError(f"group_by_stack_n must not be negative, got {group_by_stack_n}")
        sums: dict[tuple, FunctionEventAvg] = {}
        for e in self:
            key: tuple = (e.key,)
            if group_by_input_shapes:
                key += (str(e.input_shapes),)
            if group_by_stack_n:
                key += tuple(e.location[:group_by_stack_n])
            if key not in sums:
                sums[key] = FunctionEventAvg(e)
            sums[key].add(e)
        return EventList(sums.values(), self.lost, self.flags, self.with_flops)

    def total_average(self) -> FunctionEventAvg:
        """The sum over all events, with the key "Total"."""
        total = FunctionEventAvg(FunctionEvent(0, "Total", "", 0, Interval(0, 0)))
        for e in self:
            total.count += e.count
            total.self_cpu_time_total += e.self_cpu_time_total
            total.self_cpu_memory_usage += e.self_cpu_memory_usage
            total.flops += e.flops
        total.cpu_time_total, total.cpu_memory_usage = total.self_cpu_time_total, total.self_cpu_memory_usage
        return total

    def export_stacks(self, path: str, metric: str) -> None:
        """Write a line for each event with a stack, ``outermost;...;innermost microseconds``, as flame graph tools read them. Raises
        ValueError for another metric than ``self_cpu_time_total``."""
        if metric not in METRICS:
            raise ValueError(f"metric should be one of: {list(METRICS)}")
        odd = str.maketrans(" ;\t\n", "____")
        with open(path, "w") as file:
            for e in self:
                value = int(getattr(e, metric))
                if e.stack and value > 0:
                    file.write(";".join(entry.translate(odd) for entry in reversed(e.stack)) + f" {value}\n")

    def export_chrome_trace(self, path: str) -> None:
        """Write a trace that Perfetto and chrome://tracing open."""
        from .trace import write_trace

        write_trace(path, self, {})

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as text, a line each. ``sort_by``: an attribute, the greatest first: ``self_cpu_time_total``, ``cpu_time_total``, ``cpu_time``,
        ``count``, ``cpu_memory_usage``, ``self_cpu_memory_usage``, ``flops``. ``row_limit`` -1: all. Raises ValueError for another one."""
        from .table import render

        return render(
            self,
            sort_by,
            row_limit,
            (max_name_column_width, max_src_column_width, max_shapes_column_width),
            header,
            top_level_events_only,
            time_unit,
        )

    def __str__(self) -> str:
        return self.table()
