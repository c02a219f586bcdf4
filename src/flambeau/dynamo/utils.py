"""Counters and compile times of capture, ``torch._dynamo.utils``."""

from __future__ import annotations

from collections import Counter, defaultdict

__all__ = ["compile_times", "counters", "record_compile"]

counters: defaultdict[str, Counter] = defaultdict(Counter)
_times: defaultdict[str, list[float]] = defaultdict(list)


def record_compile(name: str, seconds: float) -> None:
    _times[name].append(seconds)


def compile_times(repr: str = "str", aggregate: bool = False):
    """Seconds that compiling took, by frame: a table (``"str"``), or headers and one column of values each (``"csv"``)."""
    columns = {f"{n} (compile)": t for n, t in _times.items()}
    values = [f"{sum(t):.4f}" if aggregate else ", ".join(f"{x:.4f}" for x in t) for t in columns.values()]
    if repr == "csv":
        return list(columns), values
    width = max([len("Function"), *map(len, columns)])
    out = ["TorchDynamo compilation metrics:", f"{'Function':<{width}}  Runtimes (s)"]
    out += [f"{n:<{width}}  {v}" for n, v in zip(columns, values)]
    return "\n".join(out)


def clear() -> None:
    counters.clear()
    _times.clear()
