"""``torch.Stream`` and ``torch.Event`` of any device: those of torch.cuda where there is one. The CPU has no streams: its work is done when a call
returns."""

from __future__ import annotations

import importlib

from ..base import accelerator
from ..base.device import Device, as_device
from ..base.public import public_in

__all__ = ["Event", "Stream"]


def _cuda(name: str):
    return getattr(importlib.import_module("flambeau.compat.cuda_device"), name)


def _device(device) -> Device:
    if device is not None:
        kind = str(device).partition(":")[0]
        if kind == "cuda" and not accelerator.count():
            raise RuntimeError(f"PyTorch is not linked with support for {kind} devices")
        return as_device(device)
    return as_device("cuda") if accelerator.count() else Device("cpu")


class _OfAnyDevice(type):
    def __instancecheck__(cls, instance):
        return (
            type.__instancecheck__(cls, instance)
            or bool(accelerator.count())
            and isinstance(instance, _cuda(cls.__name__))
        )


@public_in("")
class Stream(metaclass=_OfAnyDevice):
    """Stream(device=None, *, priority=0): a queue of work of a device, the accelerator's for None. RuntimeError for a device that isn't there."""

    def __new__(cls, device=None, *, priority: int = 0):
        device = _device(device)
        if device.type == "cuda":
            return _cuda("Stream")(device, priority)
        made = super().__new__(cls)
        made.device, made.device_index, made.stream_id = device, -1, 0
        return made

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Nothing is under way."""

    def wait_event(self, event) -> None:
        event.synchronize()

    def wait_stream(self, stream) -> None:
        stream.synchronize()

    def record_event(self, event=None):
        return Event(self.device) if event is None else event

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False

    def __repr__(self):
        return (
            f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, stream_id={self.stream_id}"
        )


@public_in("")
class Event(metaclass=_OfAnyDevice):
    """Event(device=None, *, enable_timing=False): a place in a stream's work."""

    def __new__(cls, device=None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        device = _device(device)
        if device.type == "cuda":
            return _cuda("Event")(enable_timing, blocking, interprocess)
        made = super().__new__(cls)
        made.device, made.event_id = device, 0
        return made

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """It has come: nothing is under way."""

    def record(self, stream=None) -> None:
        """Nothing is under way before it."""

    def wait(self, stream=None) -> None:
        """It has come."""

    def __repr__(self):
        return f"torch.Event device_type={self.device.type}, device_index=-1, event_flag=0, event_id={self.event_id}"
