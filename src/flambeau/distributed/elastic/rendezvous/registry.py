"""The handler for given parameters."""

from __future__ import annotations

from . import c10d_rendezvous_backend, static_tcp_rendezvous
from .api import RendezvousHandler, RendezvousParameters
from .api import rendezvous_handler_registry as handler_registry
from .dynamic_rendezvous import create_handler

__all__ = ["get_rendezvous_handler"]


def _c10d(params: RendezvousParameters) -> RendezvousHandler:
    backend, store = c10d_rendezvous_backend.create_backend(params)
    return create_handler(store, backend, params)


def _etcd(params: RendezvousParameters) -> RendezvousHandler:
    raise NotImplementedError(f"the rendezvous backend {params.backend!r} isn't built: c10d needs no other server")


for _name, _creator in {
    "c10d": _c10d,
    "static": static_tcp_rendezvous.create_rdzv_handler,
    "etcd": _etcd,
    "etcd-v2": _etcd,
}.items():
    handler_registry.register(_name, _creator)


def get_rendezvous_handler(params: RendezvousParameters) -> RendezvousHandler:
    """The handler of ``params.backend``. Backends: ``c10d``, ``static``, and what programs add by ``rendezvous_handler_registry.register``."""
    return handler_registry.create_handler(params)
