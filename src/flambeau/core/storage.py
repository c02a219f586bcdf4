"""Methods of the storage (the native class ``_C.UntypedStorage``) that are written in Python."""

from __future__ import annotations

import pickle

import numpy as np

from .. import _C
from ..base import dtypes
from ..base.device import CPU, META, Device, as_device
from .device_memory import contents, storage_on

__all__ = ["Storage", "memory", "seen", "span", "to"]

Storage = _C.UntypedStorage

_NAME = "torch.UntypedStorage"


def _place(owner: np.ndarray) -> tuple[int, int]:
    """(address, bytes) of the memory that an array lies in, gaps included."""
    low, high = np.lib.array_utils.byte_bounds(owner)
    return low, high - low


class _Memory:
    """A stretch of an array's memory, for ``np.asarray``."""

    def __init__(self, owner: np.ndarray):
        address, nbytes = _place(owner)
        self._owner = owner
        self.__array_interface__ = {
            "data": (address, not owner.flags.writeable),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }


def span(self) -> int:
    """Bytes of the memory, gaps between elements included."""
    owner = self.owner
    return self.nbytes() if owner is None or owner.flags.c_contiguous else _place(owner)[1]


def memory(self) -> np.ndarray:
    """The memory as uint8, shared."""
    owner = self.owner
    if self.device_memory is not None:
        raise RuntimeError(
            f"a storage on device '{self.device}' has no bytes that the host can reach: copy it to the CPU"
        )
    if owner is None:
        raise RuntimeError("a storage without data (meta, fake, wrapper) has no bytes")
    return owner.reshape(-1).view(np.uint8) if owner.flags.c_contiguous else np.asarray(_Memory(owner))


def _make(cls, *args, device=None, allocator=None):
    """``UntypedStorage()``, ``UntypedStorage(bytes)`` or ``UntypedStorage([0, 255])``; ``device`` "cpu", "cuda" or "meta"."""
    if len(args) > 1 or allocator is not None:
        given = ", ".join(type(a).__name__ for a in args)
        raise TypeError(f"{_NAME}() received an invalid combination of arguments - got ({given})")
    size = args[0] if args else 0
    if isinstance(size, int) and not isinstance(size, bool):
        if size < 0:
            raise RuntimeError(f"{_NAME}(): a storage of {size} bytes: the size must not be negative")
        if device is not None and as_device(device).type == "cuda":
            return storage_on(as_device(device), size)
        if device is not None and as_device(device) is not CPU:
            return _C.without_data(_C.TensorBase, (size,), (1,), dtypes.uint8, as_device(device), 0, None)._storage
        try:
            return _C.from_array(np.empty(size, np.uint8))._storage
        except (MemoryError, ValueError) as e:
            raise RuntimeError(f"DefaultCPUAllocator: can't allocate memory: {e}") from None
    if not hasattr(size, "__len__") or not hasattr(size, "__getitem__"):
        raise TypeError(f"{_NAME}(): Expected a sequence type, but got {type(size).__name__}")
    for item in size:
        if not isinstance(item, int):
            raise RuntimeError(
                f"{_NAME}(): tried to construct a storage from a sequence ({type(size).__name__}), but one of the items was of type "
                f"{type(item).__name__} instead of int"
            )
    return _C.from_array(np.array([item & 255 for item in size], np.uint8))._storage


def from_file(cls, filename, shared: bool = False, nbytes: int = 0):
    """The file's bytes as memory, mapped: written back when ``shared`` (the file is made or grown to ``nbytes``), else private."""
    if shared:
        with open(filename, "ab") as file:
            if file.tell() < nbytes:
                file.truncate(nbytes)
    mapped = np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(nbytes,) if nbytes else None)
    return _C.from_array(mapped.view(np.ndarray)).untyped_storage()


def getitem(self, index):
    """A byte as an int; a slice as a storage over the same memory."""
    if isinstance(index, slice):
        if index.step not in (None, 1):
            raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
        # Through a buffer: NumPy's owner of a slice would be the whole memory.
        return _C.from_array(np.frombuffer(memoryview(memory(self)[index]), np.uint8)).untyped_storage()
    return int(seen(self)[index])


def setitem(self, index, value) -> None:
    """Write bytes."""
    if self.device_memory is not None:
        changed = contents(self)
        changed[index] = value
        self.device_memory.write(0, changed)
    else:
        memory(self)[index] = value
    self._note_written()


