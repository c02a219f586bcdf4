"""``torch.profiler`` and ``torch.autograd.profiler``: recording, schedules, ranges."""

from __future__ import annotations

import contextlib
import enum
import json
import os
import socket
import time
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from .. import _C
from ..base.public import public_in
from .events import EventList
from .recorded import Flags, Kind, events_of
from .trace import write_trace

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "refuse",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


@public_in("_C._profiler")
class ProfilerActivity(enum.Enum):
    """What to record. Only CPU is supported here."""

    CPU = 0
    CUDA = 1
    XPU = 2
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


@public_in("profiler.profiler")
class ProfilerAction(enum.Enum):
    """What a profiler does during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """Activities that can be recorded: the CPU's."""
    return {ProfilerActivity.CPU}


def _default_schedule_fn(step: int) -> ProfilerAction:
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
) -> Callable[[int], ProfilerAction]:
    """What to do at each step: skip ``skip_first`` steps; then, over and over (``repeat`` times, 0: for ever), wait, warm up, record for
    ``active`` steps. The last of these saves. With ``skip_first_wait`` the first cycle has no wait. Raises AssertionError for numbers that make
    no cycle."""
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), active={active} (need > 0), "
            f"repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise ValueError(f"a step's number is not negative, got {step}")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat and step >= repeat * cycle:
            return ProfilerAction.NONE
        at = step % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


class _Recording:
    """The native recorder, for one user at a time. What an interrupt left running, with nobody who could stop it, ends when the next begins."""

    _running: ClassVar[weakref.ref[_Recording] | None] = None

    def __init__(self, flags: Flags, flops: bool):
        self.flags, self.flops = flags, flops
        if _Recording._running is not None:
            if _Recording._running() is not None:
                raise RuntimeError("Profiler is already enabled in this process")
            _C.events_stop()
        _Recording._running = weakref.ref(self)
        try:
            _C.events_start(int(flags))
        except RuntimeError:
            _Recording._running = None
            raise RuntimeError("Profiler is already enabled in this process") from None

    def stop(self) -> EventList:
        rows, lost = _C.events_stop()
        _Recording._running = None
        return EventList(events_of(rows, self.flags, self.flops), lost, int(self.flags), self.flops)


def _flags(record_shapes: bool, profile_memory: bool, with_stack: bool, with_flops: bool) -> Flags:
    flags = Flags.ON
    if record_shapes or with_flops:
        flags |= Flags.SHAPES
    if profile_memory:
        flags |= Flags.MEMORY
    if with_stack:
        flags |= Flags.STACKS
    return flags


def refuse(**asked: Any) -> None:
    """NotImplementedError for an option that was asked for and that there is nothing behind."""
    for name, value in asked.items():
        if value:
            raise NotImplementedError(f"profile({name}={value!r}) is not supported")


