"""How the ranks of a job find each other: ``env://``, ``tcp://host:port``, ``file://path``, and the variables of mpiexec and Slurm."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit

from . import mpi
from .file_store import FileStore
from .store import DEFAULT_TIMEOUT, PrefixStore, Store
from .tcp_store import ServerProcess, TCPStore

__all__ = ["first_host", "register_rendezvous_handler", "rendezvous"]

_handlers: dict[str, Callable] = {}
# Servers of this process by port. They live as long as it does, so that the ranks of a second process group on the same port find theirs
# whichever of them comes first; keys carry the number of the meeting.
_servers: dict[int, ServerProcess] = {}
_meetings: dict[tuple[str, int], int] = {}


def register_rendezvous_handler(scheme: str, handler: Callable) -> None:
    """``handler(url, timeout=..., **kwargs)`` yields (store, rank, world size) for URLs of this scheme."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, timeout=DEFAULT_TIMEOUT, **kwargs) -> Iterator:
    """Yields (store, rank, world size) of this process."""
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, int) or not isinstance(world_size, int):
        raise RuntimeError(f"`rank` and `world_size` must be integers. {rank=} {world_size=}")
    parts = urlsplit(url)
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    query = {k: v[0] for k, v in parse_qs(parts.query).items()}
    rank = int(query.get("rank", rank))
    world_size = int(query.get("world_size", world_size))
    return _handlers[parts.scheme](parts, rank, world_size, timeout)


def _error(scheme: str, what: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {what}")


def meet(host: str, port: int, rank: int, size: int, timeout, master: bool) -> Store:
    """The store of this meeting; the master starts the server unless it has one on that port already."""
    if master and port not in _servers:
        server = ServerProcess("", port)
        _servers[server.port] = server
        port = server.port
    store = TCPStore(host, port, timeout=timeout)
    number = _meetings[host, port] = _meetings.get((host, port), 0) + 1
    return PrefixStore(f"meeting{number}", store)


def _tcp(parts, rank, size, timeout):
    if rank < 0:
        raise _error("tcp", "rank parameter missing")
    if size < 0:
        raise _error("tcp", "world_size parameter missing")
    if not parts.port:
        raise _error("tcp", "port number missing")
    yield meet(parts.hostname, parts.port, rank, size, timeout, rank == 0), rank, size


def _file(parts, rank, size, timeout):
    path = parts.path
    if not path:
        raise _error("file", "path missing")
    if rank < 0:
        raise _error("file", "rank parameter missing")
    if size < 0:
        raise _error("file", "world_size parameter missing")
    store = FileStore(path, size)
    store.set_timeout(timeout)
    yield store, rank, size


def _first(*names: str) -> int | None:
    return next((int(os.environ[name]) for name in names if os.environ.get(name)), None)


def first_host(hosts: str) -> str:
    """The first of a list as Slurm writes them: ``node[003-007,12],other`` or ``rack[1-2]node[3,5]``."""
    first = re.match(r"(\[[^]]*\]|[^,\[])*", hosts)[0]
    return re.sub(r"\[([^],-]*)[^]]*\]", r"\1", first)


def _env(parts, rank, size, timeout):
    env = os.environ
    rank = rank if rank >= 0 else _first("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")
    size = (
        size
        if size >= 0
        else _first("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    )
    missing = "environment variable {} expected, but not set"
    if rank is None:
        raise _error("env", missing.format("RANK"))
    if size is None:
        raise _error("env", missing.format("WORLD_SIZE"))
    host, port = env.get("MASTER_ADDR"), env.get("MASTER_PORT")
    if host is None and mpi.started_by() is not None:
        yield _by_mpi(rank, size, timeout), rank, size
        return
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST")
    if host is None and nodes:
        host, port = first_host(nodes), port or str(29500 + int(env.get("SLURM_JOB_ID", "0")) % 1000)
    if host is None:
        raise _error("env", missing.format("MASTER_ADDR"))
    if port is None:
        raise _error("env", missing.format("MASTER_PORT"))
    agent = env.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    yield meet(host, int(port), rank, size, timeout, rank == 0 and not agent), rank, size


def _by_mpi(rank, size, timeout):
    """mpiexec started MPI's ranks: rank 0 starts a server and tells the others over MPI where it is."""
    world = mpi.start(rank, size, "", 0).COMM_WORLD
    place = None
    if rank == 0:
        server = ServerProcess("", 0)
        _servers[server.port] = server
        place = (socket.gethostname(), server.port)
    host, port = world.bcast(place, 0)
    if host == socket.gethostname():
        host = "127.0.0.1"
    return meet(host, port, rank, size, timeout, False)


for _scheme, _handler in (("tcp", _tcp), ("file", _file), ("env", _env)):
    register_rendezvous_handler(_scheme, _handler)
