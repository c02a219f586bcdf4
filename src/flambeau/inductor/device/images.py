"""Kernels as a device loads them, each once for a device."""

from __future__ import annotations

import struct

from ...base import accelerator, disk
from ...base.device import Device
from ...base.records import slotted
from ..codegen.targets import NVIDIA, SIMULATED, Target
from ..machine import cache, nvjitlink, nvptx

__all__ = ["Loaded", "function_of", "kept", "target"]


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
        text = text.replace("@KERNEL", f"@{name}")
        handle = (
            _simulated_handle(index, name, text) if driver.name() == "simulated" else _nvidia_handle(index, name, text)
        )
        found = _loaded[index, name] = Loaded(name, handle)
    return found


def _simulated_handle(index: int, name: str, text: str) -> int:
    return accelerator.needed().load(index, _simulated(name, text, index), name)


def _nvidia_handle(index: int, name: str, text: str) -> int:
    """nvJitLink's code, where it is installed and the driver takes it; else the driver assembles."""
    driver, assembly = accelerator.needed(), _assembled(name, text, index)
    if nvjitlink.usable():
        architecture = nvptx.architecture_of(driver.properties(index))
        try:
            image = kept(f"{name[1]}/{name}.{architecture}.cubin", lambda: nvjitlink.linked(assembly, architecture))
            return driver.load(index, image, name)
        except RuntimeError as e:  # of another major version than the driver
            nvjitlink.refuse(str(e))
    return driver.load(index, assembly, name)


def target() -> Target:
    """What kernels of this process are written for."""
    return SIMULATED if accelerator.needed().name() == "simulated" else NVIDIA


def _simulated(name: str, text: str, index: int) -> bytes:
    """The address of a function of this process."""
    return struct.pack("P", cache.addresses({name: text})[name])


def _assembled(name: str, text: str, index: int) -> bytes:
    """Code for the device's architecture: PTX, kept on disk."""
    architecture = nvptx.architecture_of(accelerator.needed().properties(index))
    return kept(f"{name[1]}/{name}.{architecture}", lambda: nvptx.assembly(text, architecture).encode() + b"\0")


def kept(entry: str, make) -> bytes:
    """An entry of the cache on disk."""
    made = disk.read_entry(entry)
    if made is None:
        made = make()
        disk.write_entry(entry, made)
    return made
