"""What a measurement is: a statement, the seconds its runs took, and how trustworthy they are."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ....base.threads import get_num_threads, set_num_threads

__all__ = [
    "Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads", "trim_sigfig", "unit_to_english",
]  # fmt: skip

MOST_FIGURES = 4
LEAST_INTERVAL = 25e-9  # seconds: what no clock here tells apart
NOISY, VERY_NOISY = 0.1, 0.25  # interquartile range by median


@dataclasses.dataclass(frozen=True, repr=False)
class TaskSpec:
    """What is measured, without the values of its names."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        if self.label is not None or "\n" not in self.stmt:
            name = self.stmt if self.label is None else self.label
            return f"{name}: {self.sub_label}" if self.sub_label else name
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        if self.setup in ("", "pass"):
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup, a paragraph each."""
        parts = [p for p in (self.title, self.description, self.setup_str()) if p]
        return "\n".join(p + "\n" if "\n" in p else p for p in parts)


_FIELDS = frozenset(f.name for f in dataclasses.fields(TaskSpec))


@dataclasses.dataclass(repr=False)
class Measurement:
    """``raw_times``: seconds of each measurement, of ``number_per_run`` runs each. The fields of ``task_spec`` can be read here too."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds of one run, for each measurement."""
        return [t / self.number_per_run for t in self.raw_times]

    def _quantile(self, q: float) -> float:
        return float(np.quantile(self.times, q)) if self.raw_times else -1.0

    @property
    def median(self) -> float:
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        return float(np.mean(self.times)) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """Distance of the quartiles, in seconds."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many figures of the median the spread between the quartiles leaves (95 % confidence), 1 to 4."""
        ordered = sorted(self.times)
        inner = ordered[len(ordered) // 4 : math.ceil(3 * len(ordered) / 4)]
        interval = max(1.645 * float(np.std(inner)) / math.sqrt(len(inner)), LEAST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), MOST_FIGURES)

    def meets_confidence(self, threshold: float = NOISY) -> bool:
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        return bool(self.raw_times) and not self.meets_confidence()

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def env(self) -> str:
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        n, many = len(self.raw_times), len(self.raw_times) > 1
        unit, scale = select_unit(self.median)
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if many else ''}{self.median / scale:.2f} {unit}")
        if n >= 4:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        per = "per measurement," if many else ","
        lines.append(f"  {n} measurement{'s' if many else ''}, {self.number_per_run} runs {per} {threads}")
        if self.has_warnings:
            why = (
                "This could indicate system fluctuation."
                if self.meets_confidence(VERY_NOISY)
                else "This suggests significant environmental influence."
            )
            share = self.iqr / self.median * 100
            lines.append(f"  WARNING: Interquartile range is {share:.1f}% of the median measurement.\n           {why}")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, of single runs; metadata is left out."""
        groups: dict[TaskSpec, list[float]] = {}
        for m in measurements:
            groups.setdefault(m.task_spec, []).extend(m.times)
        return [Measurement(1, times, spec) for spec, times in groups.items()]


_UNITS = {"ns": (1e-9, "nanosecond"), "us": (1e-6, "microsecond"), "ms": (1e-3, "millisecond"), "s": (1, "second")}


def select_unit(t: float) -> tuple[str, float]:
    """(unit, its seconds) in which ``t`` seconds are a number of ordinary size."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(math.floor(math.log10(t) / 3) if t > 0 else 0, "s")
    return unit, _UNITS[unit][0]


def unit_to_english(u: str) -> str:
    """The name of a unit of time: "us" is "microsecond"."""
    return _UNITS[u][1]


def trim_sigfig(x: float, n: int) -> float:
    """``x`` rounded to ``n`` significant figures."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10.0 ** (math.ceil(math.log10(abs(x))) - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The different elements, in order of their first place."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Context manager: ``n`` threads for the block."""
    before = get_num_threads()
    try:
        set_num_threads(n)
        yield
    finally:
        set_num_threads(before)
