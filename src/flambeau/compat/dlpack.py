"""``torch.utils.dlpack`` on NumPy's DLPack."""

from __future__ import annotations

import ctypes
import enum

import numpy as np

from ..base import accelerator
from ..base.device import as_device
from ..base.public import public_in
from ..core.conversion import from_numpy, to
from ..core.device_exchange import from_capsule

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


@public_in("utils.dlpack")
class DLDeviceType(enum.IntEnum):
    """DLPack's numbers of devices."""

    kDLCPU = 1  # noqa: N815
    kDLCUDA = 2  # noqa: N815


def to_dlpack(tensor):
    """A DLPack capsule that shares the tensor's memory."""
    return tensor.__dlpack__()


class _Capsule:
    """A bare capsule, as NumPy wants to be handed it."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **kwargs):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def _writeable(array: np.ndarray) -> np.ndarray:
    """The same memory, to be written to."""
    low, high = np.lib.array_utils.byte_bounds(array)
    memory = (ctypes.c_char * (high - low)).from_address(low)
    memory.owner = array
    begin = array.__array_interface__["data"][0] - low
    return np.ndarray(array.shape, array.dtype, memory, begin, array.strides)


def _on_a_device(ext_tensor):
    """The tensor of an object or a capsule whose memory is a device's, else None."""
    if accelerator.driver() is None:
        return None
    if not hasattr(ext_tensor, "__dlpack__"):
        return from_capsule(ext_tensor)
    kind, _ = ext_tensor.__dlpack_device__()
    # The legacy default stream: the producer of the memory waits for it.
    return from_capsule(ext_tensor.__dlpack__(stream=1)) if kind == DLDeviceType.kDLCUDA else None


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor on the memory of an object with ``__dlpack__``, or of a capsule. ``device``: where the tensor is wanted; ``copy``: True for memory of
    its own, False for BufferError where it would be another one's copy."""
    made = _on_a_device(ext_tensor)
    if made is None:
        bare = not hasattr(ext_tensor, "__dlpack__")
        if bare and type(ext_tensor).__name__ != "PyCapsule":
            raise RuntimeError(
                f"from_dlpack received an invalid capsule: expected an object with __dlpack__ or a capsule, but got {type(ext_tensor).__name__}"
            )
        array = np.from_dlpack(_Capsule(ext_tensor) if bare else ext_tensor)
        # NumPy takes memory for read-only where a capsule can't say. PyTorch writes to it.
        made = from_numpy(_writeable(array) if bare and not array.flags.writeable and array.size else array)
    moved = made if device is None else to(made, as_device(device))
    if copy is False and moved is not made:
        raise BufferError(f"from_dlpack(copy=False): memory of {made.device} can't be shared with {moved.device}")
    return moved.clone() if copy and moved is made else moved
