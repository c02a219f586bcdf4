"""Storages in memory that other processes can map: anonymous files, which have no name and end with the last process that has them.

:func:`share` moves a storage there in place, with every tensor over it. core/sending.py sends the file's descriptor to another process, which
maps it (:func:`attach`). A storage that arrives twice is mapped once.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import weakref

import numpy as np

from .. import _C
from . import storage as storages
from .overrides import wrap_function
from .storage import Storage
from .tensor import Tensor, strided

__all__ = ["attach", "descriptor_of", "share", "share_memory_"]

_files: weakref.WeakKeyDictionary[Storage, int] = weakref.WeakKeyDictionary()  # descriptors of what is shared
_known: weakref.WeakValueDictionary[tuple[int, int], Storage] = weakref.WeakValueDictionary()  # by (device, inode)


def _enter(storage: Storage, descriptor: int) -> None:
    found = os.fstat(descriptor)
    _files[storage] = descriptor
    _known[found.st_dev, found.st_ino] = storage
    weakref.finalize(storage, os.close, descriptor)


def _map(descriptor: int, nbytes: int) -> np.ndarray:
    return _C.map_shared(descriptor, nbytes) if nbytes else np.empty(0, np.uint8)


def _allocate(nbytes: int) -> tuple[int, np.ndarray]:
    """(descriptor, bytes) of new shared memory. RuntimeError where there is no room."""
    try:
        descriptor = os.memfd_create("flambeau", os.MFD_CLOEXEC)
        try:
            if nbytes:
                os.posix_fallocate(descriptor, 0, nbytes)  # no room is an error here and not a signal later
            return descriptor, _map(descriptor, nbytes)
        except BaseException:
            os.close(descriptor)
            raise
    except OSError as error:
        raise RuntimeError(f"unable to allocate {nbytes} bytes of shared memory: {error}") from None


def _tensors(storage: Storage) -> tuple[list, list]:
    """The storages of this memory (those that ``.data`` made among them) and the tensors over it. Looks at all of the heap."""
    counters = [storage, *(o for o in gc.get_referrers(storage) if type(o) is Storage)]
    return counters, [o for o in gc.get_referrers(*counters) if isinstance(o, _C.TensorBase) and o._array is not None]


def _move(storage: Storage, counters, tensors) -> None:
    old = storages.memory(storage)
    low = old.__array_interface__["data"][0]
    descriptor, new = _allocate(old.nbytes)
    new[:] = old
    for t in tensors:
        array = t._array
        at = array.__array_interface__["data"][0] - low if array.size else 0
        _C.relocate(t, np.ndarray(array.shape, array.dtype, new, at, array.strides))
    for counter in counters:
        counter._move(new)
    _enter(storage, descriptor)
    importlib.import_module("flambeau.core.sending")  # from now on Python's multiprocessing must not copy it


def descriptor_of(storage: Storage) -> int | None:
    """The file descriptor of a storage in shared memory, None elsewhere."""
    return _files.get(storage)


def attach(descriptor: int, nbytes: int) -> Storage:
    """The storage of a received file, whose descriptor it takes over. RuntimeError when the file is smaller."""
    try:
        found = os.fstat(descriptor)
        known = _known.get((found.st_dev, found.st_ino))
        if known is None:
            if found.st_size < nbytes:
                raise RuntimeError(f"shared memory of {found.st_size} bytes, expected {nbytes}")
            made = _C.from_array(_map(descriptor, nbytes))._storage
            _enter(made, descriptor)
            return made
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return known


def share(storage: Storage) -> Storage:
    """Move a storage to shared memory, and every tensor over it. RuntimeError without data or without room; nothing has changed then."""
    if storage not in _files:
        if storage.owner is None:
            raise RuntimeError("_share_fd_: only available on CPU: the storage has no data")
        _move(storage, *_tensors(storage))
    return storage


def _references(t: Tensor) -> int:
    storage = t._storage
    return sys.getrefcount(storage)


_ALONE = _references(_C.from_array(np.empty(1)))  # of a storage that one tensor has


def share_memory_(self):
    """Move the memory to where other processes can map it, for all tensors over it. Returns the tensor. RuntimeError without data."""
    if self._array is None:
        plain = self._plain()
        if self.layout is not strided:
            raise NotImplementedError("Cannot access storage of SparseTensorImpl")
        if plain is None:
            raise RuntimeError(
                f"_share_fd_: only available on CPU: a {type(self).__name__} without data can't be shared"
            )
        share_memory_(plain)
    elif self._counter is self._storage and _references(self) <= _ALONE and self._storage not in _files:
        _move(self._storage, [self._storage], [self])
    else:
        share(self._storage)
    return self


def _share_storage(self):
    """Move the memory to where other processes can map it, for all tensors over it. Returns the storage. RuntimeError without data."""
    return share(self)


def _is_shared(self) -> bool:
    """Whether other processes can map this memory."""
    return self in _files


def is_shared(self) -> bool:
    """Whether other processes can map the memory."""
    return self.untyped_storage() in _files


Storage.share_memory_, Storage.is_shared = _share_storage, _is_shared
Tensor.share_memory_, Tensor.is_shared = wrap_function(share_memory_), wrap_function(is_shared)
