"""The processes of one machine: programs (``SubprocessContext``) or a function (``MultiprocessContext``), with their output and their ends."""

from __future__ import annotations

from collections.abc import Callable

from .api import MultiprocessContext, PContext, RunProcsResult, SignalException, SubprocessContext
from .errors import ProcessFailure
from .logs import DefaultLogsSpecs, LogsDest, LogsSpecs, Std, to_map

__all__ = [
    "DefaultLogsSpecs",
    "LogsDest",
    "LogsSpecs",
    "MultiprocessContext",
    "PContext",
    "ProcessFailure",
    "RunProcsResult",
    "SignalException",
    "Std",
    "SubprocessContext",
    "start_processes",
    "to_map",
]


def start_processes(
    name: str,
    entrypoint: Callable | str,
    args: dict[int, tuple],
    envs: dict[int, dict[str, str]],
    logs_specs: LogsSpecs | None = None,
    log_line_prefixes: dict[int, str] | None = None,
    start_method: str = "spawn",
) -> PContext:
    """Start one process for each local rank in ``args`` and ``envs``, by local rank: arguments, and variables beside this process's. A text is a
    program, else ``entrypoint`` is a function. What a function returns is in the result of ``wait()``."""
    if set(args) != set(range(len(args))) or set(envs) != set(args):
        raise RuntimeError(f"args and envs must have the local ranks 0 to {len(args) - 1}, got {[*args]} and {[*envs]}")
    specs = logs_specs or DefaultLogsSpecs()
    context: PContext
    if isinstance(entrypoint, str):
        context = SubprocessContext(name, entrypoint, args, envs, specs, log_line_prefixes)
    else:
        context = MultiprocessContext(name, entrypoint, args, envs, start_method, specs, log_line_prefixes)
    try:
        context.start()
    except BaseException:
        context.close()
        raise
    return context
