"""Timer: how long a statement takes, measured in blocks long enough for the clock."""

from __future__ import annotations

import enum
import statistics
import textwrap
import timeit as _timeit
from collections.abc import Callable
from typing import Any, NamedTuple

from ....base.public import public_in
from .common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]


def timer() -> float:
    """Seconds of a clock that only rises: the default clock of :class:`Timer`."""
    return _timeit.default_timer()


_LONGEST_BLOCK = 2**31 - 1


class Language(enum.Enum):
    """The language of a timed statement."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Times ``stmt`` (source, or a callable) after ``setup`` (and before it ``global_setup``) with the names of ``globals``, on ``num_threads``
    threads.

    ``label``, ``sub_label``, ``description`` and ``env`` say where the result belongs in the tables of Compare.
    """

    _timer_cls = _timeit.Timer

    def __init__(
        self,
        stmt: str | Callable = "pass",
        setup: str | Callable = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ):
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError(f"Timer(language={language!r}): only Python statements are timed here")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        names = dict(globals or {})
        if isinstance(stmt, str):
            import flambeau

            stmt = textwrap.dedent(stmt)
            stmt = (stmt[1:] if stmt[:1] == "\n" else stmt).rstrip()
            names.setdefault("torch", flambeau)
        if isinstance(setup, str):
            setup = textwrap.dedent(setup)
            setup = (setup[1:] if setup[:1] == "\n" else setup).rstrip()
        self._globals = names
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=names)
        as_text = [x if isinstance(x, str) else repr(x) for x in (stmt, setup)]
        self._task_spec = TaskSpec(*as_text, "", label, sub_label, description, env, num_threads)

    def _time(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One measurement of ``number`` runs, after a hundredth as many to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return Measurement(number, [self._time(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback=None) -> None:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block(self, min_run_time: float) -> int:
        """Runs in a block: so many that reading the clock is nothing beside them, as far as ``min_run_time`` seconds allow."""
        clock = statistics.median(self._time(0) for _ in range(5))
        number = 1
        while True:
            taken = self._time(number)
            if (clock <= 1e-4 * taken and taken >= min_run_time / 1000) or taken > min_run_time:
                return number
            if number * 10 > _LONGEST_BLOCK:
                return number
            number *= 10

    def _measure(self, number: int, enough, least: float, most: float | None, callback) -> Measurement:
        times: list[float] = []
        total, done = 0.0, False
        while total < least or not done:
            times.append(self._time(number))
            total += times[-1]
            if callback:
                callback(number, times[-1])
            done = enough(times)
            if most and total > most:
                break
        return Measurement(number, times, self._task_spec)

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Blocks until ``min_run_time`` seconds have been measured. ``callback(runs, seconds)`` hears of each."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(min_run_time)
            return self._measure(number, lambda times: True, min_run_time, None, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Blocks until the interquartile range is below ``threshold`` of the median, or ``max_run_time`` seconds are over."""

        def enough(times):
            return len(times) > 3 and Measurement(number, times, self._task_spec).meets_confidence(threshold)

        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(0.05)
            return self._measure(number, enough, min_run_time, max_run_time, callback)

    def collect_callgrind(self, number: int = 100, *, repeats=None, collect_baseline=True, retain_out_file=False):
        raise NotImplementedError("Timer.collect_callgrind: counting instructions under valgrind is not built")


@public_in("utils.benchmark.utils.valgrind_wrapper.timer_interface")
class FunctionCount(NamedTuple):
    """Instructions of one function."""

    count: int
    function: str


def _refuse(made) -> None:
    raise NotImplementedError(f"{type(made).__name__}: counting instructions under valgrind is not built")


@public_in("utils.benchmark.utils.valgrind_wrapper.timer_interface")
class FunctionCounts:
    """Instructions by function: NotImplementedError."""

    def __init__(self, _data, inclusive: bool, truncate_rows: bool = True, _linewidth: int | None = None):
        _refuse(self)


@public_in("utils.benchmark.utils.valgrind_wrapper.timer_interface")
class CallgrindStats:
    """The instructions of a statement: NotImplementedError."""

    def __init__(
        self, task_spec, number_per_run: int, built_with_debug_symbols: bool, *counts, stmt_callgrind_out=None
    ):
        _refuse(self)


@public_in("utils.benchmark.utils.valgrind_wrapper.timer_interface")
class CopyIfCallgrind:
    """A value for the process that valgrind watches: NotImplementedError."""

    def __init__(self, value, *, setup: str | None = None):
        _refuse(self)
