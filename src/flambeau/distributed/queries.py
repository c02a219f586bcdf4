"""What there is."""

from __future__ import annotations

import os

from . import mpi, world
from .reduce_op import RedOpType

__all__ = [
    "get_default_backend_for_device",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "supports_complex",
]


def is_available() -> bool:
    """Whether process groups can be made: always. Of several processes they need the extra ``distributed``."""
    return True


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    return mpi.available()


def is_gloo_available() -> bool:
    """``backend="gloo"`` is taken for MPI: whether that is there."""
    return mpi.available()


def is_nccl_available() -> bool:
    return False


def is_ucc_available() -> bool:
    return False


def is_xccl_available() -> bool:
    return False


def is_backend_available(backend: str) -> bool:
    name = backend.lower()
    return name in ("fake", "threaded") or (name in ("gloo", "mpi") and mpi.available())


def is_torchelastic_launched() -> bool:
    """Whether a launcher (``flambeau launch``, torchrun) started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_default_backend_for_device(device) -> str:
    """The backend for tensors of a device. ValueError for other devices than the CPU."""
    kind = getattr(device, "type", device)
    if str(kind).split(":")[0] != "cpu":
        raise ValueError(f"Default backend not registered for device : {device}")
    return "gloo"


def config_of(group=None) -> dict:
    """Name, description, backend, size and ranks of a group."""
    pg = world.of(group)
    return {
        "pg_name": pg.group_name,
        "pg_desc": pg.group_desc,
        "backend_config": world.get_backend_config(pg),
        "pg_size": pg.size(),
        "ranks": list(pg._ranks),
    }


def supports_complex(reduce_op) -> bool:
    """Whether complex tensors can be reduced so."""
    return getattr(reduce_op, "op", reduce_op) in (RedOpType.SUM, RedOpType.AVG, RedOpType.PREMUL_SUM)
