"""``torch.cpu``: the device that is always there, and the counters of its memory under the names that ``torch.cuda`` gave them.

Blocks of 32 KiB and more count; smaller ones are malloc's. A block that is freed is kept for the next request of its size, within a limit.
"""

from .. import _C

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_memory_cache_limit",
    "synchronize",
]


def is_available() -> bool:
    """True: the CPU is always there."""
    return True


def device_count() -> int:
    """1: all cores are one device."""
    return 1


def current_device() -> str:
    """The name of the one device: "cpu"."""
    return "cpu"


def synchronize(device=None) -> None:
    """Nothing to wait for: calls return when their result is there."""


def memory_stats(device=None) -> dict[str, int]:
    """Bytes: ``in_use`` now, its ``peak``, ``kept`` for later, ``released`` to the system so far. Counts: ``blocks`` in use, ``hits`` (requests met
    from kept memory), ``misses`` (those that asked the system)."""
    return _C.memory_counters(False)


def memory_allocated(device=None) -> int:
    """Bytes in use by arrays and running graphs."""
    return _C.memory_counters(False)["in_use"]


def max_memory_allocated(device=None) -> int:
    """The most bytes in use since the start, or since :func:`reset_peak_memory_stats`."""
    return _C.memory_counters(False)["peak"]


def memory_reserved(device=None) -> int:
    """Bytes held from the system: in use and kept."""
    counters = _C.memory_counters(False)
    return counters["in_use"] + counters["kept"]


def reset_peak_memory_stats(device=None) -> None:
    _C.memory_counters(True)


def empty_cache() -> None:
    """Give the memory that is kept for later back to the system."""
    _C.memory_release()


def set_memory_cache_limit(nbytes: int) -> int:
    """Keep at most ``nbytes`` of free memory for later (0: none); the limit before. It starts at a quarter of the memory the process may have."""
    return _C.memory_limit(nbytes)


def __getattr__(name):
    from .namespaces import lookup

    return lookup("cpu", name)
