"""``torch.autograd.profiler.profile``: the older interface."""

from __future__ import annotations

from typing import Any

from ..base.public import public_in
from . import profiler
from .events import EventList
from .profiler import refuse

__all__ = ["profile"]


@public_in("autograd.profiler")
class profile:  # noqa: N801
    """``torch.autograd.profiler.profile``: the older interface, without schedules. ``enabled=False`` does nothing. ``use_cuda``, ``use_device``,
    ``with_modules``, ``use_kineto`` and ``experimental_config`` are refused with NotImplementedError."""

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
    ):
        refuse(
            use_cuda=use_cuda,
            use_device=use_device,
            with_modules=with_modules,
            use_kineto=use_kineto,
            experimental_config=experimental_config,
            custom_trace_id_callback=custom_trace_id_callback,
        )
        if not use_cpu:
            raise NotImplementedError("profile(use_cpu=False) is not supported: nothing but the CPU is recorded")
        self.enabled = enabled
        self.with_stack = with_stack
        self._inner = profiler.profile(
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            acc_events=acc_events,
        )

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        self._inner.start()
        return self

    def __exit__(self, *exc: Any) -> bool:
        if self.enabled:
            self._inner.stop()
        return False

    @property
    def function_events(self) -> EventList:
        """All events."""
        return self._inner.events()

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sums over the events."""
        return self._inner.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> Any:
        """The sum over all events."""
        return self.function_events.total_average()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **widths: Any) -> str:
        """The events as text, a line each."""
        return self.function_events.table(sort_by=sort_by, row_limit=row_limit, **widths)

    def export_chrome_trace(self, path: str) -> None:
        """Write a file that Perfetto and chrome://tracing open."""
        self._inner.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with times."""
        self._inner.export_stacks(path, metric)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all events."""
        return self.function_events.self_cpu_time_total

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not self.enabled:
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __str__(self) -> str:
        return "<unfinished profiler>" if self._inner._events is None else self.function_events.table()
