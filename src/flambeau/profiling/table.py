"""A profile as a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["SORTED_BY", "render"]

SORTED_BY = (
    "cpu_time", "cpu_time_total", "self_cpu_time_total", "count", "cpu_memory_usage", "self_cpu_memory_usage", "flops", "bytes", "key",
)  # fmt: skip
OF_DEVICES = tuple(
    f"{prefix}{kind}_time{end}"
    for kind in ("cuda", "device")
    for prefix, end in (("", ""), ("", "_total"), ("self_", "_total"))
)


def render(
    events: Any,
    sort_by: str | None,
    limit: int,
    widths: tuple[int, int, int],
    header: str | None,
    top: bool,
    unit: str | None,
) -> str:
    if sort_by is not None and sort_by not in (*SORTED_BY, *OF_DEVICES):
        raise ValueError(f"sort_by={sort_by!r} should be one of: {', '.join(SORTED_BY)}")
    if unit not in (None, "s", "ms", "us"):
        raise ValueError(f"time_unit={unit!r} should be one of: s, ms, us")
    if not events:
        return ""
    rows = [e for e in events if not top or getattr(e, "cpu_parent", None) is None]
    if sort_by is not None:
        rows.sort(key=lambda e: getattr(e, sort_by), reverse=sort_by != "key")
    shown = rows if limit < 0 else rows[:limit]
    total = sum(e.self_cpu_time_total for e in events)
    columns = _columns(events, total, widths, unit)
    lines = [[title for title, _ in columns], *([write(e) for _, write in columns] for e in shown)]
    wide = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    left = {i for i, (title, _) in enumerate(columns) if title in ("Name", "Input Shapes", "Source Location")}
    rule = "  ".join("-" * w for w in wide)
    text = [
        "  ".join(cell.ljust(w) if i in left else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, wide)))
        for line in lines
    ]
    out = [header] if header else []
    out += [rule, text[0], rule, *text[1:], rule]
    if len(shown) < len(rows):
        out.append(f"{len(rows) - len(shown)} more rows")
    out.append(f"Self CPU time total: {_time(total, unit)}")
    if events.lost:
        out.append(f"{events.lost} events are missing: there was no memory for them")
    return "\n".join(line.rstrip() for line in out) + "\n"


def _columns(
    events: Any, total: float, widths: tuple[int, int, int], unit: str | None
) -> list[tuple[str, Callable[[Any], str]]]:
    name, source, shapes = widths
    columns: list[tuple[str, Callable[[Any], str]]] = [
        ("Name", lambda e: _cut(e.key, name)),
        ("Self CPU %", lambda e: _share(e.self_cpu_time_total, total)),
        ("Self CPU", lambda e: _time(e.self_cpu_time_total, unit)),
        ("CPU total %", lambda e: _share(e.cpu_time_total, total)),
        ("CPU total", lambda e: _time(e.cpu_time_total, unit)),
        ("CPU time avg", lambda e: _time(e.cpu_time, unit)),
    ]
    if any(e.device_time_total for e in events):
        columns += [
            ("Self device", lambda e: _time(e.self_device_time_total, unit)),
            ("Device total", lambda e: _time(e.device_time_total, unit)),
            ("Device time avg", lambda e: _time(e.device_time, unit)),
        ]
    if events.flags & 8:
        columns += [
            ("CPU Mem", lambda e: _memory(e.cpu_memory_usage)),
            ("Self CPU Mem", lambda e: _memory(e.self_cpu_memory_usage)),
        ]
    columns.append(("# of Calls", lambda e: str(e.count)))
    if events.flags & 2:
        columns.append(("Input Shapes", lambda e: _cut(str(e.input_shapes), shapes)))
    if any(e.location for e in events):
        columns.append(("Source Location", lambda e: _where(e.location, source)))
    if events.with_flops:
        columns.append(("Total MFLOPs", lambda e: f"{e.flops / 1e6:.3f}" if e.flops else "--"))
    return columns


def _cut(text: str, width: int) -> str:
    return text if width < 0 or len(text) <= width else text[: max(width - 3, 0)] + "..."


def _where(location: list[str], width: int) -> str:
    if not location:
        return ""
    more = f" and {len(location) - 1} more" if len(location) > 1 else ""
    text = location[0]
    room = width - len(more)
    return (text if len(text) <= room or width < 0 else "..." + text[3 - room :]) + more


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "--"


def _time(us: float, unit: str | None) -> str:
    if unit == "s" or (unit is None and us >= 1e6):
        return f"{us / 1e6:.3f}s"
    if unit == "ms" or (unit is None and us >= 1e3):
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


def _memory(n: int) -> str:
    for name, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(n) >= size:
            return f"{n / size:.2f} {name}"
    return f"{n} B"
