"""Device tensors and other libraries: DLPack's capsules, and objects with ``__cuda_array_interface__``. Both share the memory."""

from __future__ import annotations

import numpy as np

from .. import _C
from ..base import accelerator, dtypes
from ..base.device import Device
from ..base.dtypes import DType
from . import device_memory

__all__ = ["capsule_of", "from_capsule", "from_interface"]

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # DLPack's, by NumPy's kinds
_BFLOAT = 4
_KINDS = {code: kind for kind, code in _CODES.items()}


def _described(dtype: DType) -> tuple[int, int]:
    if dtype is dtypes.bfloat16:
        return _BFLOAT, 16
    if dtype.np.kind not in _CODES:
        raise BufferError(f"DLPack has no {dtype}")
    return _CODES[dtype.np.kind], dtype.itemsize * 8


def _dtype(code: int, bits: int) -> DType:
    if (code, bits) == (_BFLOAT, 16):
        return dtypes.bfloat16
    if code not in _KINDS:
        raise BufferError(f"tensors have no elements of DLPack's code {code}")
    return dtypes.from_numpy(np.dtype("?" if _KINDS[code] == "b" else f"{_KINDS[code]}{bits // 8}"))


def capsule_of(t, stream=-1):
    """A DLPack capsule of a device tensor. ``stream``: whose work may use it at once; for -1 the consumer waits itself, else this does."""
    driver, index = accelerator.needed(), t._device.index or 0
    if stream != -1:
        driver.synchronize(index)
    at = t._offset * t._dtype.itemsize
    return driver.export(t._storage.device_memory, at, tuple(t._shape), tuple(t._strides), *_described(t._dtype))


def from_capsule(capsule):
    """A tensor over a capsule's memory, which is taken; None, and it isn't, where the memory is no CUDA device's."""
    driver = accelerator.needed()
    found = driver.imported(capsule)
    if found is None:
        return None
    memory, at, shape, strides, code, bits = found
    driver.synchronize(memory.device)
    return _over(memory, at, shape, strides, _dtype(code, bits))


def from_interface(obj):
    """A tensor over the memory of an object with ``__cuda_array_interface__``, which is kept. ValueError for a mask or negative strides."""
    told, driver = obj.__cuda_array_interface__, accelerator.needed()
    shape, dtype = tuple(told["shape"]), dtypes.from_numpy(np.dtype(told["typestr"]))
    item = dtype.itemsize
    steps = told.get("strides") or [item * int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
    if told.get("mask") is not None or any(s < 0 or s % item for s in steps):
        raise ValueError("__cuda_array_interface__ with a mask, or strides that no tensor has")
    strides = tuple(s // item for s in steps)
    index = driver.current_device()
    nbytes = device_memory.extent(shape, strides) * item
    memory = driver.borrow(index, told["data"][0] or 0, nbytes, obj)
    driver.synchronize(index)
    return _over(memory, 0, shape, strides, dtype)


def _over(memory, at: int, shape, strides, dtype: DType):
    storage = _C.device_storage(memory, memory.nbytes)
    return device_memory.make(shape, strides, dtype, Device("cuda", memory.device), at // dtype.itemsize, storage)
