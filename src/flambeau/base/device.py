"""Devices. ``cpu`` computes with NumPy, ``meta`` only with shapes; a FakeTensor may claim any other."""

from __future__ import annotations

import functools
import threading

from .. import _C

_KINDS = ("cpu", "meta", "cuda", "mps", "xpu")


class Device:
    """``device("cuda:1")``, ``device("cuda", 1)``: a kind and an optional index. Equal by value."""

    __slots__ = ("type", "index")

    def __init__(self, type, index=None):
        if isinstance(type, Device):
            type, index = type.type, type.index
        elif isinstance(type, int):
            type, index = "cuda", type
        elif isinstance(type, str) and ":" in type:
            kind, _, number = type.partition(":")
            if index is not None or not number.isdigit():
                raise RuntimeError(f"Invalid device string: '{type}'")
            type, index = kind, int(number)
        if not isinstance(type, str):
            raise TypeError(f"device() expected a string or a device, got {type.__class__.__name__}")
        if type not in _KINDS:
            raise RuntimeError(f"Expected one of {', '.join(_KINDS)} device type at start of device string: {type}")
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

    def __enter__(self):
        """Factories in the block that name no device use this one."""
        guard = _C.Guard(push="devices", value=self)
        guard.__enter__()
        _entered.guards.append(guard)
        return self

    def __exit__(self, *exc):
        return _entered.guards.pop().__exit__(*exc)

    def __call__(self, fn):
        """As a decorator: ``fn`` with this device as the default."""

        @functools.wraps(fn)
        def wrapped(*args, **kwargs):
            with self:
                return fn(*args, **kwargs)

        return wrapped


CPU = Device("cpu")
META = Device("meta")


class _Entered(threading.local):
    """Guards of the ``with`` blocks of devices that this thread is in."""

    def __init__(self):
        self.guards = []
        self.default = None


_entered = _Entered()


def current_device() -> Device:
    """Device of factories that name none."""
    return _C.innermost("devices") or CPU


def set_default(device: Device) -> None:
    """What this thread's factories use outside of every block."""
    if _entered.default is not None:
        _entered.default.__exit__(None, None, None)
        _entered.default = None
    if device != CPU:
        _entered.default = _C.Guard(push="devices", value=device)
        _entered.default.__enter__()


def as_device(value) -> Device:
    """A Device from a Device, a string or None (cpu)."""
    if value is None:
        return CPU
    return value if isinstance(value, Device) else Device(value)
