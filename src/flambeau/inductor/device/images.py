"""Kernels as a device loads them, each once for a device."""

from __future__ import annotations

import struct

from ...base import accelerator, disk
from ...base.device import Device
from ...base.records import slotted
from ..codegen.targets import NVIDIA, SIMULATED, Target
from ..machine import cache, nvptx

__all__ = ["Loaded", "function_of", "target"]


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
        driver = accelerator.needed()
        make = _simulated if driver.name() == "simulated" else _assembled
        handle = driver.load(index, make(name, text.replace("@KERNEL", f"@{name}"), index), name)
        found = _loaded[index, name] = Loaded(name, handle)
    return found


def target() -> Target:
    """What kernels of this process are written for."""
    return SIMULATED if accelerator.needed().name() == "simulated" else NVIDIA


def _simulated(name: str, text: str, index: int) -> bytes:
    """The address of a function of this process."""
    return struct.pack("P", cache.addresses({name: text})[name])


def _assembled(name: str, text: str, index: int) -> bytes:
    """Code for the device's architecture, which the driver finishes. Kept on disk by architecture."""
    found = accelerator.needed().properties(index)
    architecture = f"sm_{found['major']}{found['minor']}"
    entry = f"{name[1]}/{name}.{architecture}"
    made = disk.read_entry(entry)
    if made is None:
        made = nvptx.assembly(text, architecture).encode() + b"\0"
        disk.write_entry(entry, made)
    return made
