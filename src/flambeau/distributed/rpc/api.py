"""init_rpc, shutdown, and calls."""

from __future__ import annotations

import os
import re
import secrets
import socket
from typing import Any
from urllib.parse import urlsplit

from ..futures import Future
from ..rendezvous import first_host, rendezvous
from ..store import PrefixStore, Store
from . import _agent
from ._agent import Agent, Kind, current
from ._asked import HANDLERS
from ._counted import References
from ._ending import wait_for_all
from .options import (
    BackendType,
    TensorPipeRpcBackendOptions,
    WorkerInfo,
    _set_rpc_timeout,
)
from .references import RRef, remote_call

__all__ = ["get_worker_info", "init_rpc", "is_available", "remote", "rpc_async", "rpc_sync", "shutdown"]

_NAME = re.compile(r"[A-Za-z0-9_:-]{1,127}")


def is_available() -> bool:
    return True


class _Meetings:
    count = 0


def _own_address(init_method: str) -> str:
    """The address of this machine towards the one where workers meet: where others reach this worker, and nobody who can't reach that one."""
    url = urlsplit(init_method)
    host = url.hostname if url.scheme == "tcp" else os.environ.get("MASTER_ADDR") if url.scheme == "env" else None
    if host is None and url.scheme == "env":
        nodes = os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST")
        host = first_host(nodes) if nodes else None
    family, _, _, _, place = socket.getaddrinfo(host or "127.0.0.1", 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        # Sends nothing.
        probe.connect(place)
        return probe.getsockname()[0]


def _secret(rank: int, store: Store) -> bytes:
    given = os.environ.get("FLAMBEAU_RPC_SECRET")
    if given:
        return given.encode()
    if rank == 0:
        store.set("secret", secrets.token_hex(32))
    return store.get("secret")


def init_rpc(
    name: str,
    backend: BackendType | None = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: TensorPipeRpcBackendOptions | None = None,
) -> None:
    """Make this process worker ``name`` of a job of ``world_size`` workers, which all call this; returns when they have.

    Workers meet by ``rpc_backend_options.init_method`` ("env://", "tcp://host:port", "file:///path"), rank and size may come from there. The worker
    listens on the address by which it reaches that place. A secret that is proved by all who connect is made by rank 0 and goes by the store, unless
    ``FLAMBEAU_RPC_SECRET`` is set for all. RuntimeError when it was called before, or two workers have one name; ValueError for a name that isn't
    letters, digits, "-", "_" and ":"."""
    if _agent.is_set():
        raise RuntimeError("RPC is already initialized")
    if backend is not None and backend is not BackendType.TENSORPIPE:
        raise TypeError(f"Argument backend must be a member of BackendType, got {backend!r}")
    options = rpc_backend_options or TensorPipeRpcBackendOptions()
    if not isinstance(options, TensorPipeRpcBackendOptions):
        raise TypeError(f"`rpc_backend_options` must be a `TensorPipeRpcBackendOptions`, got {type(options).__name__}")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"Worker name must match {_NAME.pattern}, but got {name!r}.")
    store, rank, size = next(rendezvous(options.init_method, rank, -1 if world_size is None else world_size))
    _Meetings.count += 1
    store = PrefixStore(f"rpc{_Meetings.count}", store)
    listener = socket.create_server((_own_address(options.init_method), 0), backlog=size)
    try:
        address, port = listener.getsockname()[:2]
        store.set(f"worker{rank}", f"{name} {address} {port}")
        rows = [store.get(f"worker{k}").decode().split() for k in range(size)]
        names = [row[0] for row in rows]
        for k, other in enumerate(names):
            if names.index(other) != k:
                raise RuntimeError(
                    f"RPC worker name {other} is not unique. Workers {names.index(other)} and {k} cannot share the same name."
                )
        workers = [WorkerInfo(n, k) for k, n in enumerate(names)]
        addresses = [(host, int(port)) for _, host, port in rows]
        agent = Agent(rank, workers, addresses, listener, _secret(rank, store), options.num_worker_threads, store)
    except BaseException:
        listener.close()
        raise
    agent.references = References(agent)
    agent.handlers.update(HANDLERS)
    _set_rpc_timeout(options.rpc_timeout)
    _agent.use(agent)
    store.set(f"ready{rank}", b"1")
    store.wait([f"ready{k}" for k in range(size)])


def shutdown(graceful: bool = True, timeout: float = 0) -> None:
    """Leave. ``graceful``: when all workers have come here and no call is under way on any of them, ``timeout`` seconds at most (0: no limit); else
    at once. RuntimeError for a worker that has left without it or doesn't come in time; this one has left then too."""
    agent = current()
    try:
        if graceful:
            wait_for_all(agent, timeout)
    finally:
        _agent.use(None)
        agent.close()


def get_worker_info(worker_name: str | None = None) -> WorkerInfo:
    """The worker of that name, this one without. RuntimeError when there is none."""
    agent = current()
    return agent.info if worker_name is None else agent.worker(worker_name)


def _called(func, args, kwargs) -> tuple:
    if not callable(func):
        raise TypeError("function should be callable.")
    return func, tuple(args or ()), dict(kwargs or {})


def rpc_async(
    to: str | int | WorkerInfo, func, args=None, kwargs: dict[str, Any] | None = None, timeout: float = -1.0
) -> Future:
    """Call ``func(*args, **kwargs)`` on worker ``to``; a Future of the value.

    The function and its arguments are pickled, tensors are copied. The Future raises what the function raised, of the same type, with the other
    worker's traceback as its text; RuntimeError after ``timeout`` seconds (-1: those of ``init_rpc``, 0: no limit) or when the worker is gone."""
    agent = current()
    call = _called(func, args, kwargs)
    return agent.request(agent.worker(to).id, Kind.CALL, None, call, timeout, agent.contexts.current)


def rpc_sync(
    to: str | int | WorkerInfo, func, args=None, kwargs: dict[str, Any] | None = None, timeout: float = -1.0
) -> Any:
    """As ``rpc_async``; returns the value."""
    return rpc_async(to, func, args, kwargs, timeout).wait()


def remote(
    to: str | int | WorkerInfo, func, args=None, kwargs: dict[str, Any] | None = None, timeout: float = -1.0
) -> RRef:
    """Call ``func(*args, **kwargs)`` on worker ``to``, which keeps the value; a reference to it, at once. What the function raises is raised by
    ``to_here()``. ``timeout``: seconds until the worker knows of the call."""
    agent = current()
    return remote_call(agent, agent.worker(to).id, _called(func, args, kwargs), timeout)
