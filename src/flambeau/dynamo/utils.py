"""Counters and compile times of capture, ``torch._dynamo.utils``."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict

from flambeau.fake.active import detect_fake_mode  # noqa: F401

from .config import config
from .values import clone_input, clone_inputs, hashable, istype, same  # noqa: F401

__all__ = ["CompileProfiler", "compile_times", "counters", "disable_cache_limit", "record_compile"]

recompile_records: list[list[tuple[str, str, str]]] = []  # (function, where, failing guard), for each active profiler

counters: defaultdict[str, Counter] = defaultdict(Counter)
_times: defaultdict[str, list[float]] = defaultdict(list)


def record_compile(name: str, captured: float, compiled: float) -> None:
    """Seconds that the capture of a frame and the backend took."""
    _times[f"{name} (capture)"].append(captured)
    _times[f"{name} (compile)"].append(compiled)


def compile_times(repr: str = "str", aggregate: bool = False):
    """Seconds that capture and the backend took, by frame: a table (``"str"``), or headers and one column of values each (``"csv"``)."""
    columns = dict(_times)
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


def disable_cache_limit():
    """Within this block (or the function it decorates) any number of variants of one frame is kept."""
    return config.patch(cache_size_limit=sys.maxsize, accumulated_cache_size_limit=sys.maxsize)


class CompileProfiler:
    """A backend that only observes: graphs run as they are, at most one variant of each frame is kept while it is entered, and
    :meth:`report` tells what broke graphs and which guards failed.

    ``with CompileProfiler() as prof: torch.compile(fn, backend=prof)(...); print(prof.report())``
    """

    def __init__(self):
        self.frame_count = self.op_count = 0
        self.recompiles: list[tuple[str, str, str]] = []
        self._breaks: Counter = Counter()
        self._entered: list = []

    def __call__(self, gm, example_inputs):
        self.frame_count += 1
        self.op_count += sum(n.op.startswith("call") for n in gm.graph.nodes)
        return gm.forward

    def __enter__(self):
        patch = config.patch(cache_size_limit=1)
        patch.__enter__()
        self._entered.append((patch, Counter(counters["graph_break"])))
        recompile_records.append(self.recompiles)
        return self

    def __exit__(self, *exc):
        patch, before = self._entered.pop()
        self._breaks += Counter(counters["graph_break"]) - before
        recompile_records[:] = [r for r in recompile_records if r is not self.recompiles]
        patch.__exit__(*exc)
        return False

    def report(self) -> str:
        breaks = Counter(self._breaks)
        for _, before in self._entered:
            breaks += Counter(counters["graph_break"]) - before
        out = ["Torchdynamo Profiler Report", "===========================", ""]
        if breaks:
            out += ["Graph Breaks", "------------", *(f"  {n} x {reason}" for reason, n in breaks.most_common())]
        else:
            out += ["No graph breaks detected."]
        out.append("")
        if not self.recompiles:
            return "\n".join([*out, "No recompilation detected."])
        out += ["Recompilation", "-------------", f"  {'Function':<32} {'Recompiles':>10}  Failing guards"]
        by_function = defaultdict(Counter)
        for name, where, why in self.recompiles:
            by_function[name, where][why] += 1
        for (name, where), reasons in by_function.items():
            out.append(f"  {name:<32} {sum(reasons.values()):>10}  ({where})")
            out += [f"  {'':<32} {n:>10}  {why}" for why, n in reasons.most_common()]
        return "\n".join(
            [
                *out,
                f"Set torch._dynamo.config.cache_size_limit to more than {max(map(len, by_function.values()))} to keep all variants.",
            ]
        )


def is_compile_supported(device_type: str) -> bool:
    """Whether code on this device can be compiled."""
    return device_type == "cpu"


def ifdynstaticdefault(static, dynamic):
    """``static`` while sizes are static by default (``torch._dynamo.config.assume_static_by_default``), else ``dynamic``."""
    return static if config.assume_static_by_default else dynamic
