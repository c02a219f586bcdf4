"""``torch.accelerator``: the CUDA device where there is one, else the answers of ``devices.py``."""

import sys

from ..base import accelerator
from ..base.device import Device
from ..base.nearest import Absent
from . import cuda, namespaces

_NAMES = [name for name in namespaces.parse("accelerator") if name]
# Names of this namespace -> those of torch.cuda.
_OF_CUDA = {
    "current_device_idx": "current_device",
    "current_device_index": "current_device",
    "device_index": "device",
    "get_memory_info": "mem_get_info",
    "set_device_idx": "set_device",
    "set_device_index": "set_device",
    **{
        name: name
        for name in (
            "current_stream device_count empty_cache get_device_capability is_available max_memory_allocated max_memory_reserved memory_allocated "
            "memory_reserved memory_stats reset_accumulated_memory_stats reset_peak_memory_stats set_stream synchronize"
        ).split()
    },
}
__all__ = [name for name in _NAMES if not name.startswith("_")]  # noqa: PLE0604
__path__: list = []


def current_accelerator(check_available: bool = False) -> Device | None:
    """The kind of device that this process has, None without one."""
    return Device("cuda") if accelerator.count() else None


def __getattr__(name):
    if name in _OF_CUDA and accelerator.count():
        return getattr(cuda, _OF_CUDA[name])
    try:
        return namespaces.lookup("accelerator", name)
    except AttributeError:
        here = sys.modules[__name__]
        raise AttributeError(Absent.of_module(here, "torch.accelerator", name), name=name, obj=here) from None


def __dir__():
    return sorted({*globals(), *_NAMES})
