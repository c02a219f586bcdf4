"""``torch.utils.dlpack`` on NumPy's DLPack."""

from __future__ import annotations

import enum

import numpy as np

from ..base.public import public_in
from ..core.conversion import from_numpy

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


def from_dlpack(ext_tensor):
    """A tensor on the memory of an object with ``__dlpack__``, or of a capsule."""
    if not hasattr(ext_tensor, "__dlpack__"):
        ext_tensor = _Capsule(ext_tensor)
    return from_numpy(np.from_dlpack(ext_tensor))
