"""Reading checkpoints: zip archives and the older stream of pickles."""

from __future__ import annotations

import io
import os
import reprlib
import struct
import sys
import tarfile

import numpy as np

from .. import _C
from ..base import accelerator
from ..base.device import CPU, META, Device, as_device
from ..core.storage import Storage, memory, to
from ..core.tensor import Tensor
from ..core.typed_storage import TypedStorage
from .archive import Archive
from .rebuild import StorageType, _rebuild_nested_tensor, _rebuild_sparse_tensor
from .unpickler import Restricted, Trusted
from .writer import MAGIC, PROTOCOL

__all__ = ["Storages", "read"]


def _location(map_location, tag: str) -> Device:
    """The device that a storage saved on ``tag`` goes to. RuntimeError for one that isn't here."""
    if isinstance(map_location, dict):
        tag = map_location.get(tag, tag)
        map_location = None
    if map_location is not None:
        tag = str(Device(map_location))
    kind = str(tag).split(":")[0]
    if kind in ("cpu", "meta"):
        return Device(kind)
    if kind == "cuda" and accelerator.count():
        device = as_device(str(tag))
        if device.index >= accelerator.count():
            raise RuntimeError(
                f"Attempting to deserialize object on CUDA device {device.index} but torch.cuda.device_count() is {accelerator.count()}. "
                "Please use torch.load with map_location to map your storages to an existing device."
            )
        return device
    if kind == "cuda":
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, "
            "please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
        )
    raise RuntimeError(f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {tag})")


def _storage_id(pid) -> tuple[StorageType, str, str, int]:
    if not (isinstance(pid, tuple) and len(pid) == 5 and pid[0] == "storage" and isinstance(pid[1], StorageType)):
        raise RuntimeError(
            f"invalid checkpoint: unknown typename for persistent_load, expected 'storage' but got {reprlib.repr(pid):.60}"
        )
    _, kind, key, location, numel = pid
    if type(key) not in (str, int) or type(location) is not str:
        raise RuntimeError("invalid checkpoint: a storage without a name or a device")
    if type(numel) is not int or numel < 0:
        raise RuntimeError(f"invalid checkpoint: a storage of {reprlib.repr(numel):.40} elements")
    return kind, str(key), location, numel


def _item(kind: StorageType) -> int:
    return 1 if kind.dtype is None else kind.dtype.itemsize


def _seen_as(storage: Storage, kind: StorageType) -> Storage | TypedStorage:
    return storage if kind.dtype is None else TypedStorage(wrap_storage=storage, dtype=kind.dtype)


def _turned(array: np.ndarray, kind: StorageType) -> np.ndarray:
    """The bytes with those of each number in reverse."""
    width = _item(kind) // 2 if kind.dtype is not None and kind.dtype.is_complex else _item(kind)
    return array.reshape(-1, width)[:, ::-1].reshape(-1).copy()


class _Places:
    """Which storages are on which device: what ``map_location`` says."""

    def __init__(self, map_location):
        self.map_location = map_location
        # A device is callable too: as a decorator.
        self.function = map_location if callable(map_location) and not isinstance(map_location, Device) else None

    def device(self, location: str) -> Device:
        """Where a storage goes first; a function may place it elsewhere."""
        return CPU if self.function is not None else _location(self.map_location, location)

    def placed(self, storage: Storage, location: str) -> Storage:
        """A loaded storage on its device. None from a function ``map_location`` leaves it where it was saved."""
        if self.function is None:
            return to(storage, self.device(location))
        made = self.function(storage, location)
        if made is None:
            return to(storage, _location(None, location))
        made = getattr(made, "_untyped_storage", made)
        if not isinstance(made, Storage):
            raise RuntimeError(f"torch.load: map_location gave a {type(made).__name__}, expected a storage or None")
        return made


class Storages:
    """Storages of an archive, each read from ``folder`` when a tensor first needs it."""

    def __init__(self, archive: Archive, map_location=None, folder: str = "data", mmap: bool = False):
        self.archive, self.places, self.folder, self.mmap = archive, _Places(map_location), folder, mmap
        self.swap = False
        if archive.has("byteorder"):
            order = archive.record("byteorder")
            if order not in (b"little", b"big"):
                raise ValueError(f"Unknown endianness type: {order.decode(errors='replace')}")
            self.swap = order.decode() != sys.byteorder
        self.loaded: dict[str, Storage] = {}

    def __call__(self, pid) -> Storage | TypedStorage:
        kind, key, location, numel = _storage_id(pid)
        if key not in self.loaded:
            self.loaded[key] = self._read(kind, key, location, numel)
        return _seen_as(self.loaded[key], kind)

    def _read(self, kind, key, location, numel) -> Storage:
        name, expected = f"{self.folder}/{key}", numel * _item(kind)
        there = self.archive.size(name)
        if there != expected:
            raise RuntimeError(f"storage has wrong byte size: expected {expected} got {there} (record {name})")
        if self.places.device(location) == META:
            return Storage(there, device=META)
        array = self.archive.mapped(name) if self.mmap else self.archive.array(name)
        if self.swap and _item(kind) > 1:
            array = _turned(array, kind)
        return self.places.placed(_C.from_array(array).untyped_storage(), location)


