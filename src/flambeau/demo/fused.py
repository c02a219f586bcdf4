"""What the compiler made of something: one run of it under the profiler."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from flambeau.profiling.events import FunctionEvent
from flambeau.profiling.profiler import profile

__all__ = ["Fused", "look"]


@dataclass
class Fused:
    """``launches``: the kernels of compiled graphs that ran, in order. ``operators``: how many operators of the captured graphs they are."""

    launches: list[FunctionEvent]
    operators: int

    def as_data(self) -> dict[str, int]:
        """What a program reads of it."""
        return {"operators": self.operators, "launches": len(self.launches)}

    def largest(self, n: int) -> list[str]:
        """The kernels that are made of the most different operators, a line each."""
        made = {e.note.symbol or e.name: e for e in self.launches if e.note is not None and e.note.kind != "product"}
        found = sorted(made.values(), key=lambda e: -len(e.note.operators))[:n]
        return [
            f"{_operators(e)}  ->  one {'kernel' if e.note.kind == 'kernel' else 'launch'}{_where(e)}" for e in found
        ]


def _operators(event: FunctionEvent, most: int = 9) -> str:
    """The operators of a kernel, each with how often it occurs."""
    counts = Counter(o.operator for o in event.note.origins)
    names = [name if n == 1 else f"{n} x {name}" for name, n in list(counts.items())[:most]]
    return " + ".join(names) + (f" + {len(counts) - most} more" if len(counts) > most else "")


def _where(event: FunctionEvent) -> str:
    if not event.lines:
        return ""
    line = event.lines[0]
    return f"  ({os.path.basename(line.file)}:{line.now() or line.number})"


def look(fn: Callable) -> Fused:
    """Run ``fn`` once and say which kernels ran."""
    with profile() as prof:
        fn()
    launches = [e for e in prof.events() if e.category == "kernel" and e.cpu_parent is not None]
    graphs: dict[str, set] = {}
    for e in launches:
        if e.note is not None:
            graphs.setdefault(e.cpu_parent.name, set()).update(o.node for o in e.note.origins)
    return Fused(launches, sum(map(len, graphs.values())))