def copy_(self, source, non_blocking=None):
    """Take over the bytes of another storage of the same size."""
    source = source.untyped()
    here, there = self.device_memory, source.device_memory
    if self.nbytes() != source.nbytes():
        raise RuntimeError(f"a storage of {source.nbytes()} bytes doesn't fit into one of {self.nbytes()}")
    if here is not None and there is not None and here.device == there.device:
        here.copy(0, there, 0, here.nbytes)
    elif here is not None:
        here.write(0, seen(source))
    else:
        memory(self)[:] = seen(source)
    self._note_written()
    return self


def fill_(self, value):
    if self.device_memory is not None:
        self.device_memory.fill(0, self.device_memory.nbytes, value)
    else:
        memory(self)[:] = value
    self._note_written()
    return self


def tolist(self) -> list:
    return seen(self).tolist()


def clone(self):
    """A copy of the memory."""
    if self.device_memory is not None:
        return storage_on(self.device, self.nbytes()).copy_(self)
    return _C.from_array(memory(self).copy()).untyped_storage()


def _from_bytes(data):
    return _C.from_array(np.array(np.frombuffer(data, np.uint8)))._storage


def _on_device(device: Device, data):
    return to(_from_bytes(data), device)


def to(self, device):
    """The storage on a device: itself, or a copy."""
    device = as_device(device)
    if device == self.device:
        return self
    if device.type == "meta" or self.device == META:
        return _make(Storage, self.nbytes(), device=device)
    return _make(Storage, self.nbytes(), device=device).copy_(self)


def seen(self) -> np.ndarray:
    """The bytes, for reading: of a storage on a device a copy."""
    return memory(self) if self.device_memory is None else contents(self)


def _without_data(nbytes: int):
    return _make(Storage, nbytes, device=META)


def reduce_ex(self, protocol):
    """Pickles hold the bytes."""
    if self.device_memory is not None:
        return _on_device, (self.device, contents(self).tobytes())
    if self.owner is None:
        return _without_data, (self.nbytes(),)
    return _from_bytes, (pickle.PickleBuffer(memory(self)) if protocol >= 5 else memory(self).tobytes(),)


def deepcopy(self, memo):
    """A copy of the memory, one for all that refer to it in what is copied."""
    if id(self) not in memo:
        memo[id(self)] = clone(self)
    return memo[id(self)]


def describe(self) -> str:
    values = "" if self.owner is None and self.device_memory is None else "".join(f" {b}\n" for b in tolist(self))
    return f"{values}[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"


def _device(self) -> Device:
    if self.device_memory is not None:
        return Device("cuda", self.device_memory.device)
    return META if self.owner is None else CPU


def resize_(self, size: int) -> None:
    """RuntimeError for another size: the memory is an array's, of which tensors hold views, and neither grows nor is given back under them."""
    if size != self.nbytes():
        raise RuntimeError("Trying to resize storage that is not resizable")


Storage.resize_, Storage.resizable = resize_, lambda self: False
Storage.type = lambda self: "torch.storage.UntypedStorage"
Storage.new = lambda self: _make(Storage, 0, device=self.device)
Storage.is_sparse = Storage.is_sparse_csr = False
Storage.filename = None
Storage.device = property(_device)
Storage.is_cuda = property(lambda self: self.device_memory is not None)
Storage.cpu, Storage.cuda, Storage.to = (
    lambda self: to(self, CPU),
    lambda self, device=None, non_blocking=False: to(self, "cuda" if device is None else device),
    lambda self, device, non_blocking=False: to(self, device),
)
Storage.tolist, Storage.clone, Storage._make = tolist, clone, classmethod(_make)
Storage.__reduce_ex__, Storage.__copy__, Storage.__deepcopy__, Storage.__repr__ = reduce_ex, clone, deepcopy, describe
Storage.from_file = classmethod(from_file)
Storage._item, Storage._set_item, Storage.copy_, Storage.fill_ = getitem, setitem, copy_, fill_
Storage.__array__ = lambda self, dtype=None, copy=None: np.asarray(seen(self), dtype)
Storage._cdata = property(id)  # tells storages apart, as long as they live
Storage.element_size = lambda self: 1
Storage.untyped = lambda self: self
Storage.is_pinned = lambda self, device=None: False
