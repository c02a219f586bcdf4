"""``torch._dynamo.device_interface``: what generated code and libraries ask of a device, by the name of its type.

A library that brings a device registers a :class:`DeviceInterface` of its own. What a device here answers is what its module
(``torch.cpu``, ``torch.cuda``) answers.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from ..base.device import Device
from ..base.dtypes import DType

__all__ = [
    "CpuInterface",
    "CudaInterface",
    "DeviceGuard",
    "DeviceInterface",
    "get_interface_for_device",
    "get_registered_device_interfaces",
    "register_interface_for_device",
]

_QUESTIONS = """
current_device current_stream device_count get_device_properties is_available is_bf16_supported memory_allocated set_device set_stream synchronize
"""
_UNANSWERED = "DeviceInterface.{}: the interface of this device doesn't define it; a subclass has to"


class DeviceInterface:
    """The questions. Each raises NotImplementedError unless a subclass answers it."""

    @staticmethod
    def exchange_device(device: int) -> int:
        """Make ``device`` the current one; the one before."""
        raise NotImplementedError(_UNANSWERED.format("exchange_device"))

    @staticmethod
    def maybe_exchange_device(device: int) -> int:
        """As ``exchange_device``; nothing happens for a number below zero."""
        raise NotImplementedError(_UNANSWERED.format("maybe_exchange_device"))

    @classmethod
    def is_dtype_supported(cls, dtype: DType, including_emulation: bool = False) -> bool:
        """Whether the device computes in ``dtype``."""
        return dtype.name != "bfloat16" or cls.is_bf16_supported(including_emulation)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name in _QUESTIONS.split():
            if not hasattr(cls, name):
                setattr(cls, name, staticmethod(_refusing(name)))


def _refusing(name: str):
    def question(*args, **kwargs):
        raise NotImplementedError(_UNANSWERED.format(name))

    return question


def _answered_by(module: str) -> dict[str, Any]:
    """Methods that ask ``flambeau.<module>``, which is loaded then."""

    def asking(name: str):
        def question(*args, **kwargs):
            return getattr(importlib.import_module(f"flambeau.{module}"), name)(*args, **kwargs)

        return staticmethod(question)

    return {name: asking(name) for name in _QUESTIONS.split()}


def _exchanged(cls, device: int) -> int:
    before = cls.current_device()
    if device >= 0:
        cls.set_device(device)
    return before


CpuInterface = type(
    "CpuInterface",
    (DeviceInterface,),
    {**_answered_by("cpu"), "is_bf16_supported": staticmethod(lambda including_emulation=False: True)},
)
CudaInterface = type(
    "CudaInterface",
    (DeviceInterface,),
    {
        **_answered_by("cuda"),
        "exchange_device": classmethod(_exchanged),
        "maybe_exchange_device": classmethod(lambda cls, device: _exchanged(cls, device) if device >= 0 else -1),
    },
)

device_interfaces: dict[str, type[DeviceInterface]] = {"cpu": CpuInterface, "cuda": CudaInterface}


def register_interface_for_device(device: str | Device, device_interface: type[DeviceInterface]) -> None:
    """The interface of a type of devices."""
    device_interfaces[device.type if isinstance(device, Device) else device] = device_interface


def get_interface_for_device(device: str | Device) -> type[DeviceInterface]:
    """The interface of a type of devices. NotImplementedError where nobody registered one."""
    name = device.type if isinstance(device, Device) else device
    if name not in device_interfaces:
        raise NotImplementedError(f"No interface for device {name}")
    return device_interfaces[name]


def get_registered_device_interfaces() -> Iterable[tuple[str, type[DeviceInterface]]]:
    """(type of devices, its interface) of all that are registered."""
    return device_interfaces.items()


class DeviceGuard:
    """A ``with`` block in which ``index`` is the current device of an interface; nothing happens for None."""

    def __init__(self, device_interface: type[DeviceInterface], index: int | None):
        self.device_interface, self.idx, self.prev_idx = device_interface, index, -1

    def __enter__(self):
        if self.idx is not None:
            self.prev_idx = self.device_interface.exchange_device(self.idx)

    def __exit__(self, *exc):
        if self.idx is not None:
            self.idx = self.device_interface.maybe_exchange_device(self.prev_idx)
        return False
