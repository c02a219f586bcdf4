"""Machines whose number and places are given: ``static``."""

from __future__ import annotations

from .api import RendezvousHandler, RendezvousParameters
from .c10d_rendezvous_backend import create_backend
from .dynamic_rendezvous import DynamicRendezvousHandler, create_handler

__all__ = ["StaticTCPRendezvous", "create_rdzv_handler"]


class StaticTCPRendezvous(DynamicRendezvousHandler):
    """A rendezvous of all machines or none, in which each has the place that it asks for. A machine that leaves is a failure of the job."""

    is_static = True


def create_rdzv_handler(params: RendezvousParameters) -> RendezvousHandler:
    """``endpoint`` is the address of machine 0, which keeps the store. Options: ``rank``, this machine's place; ``timeout``, in seconds, to meet
    (600)."""
    if "rank" not in params.config:
        raise ValueError("rank is absent in RendezvousParameters.Try add --node-rank to the cmd request")
    if not params.endpoint.strip() or ":" not in params.endpoint:
        raise ValueError("endpoint is absent in RendezvousParameters.Try add --master-port and --master-addr")
    rank = params.get_as_int("rank")
    assert rank is not None
    if not 0 <= rank < params.max_nodes:
        raise ValueError(f"--node-rank {rank} isn't one of {params.max_nodes} machines")
    if params.min_nodes != params.max_nodes:
        raise ValueError("a static rendezvous needs one number of machines; c10d takes MIN:MAX")
    params.config.setdefault("is_host", rank == 0)
    params.config.setdefault("join_timeout", params.get_as_int("timeout", 600))
    params.config.setdefault("read_timeout", params.get_as_int("join_timeout"))
    backend, store = create_backend(params)
    return create_handler(store, backend, params, kind=StaticTCPRendezvous, place=rank)
