"""``explain``: where a function breaks into graphs, and why."""

from __future__ import annotations

import functools
import linecache
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flambeau.dynamo.capture_events import Event
from flambeau.dynamo.convert import Compiler
from flambeau.dynamo.exc import BreakReason
from flambeau.dynamo.higher_order import native_loops
from flambeau.dynamo.utils import compile_times

from . import controls, wrap

__all__ = ["ExplainOutput", "explain"]


# Breaks whose reason says what, and only ``why`` which rule of the program's it was.
SAYS_WHY = ("disallowed", "skipped-function")


@dataclass
class ExplainOutput:
    """``graphs``: the captured GraphModules in order; ``ops_per_graph``: targets of their call nodes; ``break_reasons``: each with
    ``reason`` and ``user_stack``; ``op_count`` counts call_function nodes; ``loops``: which Python loops
    became native ones, and why others did not; ``lines``: what became of each source line with operations on arrays or tensors, or a break."""

    graphs: list[Any]
    graph_count: int
    graph_break_count: int
    break_reasons: list[BreakReason]
    op_count: int
    ops_per_graph: list[list[Any]] = field(default_factory=list)
    out_guards: list[Any] = field(default_factory=list)
    compile_times: str = ""
    loops: list[str] = field(default_factory=list)

    @property
    def lines(self) -> dict[tuple[str, int], str]:
        """(file, line) -> "compiled", or "plain: why", or both where a line has parts of either kind."""
        found: dict[tuple[str, int], list[str]] = {}
        for graph in self.graphs:
            for n in graph.graph.nodes:
                if n.op.startswith("call") and "stack" in n.meta:
                    found.setdefault((n.meta["stack"].filename, n.meta["stack"].lineno), ["compiled"])
        for r in self.break_reasons:
            if r.user_stack:
                why = f"plain: {r.why if r.id in SAYS_WHY else r.in_short()}"
                said = found.setdefault((r.user_stack[-1].filename, r.user_stack[-1].lineno), [])
                if why not in said:
                    said.append(why)
        return {at: "; ".join(said) for at, said in sorted(found.items())}

    def _source(self) -> list[str]:
        out, last = [], None
        for (file, line), said in self.lines.items():
            if file != last:
                out.append(f"  {file}")
                last = file
            out.append(f"    {line:4}  {linecache.getline(file, line).strip():60}  {said}")
        return out

    def __str__(self) -> str:
        out = ["What becomes of each line:", *self._source()] if self.lines else []
        out += [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
        ]
        for i, r in enumerate(self.break_reasons, 1):
            out += [f"  Break Reason {i}:", f"    Reason: {r.reason}"]
            if r.id in SAYS_WHY:
                out.append(f"    Why: {r.why}")
            out.append("    User Stack:")
            out += [f"      {frame}" for frame in r.user_stack]
        if self.loops:
            out += ["Loops:", *(f"  {note}" for note in self.loops)]
        out.append("Ops per Graph:")
        for i, ops in enumerate(self.ops_per_graph, 1):
            out.append(f"  Ops {i}:")
            out += [f"    {op}" + (f" x {n}" if n > 1 else "") for op, n in Counter(map(_shown, ops)).items()]
        out.append("Out Guards:")
        for i, guard in enumerate(self.out_guards, 1):
            out.append(f"  Guard {i}: {guard}")
        if self.compile_times:
            out.append(f"Compile Times: {self.compile_times}")
        return "\n".join(out)


def _shown(op) -> str:
    """NumPy's functions by their own names."""
    if getattr(op, "__module__", "").startswith("flambeau.numpy."):
        return f"numpy.{op.__name__.removeprefix('numpy_').rstrip('_')}"
    return str(op)


def explain(f: Callable, *extra_args, **extra_kwargs):
    """``explain(f)(*args)`` runs ``f`` once under capture and returns an :class:`ExplainOutput`."""

    @functools.wraps(f)
    def inner(*args, **kwargs):
        controls.reset()
        native_loops.NOTES.clear()
        events: list[Event] = []
        compiler = Compiler(lambda gm, example_inputs: gm.forward, "explain")
        compiler.listeners.append(events.append)
        wrap.wrap_callable(f, compiler)(*args, **kwargs)
        events.sort(key=lambda e: e.order)
        graphs = [e.graph for e in events if e.graph is not None]
        ops = [[n.target for n in g.graph.nodes if n.op == "call_function"] for g in graphs]
        reasons = [e.break_reason for e in events if e.break_reason is not None]
        guards = [g for e in events for g in e.guards]
        output = ExplainOutput(
            graphs, len(graphs), len(reasons), reasons, sum(map(len, ops)), ops, guards, compile_times(),
            [f"{where}: {what}" for where, what in native_loops.NOTES.items()],
        )  # fmt: skip
        controls.reset()
        return output

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner
