"""What a rendezvous is: the handler's interface, its parameters, what a round gives, the errors, and the table of backends."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ...store import Store

__all__ = [
    "RendezvousClosedError",
    "RendezvousConnectionError",
    "RendezvousError",
    "RendezvousGracefulExitError",
    "RendezvousHandler",
    "RendezvousHandlerCreator",
    "RendezvousHandlerRegistry",
    "RendezvousInfo",
    "RendezvousParameters",
    "RendezvousStateError",
    "RendezvousStoreInfo",
    "RendezvousTimeoutError",
    "rendezvous_handler_registry",
]


class RendezvousError(Exception):
    """Any error of a rendezvous."""


class RendezvousClosedError(RendezvousError):
    """The job has ended: nobody can join it any more."""


class RendezvousTimeoutError(RendezvousError):
    """Too few machines came within the join timeout."""


class RendezvousConnectionError(RendezvousError):
    """The store at which machines meet can't be reached, or is lost."""


class RendezvousStateError(RendezvousError):
    """The state in the store is none of a rendezvous, or contradicts what this machine asks for."""


class RendezvousGracefulExitError(RendezvousError):
    """This machine left the rendezvous on purpose."""


@dataclass
class RendezvousStoreInfo:
    """Where the ranks of a round meet: the environment's ``MASTER_ADDR`` and ``MASTER_PORT``."""

    MASTER_ADDR_KEY: ClassVar[str] = "MASTER_ADDR"
    MASTER_PORT_KEY: ClassVar[str] = "MASTER_PORT"
    master_addr: str
    master_port: int

    @staticmethod
    def build(rank: int, store: Store, local_addr: str | None = None, server_port: int | None = None):
        """Machine 0 says its address and a free port (or ``server_port``) in the store; all others read them."""
        if rank == 0:
            with socket.socket() as probe:
                probe.bind(("", 0))
                port = server_port or probe.getsockname()[1]
            store.set(RendezvousStoreInfo.MASTER_ADDR_KEY, local_addr or socket.getfqdn())
            store.set(RendezvousStoreInfo.MASTER_PORT_KEY, str(port))
        keys = [RendezvousStoreInfo.MASTER_ADDR_KEY, RendezvousStoreInfo.MASTER_PORT_KEY]
        addr, number = (value.decode() for value in store.multi_get(keys))
        return RendezvousStoreInfo(addr, int(number))


@dataclass(frozen=True)
class RendezvousInfo:
    """One round: its store, the number of this machine among ``world_size`` machines, and where ranks meet."""

    store: Store
    rank: int
    world_size: int
    bootstrap_store_info: RendezvousStoreInfo | None = None


class RendezvousHandler(ABC):
    """What an agent asks of a rendezvous."""

    @abstractmethod
    def get_backend(self) -> str:
        """The backend's name."""

    @property
    def use_agent_store(self) -> bool:
        """Whether ranks find a store at the place of ``bootstrap_store_info``; else rank 0 starts it there."""
        return False

    @abstractmethod
    def next_rendezvous(self) -> RendezvousInfo:
        """Wait for the next round. RendezvousClosedError, RendezvousTimeoutError, RendezvousConnectionError, RendezvousStateError."""

    @abstractmethod
    def is_closed(self) -> bool:
        """Whether the job has ended."""

    @abstractmethod
    def set_closed(self) -> None:
        """End the job for all."""

    @abstractmethod
    def num_nodes_waiting(self) -> int:
        """How many machines wait for a place in the next round."""

    @abstractmethod
    def get_run_id(self) -> str:
        """The job's name."""

    @abstractmethod
    def shutdown(self) -> bool:
        """End the job for all and free what the handler has; whether that went well."""

    def is_round_over(self) -> bool:
        """Whether a machine of this round has left, or others meet for the next one. (A method of this package; PyTorch has none.)"""
        return False


class RendezvousParameters:
    """What a backend's handler is made from. ``**kwargs`` are the options of ``--rdzv-conf``. ValueError for no backend and impossible numbers."""

    def __init__(
        self,
        backend: str,
        endpoint: str,
        run_id: str,
        min_nodes: int,
        max_nodes: int,
        local_addr: str | None = None,
        **kwargs,
    ):
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        if min_nodes < 1:
            raise ValueError(f"The minimum number of rendezvous nodes ({min_nodes}) must be greater than zero.")
        if max_nodes < min_nodes:
            raise ValueError(
                f"The maximum number of rendezvous nodes ({max_nodes}) must be greater than or equal to the minimum number of rendezvous "
                f"nodes ({min_nodes})."
            )
        self.backend, self.endpoint, self.run_id = backend, endpoint, run_id
        self.min_nodes, self.max_nodes, self.local_addr = min_nodes, max_nodes, local_addr
        self.config = kwargs

    def get(self, key: str, default: Any = None) -> Any:
        """An option's value."""
        return self.config.get(key, default)

    def get_as_bool(self, key: str, default: bool | None = None) -> bool | None:
        """An option that says 1, true, t, yes, y or their contraries. ValueError for others."""
        value = self.get(key, default)
        if value is None or isinstance(value, bool):
            return value
        text = str(value).lower()
        if text in ("1", "true", "t", "yes", "y"):
            return True
        if text in ("0", "false", "f", "no", "n"):
            return False
        raise ValueError(f"The rendezvous configuration option '{key}' does not represent a valid boolean value.")

    def get_as_int(self, key: str, default: int | None = None) -> int | None:
        """An option that is an integer. ValueError for others."""
        value = self.get(key, default)
        if value is None:
            return None
        try:
            return int(value)
        except ValueError:
            raise ValueError(
                f"The rendezvous configuration option '{key}' does not represent a valid integer value."
            ) from None


RendezvousHandlerCreator = Callable[[RendezvousParameters], RendezvousHandler]


class RendezvousHandlerRegistry:
    """Backends by name."""

    def __init__(self):
        self._creators: dict[str, RendezvousHandlerCreator] = {}

    def register(self, backend: str, creator: RendezvousHandlerCreator) -> None:
        """``creator(parameters)`` makes handlers of this backend. ValueError for a name that has another."""
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        known = self._creators.setdefault(backend, creator)
        if known != creator:
            raise ValueError(
                f"The rendezvous backend '{backend}' cannot be registered with '{creator}' as it is already registered with '{known}'."
            )

    def create_handler(self, params: RendezvousParameters) -> RendezvousHandler:
        """The handler of ``params.backend``. ValueError for an unknown one, RuntimeError for a handler of another backend."""
        if params.backend not in self._creators:
            raise ValueError(
                f"The rendezvous backend '{params.backend}' is not registered. Did you forget to call `register`?"
            )
        handler = self._creators[params.backend](params)
        if handler.get_backend() != params.backend:
            raise RuntimeError(
                f"The rendezvous backend '{handler.get_backend()}' does not match the requested backend '{params.backend}'."
            )
        return handler


rendezvous_handler_registry = RendezvousHandlerRegistry()
