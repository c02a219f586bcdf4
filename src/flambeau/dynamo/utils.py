"""Counters and compile times of capture, ``torch._dynamo.utils``."""

from __future__ import annotations

from collections import Counter, defaultdict

__all__ = ["compile_times", "counters", "record_compile"]

counters: defaultdict[str, Counter] = defaultdict(Counter)
_times: defaultdict[str, list[float]] = defaultdict(list)


def record_compile(name: str, seconds: float) -> None:
    _times[name].append(seconds)


def compile_times(repr: str = "str", aggregate: bool = False):
    """Seconds the backend took for each frame: a table (``"str"``) or ``(headers, rows)`` (``"csv"``)."""
    rows = [(n, sum(t) if aggregate else ", ".join(f"{x:.4f}" for x in t)) for n, t in _times.items()]
    if repr == "csv":
        return ["Function", "Runtimes (s)"], rows
    width = max([len("Function"), *(len(n) for n, _ in rows)])
    out = ["TorchDynamo compilation metrics:", f"{'Function':<{width}}  Runtimes (s)"]
    out += [f"{n:<{width}}  {f'{t:.4f}' if isinstance(t, float) else t}" for n, t in rows]
    return "\n".join(out)


def clear() -> None:
    counters.clear()
    _times.clear()
