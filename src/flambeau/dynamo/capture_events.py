"""What came out of a capture: for explain, logs, the event file and tests."""

from __future__ import annotations

import dis
import itertools
import types
from typing import Any

from flambeau.base import debug_folder, logs
from flambeau.base.records import made_by, slotted

from .bytecode.instructions import shown_name
from .exc import BreakReason
from .guards.tree import Failure

__all__ = ["LOG_GUARDS", "Event", "failed_guard", "log_variant", "metrics"]

LOG_GUARDS, LOG_BYTECODE = logs.artifact("guards", ""), logs.artifact("bytecode", "")
LOG_CODE, LOG_GRAPH, LOG_SIZES = (logs.artifact(name, "") for name in ("graph_code", "graph", "graph_sizes"))


@slotted(frozen=False)
class Event:
    """What came out of one frame: for explain, logs and tests."""

    code: types.CodeType
    graph: Any = None
    guards: list = made_by(list)
    break_reason: BreakReason | None = None
    skipped: str | None = None
    seconds: float = 0.0
    order: int = made_by(itertools.count().__next__)


def log_variant(code, final, event: Event) -> None:
    """``final``: the captured code."""
    where = f"{shown_name(code)} ({code.co_filename}:{code.co_firstlineno})"
    if debug_folder.enabled():
        debug_folder.append("torchdynamo", describe(where, event))
    if LOG_GUARDS.on:
        LOG_GUARDS("guards of %s:\n%s", where, "\n".join(f"  {g}" for g in event.guards))
    if LOG_CODE.on and event.graph is not None:
        LOG_CODE("graph of %s:\n%s", where, event.graph.print_readable(print_output=False))
    if LOG_GRAPH.on and event.graph is not None:
        LOG_GRAPH("graph of %s:\n%s", where, event.graph.graph)
    if LOG_SIZES.on and event.graph is not None:
        shapes = [(n.name, getattr(n.meta.get("val"), "shape", None)) for n in event.graph.graph.nodes]
        lines = "\n".join(f"  {name}: {tuple(shape)}" for name, shape in shapes if shape is not None)
        LOG_SIZES("sizes in the graph of %s:\n%s", where, lines)
    if LOG_BYTECODE.on:
        LOG_BYTECODE("%s\nbefore:\n%s\nafter:\n%s", where, dis.Bytecode(code).dis(), dis.Bytecode(final).dis())


def describe(where: str, event: Event) -> str:
    """What became of a frame, for ``torchdynamo/debug.log``."""
    parts = [f"===== {where} ====="]
    if event.break_reason is not None:
        parts.append(f"graph break: {event.break_reason.describe()}")
    if event.graph is not None:
        parts.append(event.graph.print_readable(print_output=False))
    return "\n".join([*parts, "guards:", *(f"  {g}" for g in event.guards), ""])


def metrics(compiler, code, event: Event, seconds: float) -> dict:
    """What the event file says about one capture."""
    graph = event.graph
    return {
        "co_name": shown_name(code),
        "co_filename": code.co_filename,
        "co_firstlineno": code.co_firstlineno,
        "guard_count": len(event.guards),
        "graph_op_count": 0 if graph is None else sum(n.op.startswith("call") for n in graph.graph.nodes),
        "graph_input_count": 0 if graph is None else sum(n.op == "placeholder" for n in graph.graph.nodes),
        "capture_time_s": seconds,
        "backend_compile_time_s": event.seconds,
        "backend": compiler.name,
        "restart_reason": None if event.break_reason is None else event.break_reason.reason,
    }


def failed_guard(cache, func, args) -> Failure:
    """The first guard of the latest variant that does not hold for this call."""
    if cache.once:
        return Failure("it goes on with a class that the call has just made, another one each time")
    if not cache.entries:
        return Failure("no captured variant")
    tree = cache.entries[0][0]
    if tree.check(func, args):
        return Failure("it was captured for a function of the same code with other globals")
    return tree.describe_failure()
