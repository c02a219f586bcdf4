"""Backend: PyTorch's names for libraries that move data, and their meaning here."""

from __future__ import annotations

import warnings

__all__ = ["Backend", "BackendConfig", "chosen"]

_NEED_A_GPU = ("nccl", "ucc", "xccl", "rccl", "hccl")


class Backend(str):
    """A backend's name in lower case. ``gloo`` and ``mpi`` are the engine over MPI, ``fake`` a group whose other ranks don't exist,
    ``threaded`` one of threads."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE, THREADED = (
        "undefined",
        "gloo",
        "nccl",
        "ucc",
        "mpi",
        "xccl",
        "fake",
        "threaded",
    )
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]
    default_device_backend_map = {"cpu": GLOO}

    def __new__(cls, name: str):
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish: {name}")
        return str.__new__(cls, name.lower())

    @classmethod
    def register_backend(cls, name, func, extended_api=False, devices=None):
        """Backends of others are C++ classes of PyTorch's; NotImplementedError."""
        raise NotImplementedError(
            f"Backend.register_backend({name!r}): process groups of other packages can't be plugged in; "
            "an engine (flambeau.distributed.engine.Engine) is what moves data here"
        )


class BackendConfig:
    """The backend for each device type."""

    def __init__(self, backend: str):
        self.device_backend_map = {"cpu": str(backend)}

    def get_device_backend_map(self) -> dict:
        return self.device_backend_map

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())


def chosen(given: str | None) -> Backend:
    """The backend for tensors of the CPU. ValueError for a name that nobody knows, RuntimeError for one that needs a GPU."""
    if given is None or given == Backend.UNDEFINED:
        return Backend("gloo")
    name = given.lower()
    if ":" in name:
        pairs = dict(part.split(":", 1) for part in name.split(","))
        if "cpu" not in pairs:
            raise RuntimeError(f"the backend {given!r} is for other devices: there are tensors of the CPU only")
        name = pairs["cpu"]
    if name in _NEED_A_GPU:
        raise RuntimeError(
            f"Distributed package doesn't have {name.upper()} built in: it is for GPUs. backend='gloo' runs on MPI here"
        )
    if name not in (Backend.GLOO, Backend.MPI, Backend.FAKE, Backend.THREADED):
        raise ValueError(f"Invalid backend: '{given}'")
    return Backend(name)


def warn_of_options(options) -> None:
    if options is not None:
        warnings.warn("pg_options has no meaning here and is ignored", stacklevel=3)