@public_in("profiler.profiler")
class profile:  # noqa: N801
    """Context manager that records what runs: operators, nodes of backward passes, compiled graphs and their kernels, native loops, and ranges
    named by ``record_function``.

    ``activities``: iterable of ``ProfilerActivity``; the CPU's is recorded, others warn. ``schedule``: step -> ``ProfilerAction``; call ``step()``
    after each step of the program. ``on_trace_ready``: called with the profiler when a recording is whole. ``record_shapes``: shapes and values of
    arguments. ``profile_memory``: bytes that were taken and given back. ``with_stack``: Python's stacks. ``with_flops``: operations, by
    formula. ``acc_events``: keep the events of all cycles of the schedule.

    Raises NotImplementedError for ``with_modules``, ``experimental_config``, ``execution_trace_observer`` and ``custom_trace_id_callback``;
    ValueError when
    ``activities`` has nothing that can be recorded; RuntimeError when a profiler is running already.

    >>> import flambeau as torch
    >>> with torch.profiler.profile() as prof:
    ...     y = torch.ones(3).exp()
    >>> [e.name for e in prof.events()]
    ['aten::ones', 'aten::exp']
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
    ):
        refuse(
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer,
            custom_trace_id_callback=custom_trace_id_callback,
        )
        wanted = set(supported_activities() if activities is None else activities)
        if use_cuda:
            wanted.add(ProfilerActivity.CUDA)
        for activity in sorted(wanted - supported_activities(), key=lambda a: a.value):
            warnings.warn(f"{activity.name} is not available, disabling {activity.name} profiling", stacklevel=2)
        if not wanted & supported_activities():
            raise ValueError("No valid profiler activities found: only ProfilerActivity.CPU is recorded here")
        self.activities = wanted & supported_activities()
        self.schedule = schedule or _default_schedule_fn
        self._steps_matter = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory, self.with_stack, self.with_flops = (
            record_shapes,
            profile_memory,
            with_stack,
            with_flops,
        )
        self.acc_events = acc_events
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.metadata: dict[str, Any] = {}
        self._recording: _Recording | None = None
        self._events: EventList | None = None
        self._range: Any = None

    def start(self) -> None:
        """Begin, as entering the ``with`` block does."""
        self.current_action = self.schedule(self.step_num)
        if self.current_action in RECORDING:
            self._begin()
        self._open_step()

    def stop(self) -> None:
        """End, as leaving the ``with`` block does."""
        try:
            self._close_step()
        finally:
            if self.current_action in RECORDING:
                self._end()
        if self.current_action in RECORDING:
            self._ready()
        self.current_action = ProfilerAction.NONE

    def step(self) -> None:
        """The program's step has ended, the next one begins."""
        self._close_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._end()
            self._ready()
        elif before is ProfilerAction.RECORD and self.current_action not in RECORDING:
            self._end()
        if self.current_action in RECORDING and self._recording is None:
            self._begin()
        self._open_step()

    def _begin(self) -> None:
        if self._recording is not None:
            return
        flags = _flags(self.record_shapes, self.profile_memory, self.with_stack, self.with_flops)
        self._recording = _Recording(flags, self.with_flops)

    def _end(self) -> None:
        if self._recording is None:
            return
        events, self._recording = self._recording.stop(), None
        if self.acc_events and self._events is not None:
            events[:0] = self._events
        self._events = events

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _open_step(self) -> None:
        if self._steps_matter and self._recording is not None:
            self._range = _C.event_begin(Kind.RANGE, f"ProfilerStep#{self.step_num}")

    def _close_step(self) -> None:
        _C.event_end(self._range)
        self._range = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: Any) -> bool:
        self.stop()
        return False

    def events(self) -> EventList:
        """All events, in the order in which they began. Raises RuntimeError as long as nothing was recorded to the end."""
        if self._events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self._events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sums over the events, see ``EventList.key_averages``."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str) -> None:
        """Write a file (compressed where its name ends in ``.gz``) that Perfetto and chrome://tracing open."""
        write_trace(path, self.events(), self.metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with times, see ``EventList.export_stacks``. Raises RuntimeError unless ``with_stack`` is on."""
        if not self.with_stack:
            raise RuntimeError("export_stacks() needs stacks: profile(with_stack=True)")
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Not supported."""
        raise NotImplementedError(
            "export_memory_timeline is not supported; profile_memory=True gives the bytes of each event"
        )

    def add_metadata(self, key: str, value: str) -> None:
        """A text that is written into the trace."""
        self.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """A value, as JSON, that is written into the trace."""
        self.metadata[key] = json.loads(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """As ``add_metadata_json``, before the start."""
        self.add_metadata_json(key, value)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Not supported."""
        raise NotImplementedError("toggle_collection_dynamic is not supported; use a schedule")

    def __repr__(self) -> str:
        return "<profile: not finished>" if self._events is None else f"<profile: {len(self._events)} events>"


_KinetoProfile = profile


@public_in("autograd.profiler")
class record_function(contextlib.ContextDecorator):  # noqa: N801
    """Name a block, or the calls of a function, in the profile. ``args``: a text that is shown behind the name.

    >>> import flambeau as torch
    >>> with torch.profiler.profile() as prof, torch.profiler.record_function("block"):
    ...     y = torch.ones(3) * 2
    >>> [e.name for e in prof.events() if e.is_user_annotation]
    ['block']
    """

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args
        self._open: list = []  # a function that calls itself enters the same object again

    def __enter__(self) -> record_function:
        self._open.append(_C.event_begin(Kind.RANGE, self.name if self.args is None else f"{self.name}: {self.args}"))
        return self

    def __exit__(self, *exc: Any) -> bool:
        _C.event_end(self._open.pop())
        return False


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """An ``on_trace_ready`` that writes each trace into a folder, made when it is missing, under the name ``worker.time.pt.trace.json``. Raises
    RuntimeError where the folder can't be made."""

    def handler(prof: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler
