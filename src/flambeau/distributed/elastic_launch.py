"""``elastic_launch``: a function in several processes of this machine, as the launcher would start a program."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from dataclasses import dataclass, field
from multiprocessing import connection

from .tcp_store import ServerProcess

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """PyTorch's options of a launch. One machine is built: ``min_nodes`` and ``max_nodes`` are 1."""

    min_nodes: int = 1
    max_nodes: int = 1
    nproc_per_node: int = 1
    logs_specs: object = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "c10d"
    rdzv_configs: dict = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 0
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict = field(default_factory=dict)
    local_addr: str | None = None


def _run(rank: int, size: int, port: int, fn, args, pipe) -> None:
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size), LOCAL_WORLD_SIZE=str(size), GROUP_RANK="0",
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RUN_ID="none",
        TORCHELASTIC_RESTART_COUNT="0", TORCHELASTIC_MAX_RESTARTS="0",
    )  # fmt: skip
    try:
        pipe.send((True, fn(*args)))
    except BaseException:
        pipe.send((False, traceback.format_exc()))
        raise


def launch_agent(config: LaunchConfig, entrypoint, args) -> dict:
    """{rank: what ``entrypoint(*args)`` returned there}. RuntimeError with the traceback of the first rank that failed; the others are ended."""
    if config.max_nodes != 1:
        raise NotImplementedError("elastic_launch is built for one machine; flambeau launch starts several")
    if not callable(entrypoint):
        raise NotImplementedError("elastic_launch takes a function; flambeau launch runs programs")
    context = multiprocessing.get_context(config.start_method)
    server = ServerProcess("", 0)
    size, ranks = config.nproc_per_node, {}
    for rank in range(size):
        ours, theirs = context.Pipe(False)
        process = context.Process(target=_run, args=(rank, size, server.port, entrypoint, args, theirs))
        process.start()
        theirs.close()
        ranks[ours] = (rank, process)
    results: dict = {}
    try:
        waiting = dict(ranks)
        while waiting:
            for pipe in connection.wait(list(waiting)):
                rank, process = waiting.pop(pipe)
                try:
                    well, value = pipe.recv()
                except EOFError:
                    process.join()
                    raise RuntimeError(f"rank {rank} ended with status {process.exitcode}") from None
                if not well:
                    raise RuntimeError(f"rank {rank} failed:\n{value}")
                results[rank] = value
        for _, process in ranks.values():
            process.join()
        return results
    finally:
        for _, process in ranks.values():
            if process.is_alive():
                process.terminate()
            process.join()
        server.close()


class elastic_launch:  # noqa: N801
    """``elastic_launch(config, fn)(*args)``: see launch_agent."""

    def __init__(self, config: LaunchConfig, entrypoint):
        self.config, self.entrypoint = config, entrypoint

    def __call__(self, *args) -> dict:
        return launch_agent(self.config, self.entrypoint, list(args))
