"""``torch.distributed.rpc``: functions called on other workers, and references to their values.

A worker has an *agent* (_agent.py): a socket it listens on, one connection to each worker it calls (_channel.py), and threads that run what others
ask for. Messages are pickles in which tensors go beside (_wire.py). references.py keeps the values that other workers refer to. See
docs/design/distributed.md. What a worker receives it unpickles, which runs code: SECURITY.md says who can send.
"""

from . import functions
from . import options as backend_registry
from .api import get_worker_info, init_rpc, is_available, remote, rpc_async, rpc_sync, shutdown
from .options import (
    BackendType,
    RpcBackendOptions,
    TensorPipeRpcBackendOptions,
    WorkerInfo,
    _set_rpc_timeout,  # noqa: F401
    get_rpc_timeout,
)
from .references import RRef

PyRRef = RRef

__all__ = [
    "BackendType",
    "PyRRef",
    "RRef",
    "RpcBackendOptions",
    "TensorPipeRpcBackendOptions",
    "WorkerInfo",
    "backend_registry",
    "functions",
    "get_rpc_timeout",
    "get_worker_info",
    "init_rpc",
    "is_available",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]
