"""Reading checkpoints: zip archives and the older stream of pickles."""

from __future__ import annotations

import io
import os
import struct
import sys
import tarfile

import numpy as np

from .. import _C
from ..base.device import Device
from .archive import Archive
from .names import StorageType
from .rebuild import Stored
from .unpickler import Restricted, Trusted

__all__ = ["read"]

_MAGIC = 0x1950A86A20F9469CFC6C


def _location(map_location, tag: str) -> str:
    """The device ("cpu" or "meta") that a storage saved on ``tag`` goes to. RuntimeError for one that isn't here."""
    if callable(map_location):
        return "cpu"
    if isinstance(map_location, dict):
        tag = map_location.get(tag, tag)
        map_location = None
    if map_location is not None:
        tag = Device(map_location).type if not isinstance(map_location, Device) else map_location.type
    kind = str(tag).split(":")[0]
    if kind in ("cpu", "meta"):
        return kind
    if kind == "cuda":
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, "
            "please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
        )
    raise RuntimeError(f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {tag})")


def _storage_id(pid) -> tuple[StorageType, str, str, int]:
    if not (isinstance(pid, tuple) and len(pid) == 5 and pid[0] == "storage" and isinstance(pid[1], StorageType)):
        raise RuntimeError(
            f"invalid checkpoint: unknown typename for persistent_load, expected 'storage' but got {pid!r:.60}"
        )
    _, kind, key, location, numel = pid
    if type(numel) is not int or numel < 0:
        raise RuntimeError(f"invalid checkpoint: a storage of {numel!r:.40} elements")
    return kind, str(key), str(location), numel


def _shared(array: np.ndarray, kind: StorageType) -> Stored:
    return Stored(_C.from_array(array), kind.dtype, array.nbytes)


class _Zip:
    """Storages of an archive, each read when a tensor first needs it."""

    def __init__(self, archive: Archive, map_location, mmap: bool):
        self.archive, self.map_location, self.mmap = archive, map_location, mmap
        self.swap = False
        if archive.has("byteorder"):
            order = archive.record("byteorder")
            if order not in (b"little", b"big"):
                raise ValueError(f"Unknown endianness type: {order.decode(errors='replace')}")
            self.swap = order.decode() != sys.byteorder
        self.loaded: dict[str, Stored] = {}

    def __call__(self, pid) -> Stored:
        kind, key, location, numel = _storage_id(pid)
        known = self.loaded.get(key)
        if known is None:
            known = self.loaded[key] = self._read(kind, key, location, numel)
        elif known.dtype is not kind.dtype:
            known = Stored(known.base, kind.dtype, known.nbytes)
        return known

    def _read(self, kind, key, location, numel) -> Stored:
        item = 1 if kind.dtype is None else kind.dtype.itemsize
        name = f"data/{key}"
        there = self.archive.size(name)
        if there != numel * item:
            raise RuntimeError(f"storage has wrong byte size: expected {numel * item} got {there} (record {name})")
        if _location(self.map_location, location) == "meta":
            return Stored(None, kind.dtype, there)
        array = self.archive.mapped(name) if self.mmap else self.archive.array(name)
        if self.swap and item > 1:
            width = item // 2 if kind.dtype.is_complex else item
            array = array.reshape(-1, width)[:, ::-1].reshape(-1).copy()
        return _shared(array, kind)


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
                "this is a TorchScript archive: it holds code for PyTorch's own interpreter, which flambeau doesn't have"
            )
        data = io.BytesIO(archive.record("data.pkl"))
        return _unpickler(data, weights_only, _Zip(archive, map_location, mmap), pickle_args).load()


class _Stream:
    """Storages of the older format: they follow the pickle, so their memory is made first and filled afterwards."""

    def __init__(self, map_location):
        self.map_location, self.loaded = map_location, {}

    def __call__(self, pid) -> Stored:
        if isinstance(pid, tuple) and len(pid) == 6 and pid[0] == "storage":
            if pid[5] is not None:
                raise RuntimeError(
                    "invalid checkpoint: storages that are views of others (PyTorch before 0.4) can't be loaded"
                )
            pid = pid[:5]
        kind, key, location, numel = _storage_id(pid)
        if key not in self.loaded:
            _location(self.map_location, location)
            item = 1 if kind.dtype is None else kind.dtype.itemsize
            if numel * item > 1 << 40:
                raise RuntimeError(f"invalid checkpoint: a storage of {numel * item} bytes")
            self.loaded[key] = _Lazy(kind, numel * item)
        return self.loaded[key]


class _Lazy(Stored):
    """Memory that is filled after the pickle. It is only made here, so a lie about its size costs address space and no memory."""

    __slots__ = ()

    def __init__(self, kind, nbytes):
        super().__init__(_C.from_array(np.zeros(nbytes, np.uint8)), kind.dtype, nbytes)


def _read_stream(file, map_location, weights_only, pickle_args):
    def part():
        return _unpickler(file, weights_only, storages, pickle_args).load()

    storages = _Stream(map_location)
    if part() != _MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    protocol = part()
    if protocol != 1001:
        raise RuntimeError(f"Invalid protocol version: {protocol}")
    info = part()
    swap = isinstance(info, dict) and info.get("little_endian", True) != (sys.byteorder == "little")
    result = part()
    for key in part():
        stored = storages.loaded.get(str(key))
        if stored is None:
            raise RuntimeError(f"invalid checkpoint: storage {key!r:.40} that no tensor refers to")
        item = 1 if stored.dtype is None else stored.dtype.itemsize
        count = file.read(8)
        if len(count) != 8 or struct.unpack("<q", count)[0] * item != stored.nbytes:
            raise RuntimeError(f"storage has wrong byte size: expected {stored.nbytes} (storage {key})")
        data = file.read(stored.nbytes)
        if len(data) != stored.nbytes:
            raise EOFError(
                f"unexpected EOF, expected {stored.nbytes - len(data)} more bytes. The file might be corrupted."
            )
        array = np.frombuffer(data, np.uint8)
        if swap and item > 1:
            array = array.reshape(-1, item)[:, ::-1].reshape(-1)
        stored.base._array[...] = array
    return result
