"""What to change in a program so that it gets faster, from what the compiler did with it."""

from __future__ import annotations

from typing import Any

__all__ = ["advice"]

SMALL = 20e-6  # seconds of a launch below which calling it costs as much as its work


def advice(report: Any) -> list[str]:
    """Sentences, what matters most first; each says where it was seen."""
    out = []
    seen = set()  # a break within a call ends the caller's graph, too
    for event in report.events:
        r = event.break_reason
        if r is not None:
            where = f"{r.user_stack[-1].filename}:{r.user_stack[-1].lineno}" if r.user_stack else event.code.co_name
            line = f"{where}: the graph ends here: {r.in_short()}" + (f" {r.hint}" if r.hint else "")
            out += [] if line in seen else [line]
            seen.add(line)
    if report.recompiles:
        name, _, guard = report.recompiles[-1]
        count = len(report.recompiles)
        out.append(
            f"{name} was compiled again {count} time{'s' * (count != 1)}; the last time because {guard} no longer held. Sizes that vary can be "
            "marked with torch._dynamo.mark_dynamic, numbers that vary can be tensors."
        )
    for program in report.programs:
        for reason in program.fallbacks:
            out.append(f"An operator of {program.name} is called from Python inside the graph: {reason}")
    launches = [launch for p in report.programs for launch in p.launches if launch.seconds]
    total = sum(launch.seconds for launch in launches)
    if report.compiled and total < 0.4 * report.compiled:
        out.append(
            f"Kernels take {1000 * total:.3f} ms of the {1000 * report.compiled:.3f} ms of a call: the rest is Python, guards and launches. Larger "
            "arguments, or more of the program in one compiled function, make that part smaller."
        )
    for launch in sorted(launches, key=lambda x: -x.seconds)[:3]:
        if launch.seconds < SMALL or total == 0 or launch.seconds < 0.2 * total:
            continue
        bandwidth, rate = launch.bandwidth / report.machine.bandwidth, launch.rate / report.machine.flops
        if launch.note.kind == "product":
            if rate < 0.5:
                out.append(
                    f"The product {launch.note.label} reaches {rate:.0%} of the machine's rate: larger matrices, or batches of them, "
                    "would reach more."
                )
        elif bandwidth > 0.6:
            out.append(
                f"The kernel {launch.note.label} runs at {bandwidth:.0%} of the machine's bandwidth: only moving fewer bytes "
                "(float32, fewer results) helps."
            )
    return out
