"""The second device: whether there is one, and the native module that drives it (csrc/device/).

``FLAMBEAU_CUDA=simulated`` gives a process one simulated device, ``simulated:N`` so many. Nothing is loaded before a program first names a device.
"""

from __future__ import annotations

import functools
import os

from .errors import OutOfMemoryError

__all__ = ["count", "current_index", "driver", "needed"]


@functools.cache
def driver():
    """The module that drives the device, None where there is no device. ValueError for a setting that means nothing."""
    setting = os.environ.get("FLAMBEAU_CUDA", "")
    if not setting:
        return None
    kind, _, number = setting.partition(":")
    if kind != "simulated" or not (number or "1").isdigit():
        raise ValueError(f"FLAMBEAU_CUDA={setting!r}: expected 'simulated', or 'simulated:N' for N devices")
    from .. import _device

    if not _device.count():
        _device.simulate(int(number or 1))
    _device.configure(OutOfMemoryError)
    return _device


def count() -> int:
    """How many devices there are."""
    found = driver()
    return 0 if found is None else found.count()


def needed():
    """The driver. AssertionError where there is none."""
    found = driver()
    if found is None:
        raise AssertionError("Torch not compiled with CUDA enabled")
    return found


def current_index() -> int:
    """The index of this thread's device."""
    return needed().current_device()