def read(f, map_location, *, weights_only: bool, mmap: bool, **pickle_args):
    """The object in ``f``, a path or a seekable binary file."""
    path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else None
    file = open(path, "rb") if path is not None else f  # noqa: SIM115
    try:
        start = file.tell()
        head = file.read(4)
        file.seek(start)
        if head[:2] == b"PK":
            if mmap and path is None:
                raise ValueError("f must be a string filename in order to use mmap argument")
            return _read_zip(Archive(file, path, False), map_location, weights_only, mmap, pickle_args)
        if mmap:
            raise RuntimeError(
                "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True)`"
            )
        if not head:
            raise EOFError("Ran out of input: the checkpoint is empty")
        if path is not None and head[:1] != b"\x80" and tarfile.is_tarfile(path):
            raise RuntimeError(
                f"{path} is a checkpoint in the legacy tar format of PyTorch 0.1, which flambeau refuses to load; load it once with an old PyTorch "
                "and save it again with torch.save"
            )
        return _read_stream(file, map_location, weights_only, pickle_args)
    finally:
        if path is not None:
            file.close()


def _unpickler(data, weights_only: bool, storage, pickle_args):
    out = (Restricted if weights_only else Trusted)(data, **pickle_args)
    out.storage = storage
    return out


def _read_zip(archive: Archive, map_location, weights_only, mmap, pickle_args):
    with archive:
        if archive.has("constants.pkl"):
            raise RuntimeError(
                "Cannot use `torch.load` with TorchScript archives: this is one, and torch.jit.load reads it"
            )
        data = io.BytesIO(archive.record("data.pkl"))
        return _unpickler(data, weights_only, Storages(archive, map_location, mmap=mmap), pickle_args).load()


class _Stream:
    """Storages of the older format: they follow the pickle, so their memory is made first and filled afterwards."""

    def __init__(self, places: _Places, limit: int):
        self.places, self.limit = places, limit
        self.kinds: dict[str, StorageType] = {}
        self.loaded: dict[str, Storage] = {}  # what is filled
        self.given: dict[str, Storage] = {}  # what tensors get: of another device, or a part of another storage

    def __call__(self, pid) -> Storage | TypedStorage | type:
        if isinstance(pid, tuple) and len(pid) == 4 and pid[0] == "module" and isinstance(pid[1], type):
            return pid[1]  # a class, with the text of its source
        view = None
        if isinstance(pid, tuple) and len(pid) == 6 and pid[0] == "storage":
            pid, view = pid[:5], pid[5]
        kind, key, location, numel = _storage_id(pid)
        if key not in self.loaded:
            nbytes = numel * _item(kind)
            self.limit -= nbytes
            if self.limit < 0:
                raise RuntimeError(f"invalid checkpoint: a storage of {nbytes} bytes in a file that is smaller")
            self.kinds[key] = kind
            self.loaded[key] = _C.from_array(np.zeros(nbytes, np.uint8)).untyped_storage()
            self.given[key] = self.places.placed(self.loaded[key], location)
        return _seen_as(self.given[key] if view is None else self._part(self.given[key], kind, view), kind)

    def _part(self, root: Storage, kind: StorageType, view) -> Storage:
        """A part of a storage, by the key, offset and length of a view (files before PyTorch 0.4)."""
        if not (isinstance(view, tuple) and len(view) == 3 and all(type(n) is int and n >= 0 for n in view[1:])):
            raise RuntimeError(f"invalid checkpoint: a view of a storage by {reprlib.repr(view):.60}")
        key, offset, count = str(view[0]), view[1] * _item(kind), view[2] * _item(kind)
        if offset + count > root.nbytes():
            raise RuntimeError(f"invalid checkpoint: a view of {count} bytes at {offset} of {root.nbytes()}")
        if key not in self.given:
            self.given[key] = root[offset : offset + count]
        return self.given[key]


def _read_stream(file, map_location, weights_only, pickle_args):
    def part(instead=None):
        unpickler = _unpickler(file, weights_only, storages, pickle_args)
        unpickler.instead = instead or {}
        return unpickler.load()

    here = file.tell()
    storages = _Stream(_Places(map_location), file.seek(0, os.SEEK_END) - here)
    file.seek(here)
    if part() != MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    protocol = part()
    if protocol != PROTOCOL:
        raise RuntimeError(f"Invalid protocol version: {reprlib.repr(protocol)}")
    info = part()
    swap = isinstance(info, dict) and info.get("little_endian", True) != (sys.byteorder == "little")
    start = file.tell()
    later = _Later()
    result = part({_rebuild_sparse_tensor: later, _rebuild_nested_tensor: later})
    for key in part():
        _fill(file, storages, str(key), swap)
    if later.asked:
        file.seek(start)
        result = part()
    return result


class _Later:
    """In the place of makers of sparse and nested tensors while storages are still empty: indices and sizes have to be there first."""

    asked = False

    def __call__(self, *parts):
        self.asked = True
        return Tensor()


def _fill(file, storages: _Stream, key: str, swap: bool) -> None:
    stored, kind = storages.loaded.get(key), storages.kinds.get(key)
    if stored is None:
        raise RuntimeError(f"invalid checkpoint: storage {key!r:.40} that no tensor refers to")
    nbytes, count = stored.nbytes(), file.read(8)
    if len(count) != 8 or struct.unpack("<q", count)[0] * _item(kind) != nbytes:
        raise RuntimeError(f"storage has wrong byte size: expected {nbytes} (storage {key})")
    data = file.read(nbytes)
    if len(data) != nbytes:
        raise EOFError(f"unexpected EOF, expected {nbytes - len(data)} more bytes. The file might be corrupted.")
    array = np.frombuffer(data, np.uint8)
    memory(stored)[:] = _turned(array, kind) if swap and _item(kind) > 1 else array
    if storages.given[key].device_memory is not None:
        storages.given[key].copy_(stored)
