"""Records of an agent: what it runs, the ranks of its machine, what came of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .....base.public import public_in
from ...multiprocessing.errors import ProcessFailure
from ...rendezvous import RendezvousHandler

__all__ = ["RunResult", "Worker", "WorkerGroup", "WorkerSpec", "WorkerState"]


@public_in("distributed.elastic.agent.server.api")
@dataclass
class WorkerSpec:
    """``local_world_size`` ranks of ``entrypoint`` (a function, or a program as text) with ``args``, on each machine that ``rdzv_handler`` meets.

    All ranks are started again ``max_restarts`` times at most after failures. ``monitor_interval``: seconds between two looks at them.
    ``${local_rank}`` in arguments that are texts is the local rank. With ``virtual_local_rank`` all ranks have LOCAL_RANK 0."""

    role: str
    local_world_size: int
    rdzv_handler: RendezvousHandler
    fn: Callable | None = None
    entrypoint: Callable | str | None = None
    args: tuple = ()
    max_restarts: int = 3
    monitor_interval: float = 0.1
    master_port: int | None = None
    master_addr: str | None = None
    local_addr: str | None = None
    event_log_handler: str = "null"
    virtual_local_rank: bool = False

    def __post_init__(self):
        if self.local_world_size < 1 or self.monitor_interval <= 0:
            raise ValueError("local_world_size and monitor_interval must be positive")
        self.entrypoint = self.entrypoint or self.fn
        if self.entrypoint is None:
            raise ValueError("WorkerSpec needs an entrypoint: a function, or a program")

    def get_entrypoint_name(self) -> str:
        """The program, or the function's name."""
        if isinstance(self.entrypoint, str):
            return self.entrypoint
        return getattr(self.entrypoint, "__qualname__", repr(self.entrypoint))


@public_in("distributed.elastic.agent.server.api")
class Worker:
    """A rank of this machine. ``id`` is its process's number, None before the start."""

    __slots__ = ("global_rank", "id", "local_rank", "role_rank", "role_world_size", "world_size")

    def __init__(
        self,
        local_rank: int,
        global_rank: int = -1,
        role_rank: int = -1,
        world_size: int = -1,
        role_world_size: int = -1,
    ):
        self.id: Any = None
        self.local_rank, self.global_rank, self.role_rank = local_rank, global_rank, role_rank
        self.world_size, self.role_world_size = world_size, role_world_size

    def __repr__(self) -> str:
        return f"Worker({', '.join(f'{name}={getattr(self, name)}' for name in self.__slots__)})"


@public_in("distributed.elastic.agent.server.api")
class WorkerState(str, Enum):  # noqa: UP042
    """How the ranks of a machine are."""

    UNKNOWN = "UNKNOWN"
    INIT = "INIT"
    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @staticmethod
    def is_running(state: WorkerState) -> bool:
        """Whether ranks may still be there."""
        return state in (WorkerState.HEALTHY, WorkerState.UNHEALTHY)


@public_in("distributed.elastic.agent.server.api")
class WorkerGroup:
    """The ranks of this machine in one round."""

    __slots__ = (
        "group_rank",
        "group_world_size",
        "master_addr",
        "master_port",
        "spec",
        "state",
        "store",
        "workers",
    )

    def __init__(self, spec: WorkerSpec):
        self.spec, self.store, self.state = spec, None, WorkerState.INIT
        self.workers = [Worker(local) for local in range(spec.local_world_size)]
        self.group_rank = self.group_world_size = None
        self.master_addr = self.master_port = None


@public_in("distributed.elastic.agent.server.api")
@dataclass
class RunResult:
    """What ranks returned, or how they failed, by global rank."""

    state: WorkerState
    return_values: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, ProcessFailure] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """Whether a rank failed, here or on another machine."""
        return self.state == WorkerState.FAILED
