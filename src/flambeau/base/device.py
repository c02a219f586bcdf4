"""Devices. ``cpu`` computes with NumPy, ``cuda`` where accelerator.py finds one, ``meta`` only with shapes; a FakeTensor may claim any."""

from __future__ import annotations

import functools
import operator
import re
import threading

from .. import _C
from . import accelerator
from .public import public_in

_KINDS = ("cpu", "cuda", "xpu", "mps", "meta")
_NUMBER = re.compile("0|[1-9][0-9]*")
_LARGEST = 2**31 - 1


def _checked_index(index) -> int:
    """TypeError for a device's number that is none, RuntimeError for one that no device has."""
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise TypeError(f"device(): argument 'index' (position 2) must be int, not {type(index).__name__}")
    index = operator.index(index)
    if index < 0:
        raise RuntimeError("Device index must not be negative")
    if index > _LARGEST:
        raise RuntimeError(f"Device index is too large: {index}")
    return index


@public_in("", "device")
class Device(_C.DeviceBase):
    """``device("cuda:1")``, ``device("cuda", 1)``: a kind and an optional index. Equal by value.

    In a ``with`` block factories that name no device use it.
    """

    __slots__ = ("type", "index")

    def __init__(self, type, index=None):
        if isinstance(type, Device):
            type, index = type.type, type.index
        elif isinstance(type, int) and not isinstance(type, bool):
            if not -(1 << 63) <= type < 1 << 63:
                raise ValueError("Overflow when unpacking long long")
            if type < 0:
                raise RuntimeError("Device index must not be negative")
            if accelerator.driver() is None:
                raise RuntimeError("Cannot access accelerator device when none is available.")
            type, index = "cuda", type
        elif isinstance(type, str) and ":" in type:
            kind, _, number = type.partition(":")
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            if not _NUMBER.fullmatch(number):
                raise RuntimeError(f"Invalid device string: '{type}'")
            if int(number) > _LARGEST:
                raise RuntimeError(f"Could not parse device index '{number}' in device string '{type}'")
            type, index = kind, int(number)
        elif type == "":
            raise RuntimeError("Device string must not be empty")
        if not isinstance(type, str):
            raise TypeError(f"device() expected a string or a device, got {type.__class__.__name__}")
        if type not in _KINDS:
            raise RuntimeError(f"Expected one of {', '.join(_KINDS)} device type at start of device string: {type}")
        if index is not None:
            index = _checked_index(index)
        object.__setattr__(self, "type", type)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name, value):
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __eq__(self, other):
        return isinstance(other, Device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __repr__(self):
        return (
            f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self):
        return (Device, (self.type, self.index))

    def __call__(self, fn):
        """As a decorator: ``fn`` with this device as the default."""

        @functools.wraps(fn)
        def wrapped(*args, **kwargs):
            with self:
                return fn(*args, **kwargs)

        return wrapped


CPU = Device("cpu")
META = Device("meta")


class _Default(threading.local):
    guard = None  # what set_default() entered in this thread


_default = _Default()


def current_device() -> Device:
    """Device of factories that name none."""
    pushed = _C.innermost("devices")
    return as_device(pushed) if pushed else CPU


def set_default(device: Device) -> None:
    """What this thread's factories use outside of every block."""
    if _default.guard is not None:
        guard, _default.guard = _default.guard, None
        guard.__exit__(None, None, None)
    if device != CPU:
        _default.guard = _C.Guard(push="devices", value=device)
        _default.guard.__enter__()


def as_device(value) -> Device:
    """A Device from a Device, a string or None (cpu). A second device that is named without a number is this thread's current one."""
    if value is None:
        return CPU
    device = value if isinstance(value, Device) else Device(value)
    if device.index is None and device.type == "cuda" and accelerator.driver() is not None:
        return Device("cuda", accelerator.current_index())
    return device
