"""A profile as a file for Perfetto and chrome://tracing."""

from __future__ import annotations

import gzip
import json
import os
import threading
from typing import Any

__all__ = ["write_trace"]


def write_trace(path: str, events: Any, metadata: dict[str, Any]) -> None:
    """The Trace Event Format: complete events with categories by thread, names of threads, and arrows from a forward call to its backward."""
    process = os.getpid()
    names = {t.native_id: t.name for t in threading.enumerate()}
    rows: list[dict] = [
        {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": "flambeau"}},
        *(
            {"ph": "M", "name": "thread_name", "pid": process, "tid": t, "args": {"name": names.get(t, f"thread {t}")}}
            for t in sorted({e.thread for e in events})
        ),
    ]
    for e in events:
        rows.append(
            {
                "ph": "X",
                "cat": e.category,
                "name": e.name,
                "pid": process,
                "tid": e.thread,
                "ts": e.time_range.start,
                "dur": e.cpu_time_total,
                "args": _arguments(e, events.flags),
            }
        )
    for e in events:
        if e.forward is not None:
            common = {"cat": "fwdbwd", "name": "fwdbwd", "id": e.sequence_nr, "pid": process}
            rows.append({"ph": "s", **common, "tid": e.forward.thread, "ts": e.forward.time_range.start})
            rows.append({"ph": "f", "bp": "e", **common, "tid": e.thread, "ts": e.time_range.start})
    whole = {"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": rows, **metadata}
    if os.fspath(path).endswith(".gz"):
        with gzip.open(path, "wt") as file:
            json.dump(whole, file, default=str)
    else:
        with open(path, "w") as file:
            json.dump(whole, file, default=str)


def _arguments(e: Any, flags: int) -> dict[str, Any]:
    out: dict[str, Any] = {"External id": e.id}
    if e.sequence_nr >= 0:
        out["Sequence number"] = e.sequence_nr
    if e.input_shapes:
        out |= {
            "Input Dims": e.input_shapes,
            "Input type": e.input_dtypes,
            "Concrete Inputs": [str(x) for x in e.concrete_inputs],
        }
    if e.location:
        out["Call stack"] = ";".join(reversed(e.location))
    if flags & 8:
        out["Bytes"] = e.self_cpu_memory_usage
    if e.note is not None:
        seconds = e.cpu_time_total * 1e-6
        out |= {"Operators": e.note.operators, "Bytes moved": e.bytes, "Operations": e.note.flops}
        if seconds:
            out |= {"GB/s": round(e.bytes / seconds / 1e9, 2), "GFLOP/s": round(e.note.flops / seconds / 1e9, 2)}
    if e.flops:
        out["FLOPs"] = e.flops
    return out
