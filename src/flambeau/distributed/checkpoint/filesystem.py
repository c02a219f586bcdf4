"""Files of a checkpoint, as PyTorch writes them: one a rank, in which each item is a ``torch.save`` of its own, and ``.metadata``."""

from __future__ import annotations

import io
import os
import pathlib
import pickle
import uuid
from dataclasses import dataclass

from ...serialization import load, save
from ...serialization.unpickler import Restricted
from ...serialization.writer import Pickler
from . import metadata as records
from .metadata import Metadata, MetadataIndex, StorageMeta

__all__ = ["FileSystemReader", "FileSystemWriter"]

VERSION = "1.0.0"


@dataclass
class _StorageInfo:
    """Where an item lies: file, first byte, bytes."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: tuple | None = None

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if value is not None}


class _MetadataUnpickler(Restricted):
    """Reads nothing but the records of metadata.py."""

    allowed = {
        **{
            f"torch.distributed.checkpoint.metadata.{name}": getattr(records, name)
            for name in (*records.__all__, "_MEM_FORMAT_ENCODING")
        },
        "torch.distributed.checkpoint.filesystem._StorageInfo": _StorageInfo,
        "pathlib.PosixPath": pathlib.PurePosixPath,
        "pathlib._local.PosixPath": pathlib.PurePosixPath,
    }

    def find_class(self, module, name):
        return self.allowed.get(f"{module}.{name}") or super().find_class(module, name)

    def _added(self, fn) -> bool:
        return any(fn is v for v in self.allowed.values()) or super()._added(fn)


class FileSystemWriter:
    """Writes into a folder. ``overwrite=False`` refuses one that has a checkpoint."""

    def __init__(
        self,
        path,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
    ):
        self.path, self.sync_files, self.overwrite = pathlib.Path(path), sync_files, overwrite

    def prepare(self) -> None:
        """Make the folder."""
        if not self.overwrite and (self.path / ".metadata").exists():
            raise RuntimeError(f"Checkpoint already exists and overwrite=False: {self.path}")
        self.path.mkdir(parents=True, exist_ok=True)

    def write(self, rank: int, items: list[tuple[MetadataIndex, object]]) -> dict[MetadataIndex, _StorageInfo]:
        """Write what a rank has: tensors, and other things as bytes. The places by name."""
        places: dict[MetadataIndex, _StorageInfo] = {}
        if not items:
            return places
        name = f"__{rank}_0.distcp"
        with open(self.path / name, "wb") as out:
            for index, value in items:
                start = out.tell()
                held = io.BytesIO()
                save(value, held)
                out.write(held.getbuffer())
                places[index] = _StorageInfo(name, start, out.tell() - start)
            if self.sync_files:
                out.flush()
                os.fsync(out.fileno())
        return places

    def finish(self, metadata: Metadata) -> None:
        """Write ``.metadata``: with it the checkpoint is there."""
        metadata.version = VERSION
        metadata.storage_meta = StorageMeta(str(self.path), str(uuid.uuid4()))
        temporary = self.path / ".metadata.tmp"
        with open(temporary, "wb") as out:
            Pickler(out, pickle.DEFAULT_PROTOCOL).dump(metadata)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(self.path / ".metadata")


class FileSystemReader:
    """Reads a folder that PyTorch or flambeau wrote."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def read_metadata(self) -> Metadata:
        """The records. FileNotFoundError without a checkpoint; UnpicklingError for a file that holds anything else."""
        with open(self.path / ".metadata", "rb") as file:
            return _MetadataUnpickler(file, encoding="utf-8").load()

    def read(self, place: _StorageInfo):
        """One item."""
        if getattr(place, "transform_descriptors", None):
            raise NotImplementedError("checkpoints whose items are transformed (compressed) aren't built")
        file = (self.path / place.relative_path).resolve()
        if self.path.resolve() not in file.parents:
            raise RuntimeError(f"{place.relative_path} is outside of the checkpoint")
        with open(file, "rb") as held:
            held.seek(place.offset)
            return load(io.BytesIO(held.read(place.length)), weights_only=True)
