"""Methods of the storage (the native class ``_C.UntypedStorage``) that are written in Python."""

from __future__ import annotations

import numpy as np

from .. import _C
from ..base.device import CPU, META

__all__ = ["Storage"]

Storage = _C.UntypedStorage


def _bytes(self) -> np.ndarray:
    """The memory as uint8, shared."""
    if self.owner is None:
        raise RuntimeError("a storage without data (meta, fake, wrapper) has no bytes")
    return self.owner.reshape(-1).view(np.uint8)


def from_file(cls, filename, shared: bool = False, nbytes: int = 0):
    """The file's bytes as memory, mapped: written back when ``shared`` (the file is made or grown to ``nbytes``), else private."""
    if shared:
        with open(filename, "ab") as file:
            if file.tell() < nbytes:
                file.truncate(nbytes)
    memory = np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(nbytes,) if nbytes else None)
    return _C.from_array(memory.view(np.ndarray)).untyped_storage()


def getitem(self, index):
    """A byte as an int; a slice as a storage over the same memory."""
    if isinstance(index, slice):
        if index.step not in (None, 1):
            raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")
        # Through a buffer: NumPy's owner of a slice would be the whole memory.
        return _C.from_array(np.frombuffer(memoryview(_bytes(self)[index]), np.uint8)).untyped_storage()
    return int(_bytes(self)[index])


def setitem(self, index, value) -> None:
    """Write bytes."""
    _bytes(self)[index] = value
    self._note_written()


def copy_(self, source, non_blocking=None):
    """Take over the bytes of another storage of the same size."""
    _bytes(self)[:] = _bytes(source.untyped())
    self._note_written()
    return self


def fill_(self, value):
    _bytes(self)[:] = value
    self._note_written()
    return self


def tolist(self) -> list:
    return _bytes(self).tolist()


def clone(self):
    """A copy of the memory."""
    return _C.from_array(_bytes(self).copy()).untyped_storage()


def is_shared(self) -> bool:
    """Whether other processes can map this memory."""
    return self.__dict__.get("_shared") is not None


Storage.device = property(lambda self: META if self.owner is None else CPU)
Storage.is_cuda = property(lambda self: False)
Storage.tolist, Storage.clone, Storage.is_shared = tolist, clone, is_shared
Storage.from_file = classmethod(from_file)
Storage._item, Storage._set_item, Storage.copy_, Storage.fill_ = getitem, setitem, copy_, fill_
Storage.__array__ = lambda self, dtype=None, copy=None: np.asarray(_bytes(self), dtype)
Storage.element_size = lambda self: 1
Storage.untyped = lambda self: self
Storage.is_pinned = lambda self, device=None: False
