"""Kernels as a device loads them, each once for a device."""

from __future__ import annotations

import struct

from ...base import accelerator
from ...base.device import Device
from ...base.records import slotted
from ..machine import cache

__all__ = ["Loaded", "function_of"]


@slotted
class Loaded:
    """``handle``: what the driver launches."""

    name: str
    handle: int


_loaded: dict[tuple[int, str], Loaded] = {}


def function_of(device: Device, text: str) -> Loaded:
    """The kernel of a text (one function, ``KERNEL``) on a device."""
    index = device.index or 0
    name = cache.kernel_name(text)
    found = _loaded.get((index, name))
    if found is None:
        image = _simulated(name, text.replace("@KERNEL", f"@{name}"))
        handle = accelerator.needed().load(index, image, name)
        found = _loaded[index, name] = Loaded(name, handle)
    return found


def _simulated(name: str, text: str) -> bytes:
    """The address of a function of this process."""
    return struct.pack("P", cache.addresses({name: text})[name])
