"""What workers are called, and how they are set up."""

from __future__ import annotations

import enum
from typing import NamedTuple

from ...base.public import public_in

__all__ = ["BackendType", "RpcBackendOptions", "TensorPipeRpcBackendOptions", "WorkerInfo", "get_rpc_timeout"]

_DEFAULT_THREADS, _DEFAULT_TIMEOUT = 16, 60.0


@public_in("distributed.rpc")
class WorkerInfo(NamedTuple):
    """A worker: its name and its rank."""

    name: str
    id: int

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"


@public_in("distributed.rpc.backend_registry")
class BackendType(enum.Enum):
    TENSORPIPE = "TENSORPIPE"


@public_in("distributed.rpc")
class RpcBackendOptions:
    """``rpc_timeout``: seconds after which a call fails, 0 for never; ``init_method``: where workers meet, as of ``init_process_group``."""

    def __init__(self, rpc_timeout: float = _DEFAULT_TIMEOUT, init_method: str = "env://"):
        self.rpc_timeout, self.init_method = float(rpc_timeout), init_method


@public_in("distributed.rpc.options")
class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """``num_worker_threads`` (16) calls of other workers run here at a time. There are no devices to map: ValueError for maps that name one."""

    def __init__(
        self,
        *,
        num_worker_threads: int = _DEFAULT_THREADS,
        rpc_timeout: float = _DEFAULT_TIMEOUT,
        init_method: str = "env://",
        device_maps: dict[str, dict] | None = None,
        devices: list | None = None,
        _transports: list | None = None,
        _channels: list | None = None,
    ):
        super().__init__(rpc_timeout, init_method)
        if num_worker_threads < 1:
            raise ValueError(f"num_worker_threads must be positive, got {num_worker_threads}")
        self.num_worker_threads = num_worker_threads
        self.device_maps: dict[str, dict] = {}
        self.devices: list = []
        for to, device_map in (device_maps or {}).items():
            self.set_device_map(to, device_map)
        self.set_devices(devices or [])

    def set_device_map(self, to: str, device_map: dict) -> None:
        if any("cuda" in str(d) or isinstance(d, int) for pair in device_map.items() for d in pair):
            raise ValueError(
                f"Node {to} has invalid devices in its device map {device_map}: RPC moves memory of the CPU"
            )

    def set_devices(self, devices: list) -> None:
        if any("cuda" in str(d) or isinstance(d, int) for d in devices):
            raise ValueError(f"`set_devices` expects devices that RPC moves memory of, which is the CPU; got {devices}")


class _Settings:
    timeout = _DEFAULT_TIMEOUT


def get_rpc_timeout() -> float:
    """Seconds after which calls that name no time fail."""
    return _Settings.timeout


def _set_rpc_timeout(seconds: float) -> None:
    _Settings.timeout = float(seconds)
