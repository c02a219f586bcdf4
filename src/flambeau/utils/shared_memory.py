"""Tensors in memory that other processes can map: files in /dev/shm, one for a storage.

A tensor that is pickled for another process has its storage moved there first, as in PyTorch, so both sides see one memory. The process that made a
file removes it when its storage is gone; a batch of a DataLoader is handed over and removed by who receives it.
"""

from __future__ import annotations

import atexit
import mmap
import os
import secrets
import tempfile
import weakref
from multiprocessing.reduction import ForkingPickler

import numpy as np

from .. import _C
from ..base.dtypes import DType
from ..core import storage as _storage  # noqa: F401  (methods of storages)
from ..core.tensor import Tensor
from ..modules.parameter import Parameter

__all__ = ["handing_over", "is_shared", "remove", "share_memory_"]

_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
_mine: set[str] = set()
_prefix: list[
    str
] = []  # not empty while a worker hands its batches over: names begin with it, the receiver removes them


def _allocate(nbytes: int) -> tuple[str, np.ndarray]:
    """(path, bytes) of new shared memory. OSError where there is no room."""
    handed = bool(_prefix)
    name = os.path.join(_FOLDER, f"{_prefix[-1] if handed else f'flambeau-{os.getpid()}'}-{secrets.token_hex(6)}")
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        if nbytes:
            os.posix_fallocate(fd, 0, nbytes)  # so that a full /dev/shm is an error here and not a signal later
        memory = mmap.mmap(fd, max(nbytes, 1)) if nbytes else bytearray()
    except BaseException:
        os.unlink(name)
        raise
    finally:
        os.close(fd)
    if not handed:
        _mine.add(name)
    return name, np.frombuffer(memory, np.uint8, nbytes)


def _attach(name: str, nbytes: int, take: bool) -> np.ndarray:
    fd = os.open(name, os.O_RDWR)
    try:
        memory = mmap.mmap(fd, nbytes) if nbytes else bytearray()
    finally:
        os.close(fd)
    if take:
        os.unlink(name)
    return np.frombuffer(memory, np.uint8, nbytes)


def _forget(name: str, pid: int) -> None:
    if os.getpid() == pid and name in _mine:
        _mine.discard(name)
        remove(name)


def remove(name: str) -> None:
    try:
        os.unlink(name)
    except FileNotFoundError:
        return


@atexit.register
def _at_exit() -> None:
    for name in list(_mine):
        remove(name)


class handing_over:  # noqa: N801
    """In the block, tensors that are pickled are handed over: their files are removed by who receives them."""

    def __init__(self, prefix: str):
        self.prefix = prefix

    def __enter__(self):
        _prefix.append(self.prefix)

    def __exit__(self, *exc):
        _prefix.pop()


def is_shared(tensor) -> bool:
    """Whether the tensor's memory can be mapped by other processes."""
    return tensor._storage.is_shared()


def share_memory_(self):
    """Move the storage to shared memory, in place for this tensor (other views of it keep the old memory). Returns the tensor."""
    _move(self)
    return self


def _move(t):
    """(path, nbytes, offset in elements) of the tensor's shared memory."""
    storage = t._storage
    shared = storage.__dict__.get("_shared")
    if shared is None or not os.path.exists(shared[0]):
        array = t._array
        if array is None:
            raise RuntimeError(f"a {type(t).__name__} without data can't be shared between processes")
        owner = storage.owner
        whole = owner is not None and owner.flags.c_contiguous and owner.nbytes <= 2 * array.nbytes + 4096
        source = owner.reshape(-1).view(np.uint8) if whole else np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        start = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0] if whole else 0
        strides = (
            array.strides
            if whole
            else np.empty(array.shape, array.dtype).strides
            if array.size < 1
            else np.ascontiguousarray(array).strides
        )
        name, memory = _allocate(source.nbytes)
        memory[...] = source
        t._array = np.ndarray(array.shape, array.dtype, memory, start, strides)
        made = _C.from_array(memory)
        t._storage = storage = made._storage
        storage.__dict__["_shared"] = shared = (name, memory.nbytes, bool(_prefix))
        if not _prefix:
            weakref.finalize(storage, _forget, name, os.getpid())
    return shared


def _rebuild(cls, shared, dtype: DType, offset, shape, strides, requires_grad):
    name, nbytes, take = shared
    memory = _opened.get(name)
    if memory is None:
        array = _attach(name, nbytes, take)
        base = _C.from_array(array)
        base._storage.__dict__["_shared"] = shared if not take else None
        memory = base._storage
        _opened[name] = memory
    item = dtype.itemsize
    array = np.ndarray(shape, dtype.np, memory.owner, offset * item, tuple(s * item for s in strides))
    out = _C.from_array(array, cls) if cls is not Parameter else Parameter(_C.from_array(array), requires_grad)
    out._storage = memory
    if requires_grad and cls is not Parameter:
        out.requires_grad_(True)
    return out


_opened: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # storages of this process by path


def _reduce(t):
    if t._array is None or t._grad_fn is not None:
        if t._grad_fn is not None:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
                "boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it on the queue)."
            )
        return t.__reduce_ex__(2)
    _move(t)
    item = t.dtype.itemsize
    owner = t._storage.owner
    offset = (
        (t._array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]) // item if t.numel() else 0
    )
    strides = tuple(s // item for s in t._array.strides)
    return _rebuild, (
        type(t),
        t._storage.__dict__["_shared"],
        t.dtype,
        offset,
        tuple(t.shape),
        strides,
        t.requires_grad,
    )


for _cls in (Tensor, Parameter):
    ForkingPickler.register(_cls, _reduce)
Tensor.share_memory_ = share_memory_
Tensor.is_shared = is_shared
