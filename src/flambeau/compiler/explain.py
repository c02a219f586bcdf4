"""``explain``: where a function breaks into graphs, and why."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flambeau.dynamo import native_loops
from flambeau.dynamo.convert import Compiler, Event
from flambeau.dynamo.exc import BreakReason
from flambeau.dynamo.utils import compile_times

from . import controls, wrap

__all__ = ["ExplainOutput", "explain"]


@dataclass
class ExplainOutput:
    """``graphs``: the captured GraphModules in order; ``ops_per_graph``: targets of their call nodes; ``break_reasons``: each with
    ``reason`` and ``user_stack``; ``op_count`` counts call_function nodes; ``loops``: which Python loops
    became native ones, and why others did not."""

    graphs: list[Any]
    graph_count: int
    graph_break_count: int
    break_reasons: list[BreakReason]
    op_count: int
    ops_per_graph: list[list[Any]] = field(default_factory=list)
    out_guards: list[Any] = field(default_factory=list)
    compile_times: str = ""
    loops: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        out = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
        ]
        for i, r in enumerate(self.break_reasons, 1):
            out += [f"  Break Reason {i}:", f"    Reason: {r.reason}", "    User Stack:"]
            out += [f"      {frame}" for frame in r.user_stack]
        if self.loops:
            out += ["Loops:", *(f"  {note}" for note in self.loops)]
        out.append("Ops per Graph:")
        for i, ops in enumerate(self.ops_per_graph, 1):
            out.append(f"  Ops {i}:")
            out += [f"    {op}" for op in ops]
        out.append("Out Guards:")
        for i, guard in enumerate(self.out_guards, 1):
            out.append(f"  Guard {i}: {guard}")
        if self.compile_times:
            out.append(f"Compile Times: {self.compile_times}")
        return "\n".join(out)


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
