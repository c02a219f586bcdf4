"""``elastic_launch``: a function, or a program, as the ranks of this machine in a job of one or several machines. ``flambeau launch`` is made of
it."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..elastic.agent.server import LocalElasticAgent, WorkerSpec
from ..elastic.multiprocessing import DefaultLogsSpecs, LogsSpecs
from ..elastic.multiprocessing.api import GRACE
from ..elastic.multiprocessing.errors import ChildFailedError
from ..elastic.rendezvous import RendezvousHandler, RendezvousParameters
from ..elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from ..elastic.rendezvous.dynamic_rendezvous import create_handler
from ..elastic.rendezvous.registry import get_rendezvous_handler
from ..store import HashStore

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """A job of ``min_nodes`` to ``max_nodes`` machines with ``nproc_per_node`` ranks each.

    ``rdzv_endpoint`` (``host:port``) is where machines meet; a job of one machine needs none. ``rdzv_configs`` are the backend's options,
    ``rdzv_timeout`` (seconds, unless negative) is its ``timeout``. ``local_addr`` is this machine's address for the others.
    ``log_line_prefix_template`` stands in front of a program's lines. PyTorch's fields for metrics and NUMA are taken and ignored."""

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: LogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "c10d"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: object = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None

    def __post_init__(self):
        if self.rdzv_timeout >= 0:
            self.rdzv_configs.setdefault("timeout", self.rdzv_timeout)


def _handler(config: LaunchConfig, run_id: str) -> RendezvousHandler:
    configs = dict(config.rdzv_configs)
    if "timeout" in configs:
        configs.setdefault("join_timeout", configs["timeout"])
    params = RendezvousParameters(
        config.rdzv_backend,
        config.rdzv_endpoint,
        run_id,
        config.min_nodes,
        config.max_nodes,
        config.local_addr,
        **configs,
    )
    if config.max_nodes == 1 and config.rdzv_backend in ("c10d", "static"):
        # Nobody else comes: the state needs no server.
        store = HashStore()
        return create_handler(store, C10dRendezvousBackend(store, run_id), params)
    return get_rendezvous_handler(params)


def _signals(names: str) -> tuple[signal.Signals, ...]:
    try:
        return tuple(signal.Signals[name.strip()] for name in names.split(",") if name.strip())
    except KeyError as error:
        raise ValueError(f"{error.args[0]} is no signal") from None


def launch_agent(
    config: LaunchConfig,
    entrypoint: Callable | str | None,
    args: list[Any],
    say: Callable[[str], Any] | None = None,
) -> dict[int, Any]:
    """{rank: what ``entrypoint(*args)`` returned there} of this machine's ranks; of a program None. ``say(text)`` is told what happens (the default
    logs it).

    ChildFailedError when ranks failed more often than ``max_restarts``, the failure that came first leading; errors of the rendezvous;
    SignalException."""
    run_id = config.run_id or uuid.uuid4().hex[:8]
    signals = _signals(config.signals_to_handle)
    logs = config.logs_specs or DefaultLogsSpecs()
    handler = _handler(config, run_id)
    spec = WorkerSpec(
        role=config.role,
        local_world_size=config.nproc_per_node,
        rdzv_handler=handler,
        entrypoint=entrypoint,
        args=tuple(args),
        max_restarts=config.max_restarts,
        monitor_interval=config.monitor_interval,
        local_addr=config.local_addr,
        event_log_handler=config.event_log_handler,
        virtual_local_rank=config.virtual_local_rank,
    )
    agent = LocalElasticAgent(
        spec,
        logs,
        config.start_method,
        log_line_prefix_template=config.log_line_prefix_template,
        shutdown_timeout=GRACE if config.shutdown_timeout is None else config.shutdown_timeout,
    )
    agent.signals = signals
    if say is not None:
        agent.say = say
    result = agent.run()
    if result.is_failed():
        raise ChildFailedError(spec.get_entrypoint_name(), result.failures)
    return result.return_values


class elastic_launch:  # noqa: N801
    """``elastic_launch(config, entrypoint)(*args)``: see launch_agent."""

    def __init__(self, config: LaunchConfig, entrypoint: Callable | str | None):
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args))
