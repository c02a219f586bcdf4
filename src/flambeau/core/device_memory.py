"""Tensors whose elements lie in the memory of the second device: made, read and moved.

Such a tensor has no array. Its storage owns the device's memory (``storage.device_memory``), and shape, strides and offset say where its elements
are. So nothing that reads the host's memory can take it for a tensor of the CPU.
"""

from __future__ import annotations

import numpy as np

from .. import _C
from ..base import accelerator
from ..base.shapes import is_contiguous
from .layouts import empty_strided
from .tensor import Tensor

__all__ = [
    "EVENT",
    "allocate",
    "bytes_of",
    "contents",
    "elements",
    "elements",
    "extent",
    "in_rows",
    "make",
    "described_at",
    "is_described",
    "key_of",
    "on_device",
    "overwrite",
    "read",
    "resized_on_device",
    "storage_on",
    "upload",
]


EVENT = 7  # csrc/core/events.h: a launch or a copy, from when it is given to the device until the call returns


# While a CUDA graph records: (memory of two words of a generator, its device) of each draw, which a replay writes anew. None otherwise.
recorded_keys: list | None = None


def key_of(driver, device, words) -> object:
    """Two words of the generator of ``device``, which ``words(device)`` gives, in its memory."""
    index = device.index or 0
    if not driver.capturing(index):
        memory = driver.Memory(index, 16)
        memory.write(0, words(device))
        return memory
    # NOTE: memory that is taken on the recording stream would be made fresh by each replay.
    if recorded_keys is None:
        raise NotImplementedError("draws in work that is recorded by another than torch.cuda.CUDAGraph")
    recording, side = driver.current_stream(index), driver.Stream(index)
    driver.set_stream(side)
    try:
        memory = driver.Memory(index, 16)
        side.synchronize()
    finally:
        driver.set_stream(recording)
    memory.used_by_others()
    recorded_keys.append((memory, device))
    return memory


def on_device(t) -> bool:
    """Whether a tensor's elements lie in a device's memory. (A fake tensor only says so.)"""
    return not t._has_data and t._device.type == "cuda" and t._storage.device_memory is not None


def is_described(t) -> bool:
    """Whether a tensor has a shape but elements nowhere (a fake one, or of the device meta), and no trace follows what becomes of it."""
    return not t._has_data and not on_device(t) and getattr(t, "_is_described", not t._keys)


def described_at(t, storage, shape, strides, offset):
    """What is_described, of the class, dtype and device of ``t``, at a place of ``storage``."""
    out = _C.without_data(type(t), tuple(shape), tuple(strides), t._dtype, t._device, offset, storage)
    if t._keys:
        out._payload = t._payload
    return out


def extent(shape, strides) -> int:
    """Elements from the first to the last of a tensor, gaps included."""
    return 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides))


def storage_on(device, nbytes: int):
    """A storage of ``nbytes`` in the memory of ``device``; what it holds is undefined."""
    return _C.device_storage(accelerator.needed().Memory(device.index or 0, nbytes), nbytes)


def make(shape, strides, dtype, device, offset: int, storage, cls=Tensor):
    """A tensor over a storage of a device."""
    return _C.without_data(cls, tuple(shape), tuple(strides), dtype, device, offset, storage)


def allocate(shape, strides, dtype, device):
    """A tensor on ``device`` whose elements are undefined."""
    return make(shape, strides, dtype, device, 0, storage_on(device, extent(shape, strides) * dtype.itemsize))


class _Span:
    """The memory from an array's first element to its last, for ``np.asarray``."""

    def __init__(self, array: np.ndarray, nbytes: int):
        self._array = array
        address = array.__array_interface__["data"][0]
        self.__array_interface__ = {"data": (address, True), "shape": (nbytes,), "typestr": "|u1", "version": 3}


def bytes_of(array: np.ndarray, nbytes: int) -> np.ndarray:
    """The memory of an array without negative strides, gaps included, as uint8."""
    if not nbytes:
        return np.empty(0, np.uint8)
    return array.reshape(-1).view(np.uint8) if array.flags.c_contiguous else np.asarray(_Span(array, nbytes))


def upload(t, device, cls=Tensor):
    """A copy of a tensor of the CPU on ``device``, laid out as it is."""
    out = allocate(t._shape, t._strides, t._dtype, device)
    memory = out._storage.device_memory
    event = _C.event_begin(EVENT, "copy to the device")
    memory.write(0, bytes_of(t._array, memory.nbytes))
    _C.event_end(event)
    return out if cls is Tensor else _C.alias(out, cls)


def read(t) -> np.ndarray:
    """A copy of the elements as an array, laid out as they are."""
    n, item = extent(t._shape, t._strides), t._dtype.itemsize
    if not n:
        return empty_strided(t._shape, t._strides, t._dtype.np)
    held = np.empty(n * item, np.uint8)
    event = _C.event_begin(EVENT, "copy to the host")
    t._storage.device_memory.read(t._offset * item, held)
    _C.event_end(event)
    return np.ndarray(tuple(t._shape), t._dtype.np, held, 0, tuple(s * item for s in t._strides))


def in_rows(t) -> bool:
    """Whether the elements lie in a device's memory, row-major without gaps."""
    return on_device(t) and is_contiguous(t._shape, t._strides)


def elements(t) -> np.ndarray | None:
    """The elements as an array, for code that reads them before an operator runs; None where there are none, or they aren't known yet."""
    return t._array if t._has_data else read(t) if not t._keys and on_device(t) else None


def overwrite(t, values) -> None:
    """Give ``t`` other elements; no version counts it."""
    held = read(t)
    held[...] = values
    t._storage.device_memory.write(t._offset * t._dtype.itemsize, bytes_of(held, held.nbytes and held.base.nbytes))


def contents(storage) -> np.ndarray:
    """A copy of all bytes of a storage of a device."""
    held = np.empty(storage.device_memory.nbytes, np.uint8)
    storage.device_memory.read(0, held)
    return held


def resized_on_device(t, shape, strides, fits: bool):
    """What ``t`` becomes when it is resized: over its own memory where that ``fits``, else over new memory that begins with its contents."""
    if fits:
        return make(shape, strides, t._dtype, t._device, t._offset, t._storage)
    item = t._dtype.itemsize
    out = allocate(shape, strides, t._dtype, t._device)
    kept = max(t._storage.nbytes() - t._offset * item, 0) // item * item
    if kept:
        out._storage.device_memory.copy(0, t._storage.device_memory, t._offset * item, kept)
    return out
