"""The agent whose ranks are processes of this machine."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from ....launch_options import usable_processors
from ...multiprocessing import DefaultLogsSpecs, LogsSpecs, PContext, start_processes
from ...multiprocessing.api import GRACE
from .api import SimpleElasticAgent
from .workers import RunResult, Worker, WorkerGroup, WorkerSpec, WorkerState

__all__ = ["LocalElasticAgent"]

_SETTLE = 1.0  # seconds that ranks are given to end, so that the cause among them is told from the consequences


class LocalElasticAgent(SimpleElasticAgent):
    """``LocalElasticAgent(spec, logs_specs)``. ``start_method`` is multiprocessing's, for functions. ``log_line_prefix_template`` may name
    ``${rank}``, ``${local_rank}`` and ``${role_name}``."""

    def __init__(
        self,
        spec: WorkerSpec,
        logs_specs: LogsSpecs | None = None,
        start_method: str = "spawn",
        exit_barrier_timeout: float | None = None,
        log_line_prefix_template: str | None = None,
        shutdown_timeout: float = GRACE,
    ):
        super().__init__(spec, exit_barrier_timeout, shutdown_timeout)
        self._logs, self._start_method = logs_specs or DefaultLogsSpecs(), start_method
        self._prefix = log_line_prefix_template
        self._context: PContext | None = None
        self._first_seen: float | None = None

    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        spec, args, envs, prefixes = self._spec, {}, {}, {}
        for worker in worker_group.workers:
            local = worker.local_rank
            envs[local] = self._environment(worker)
            args[local] = tuple(
                part.replace("${local_rank}", str(local)) if isinstance(part, str) else part for part in spec.args
            )
            prefixes[local] = self._head(worker)
        self._first_seen = None
        self._context = start_processes(
            spec.get_entrypoint_name(), spec.entrypoint, args, envs, self._logs, prefixes, self._start_method
        )
        return self._context.pids()

    def _head(self, worker: Worker) -> str:
        if self._prefix is None:
            return f"[rank {worker.global_rank}] " if worker.world_size > 1 else ""
        values = {
            "rank": worker.global_rank,
            "global_rank": worker.global_rank,
            "local_rank": worker.local_rank,
            "role_name": self._spec.role,
        }
        text = self._prefix
        for name, value in values.items():
            text = text.replace(f"${{{name}}}", str(value))
        return text

    def _environment(self, worker: Worker) -> dict[str, str]:
        spec, group = self._spec, self._group
        values = {
            "RANK": worker.global_rank,
            "LOCAL_RANK": 0 if spec.virtual_local_rank else worker.local_rank,
            "WORLD_SIZE": worker.world_size,
            "LOCAL_WORLD_SIZE": spec.local_world_size,
            "GROUP_RANK": group.group_rank,
            "GROUP_WORLD_SIZE": group.group_world_size,
            "ROLE_RANK": worker.role_rank,
            "ROLE_WORLD_SIZE": worker.role_world_size,
            "ROLE_NAME": spec.role,
            "MASTER_ADDR": group.master_addr,
            "MASTER_PORT": group.master_port,
            "TORCHELASTIC_RUN_ID": spec.rdzv_handler.get_run_id(),
            "TORCHELASTIC_RESTART_COUNT": self._restarts,
            "TORCHELASTIC_MAX_RESTARTS": spec.max_restarts,
            "TORCHELASTIC_USE_AGENT_STORE": spec.rdzv_handler.use_agent_store,
            "PYTHONUNBUFFERED": 1,
        }
        if "OMP_NUM_THREADS" not in os.environ and spec.local_world_size > 1:
            values["OMP_NUM_THREADS"] = max(1, usable_processors() // spec.local_world_size)
        return {name: str(value) for name, value in values.items()}

    def _stop_workers(self, worker_group: WorkerGroup, death_sig: signal.Signals = signal.SIGTERM) -> None:
        if self._context is not None:
            self._context.close(death_sig, self._shutdown_timeout)

    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM) -> None:
        super()._shutdown(death_sig)
        if isinstance(self._logs, DefaultLogsSpecs):
            self._logs.close()

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        context, ranks = self._context, {w.local_rank: w.global_rank for w in worker_group.workers}
        if context is None:
            return RunResult(WorkerState.INIT)
        done, result = context.is_done(), context.result()
        if not result.failures:
            if not done:
                return RunResult(WorkerState.HEALTHY)
            values = {ranks[local]: result.return_values.get(local) for local in ranks}
            return RunResult(WorkerState.SUCCEEDED, return_values=values)
        causes = {local: f for local, f in result.failures.items() if not context.is_consequence(local)}
        self._first_seen = self._first_seen or time.monotonic()
        if not causes and not done and time.monotonic() - self._first_seen < _SETTLE:
            return RunResult(WorkerState.HEALTHY)
        failures = {ranks[local]: f for local, f in {**causes, **result.failures}.items()}
        return RunResult(WorkerState.FAILED if causes else WorkerState.UNHEALTHY, failures=failures)
