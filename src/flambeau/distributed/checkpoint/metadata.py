"""What a checkpoint says of its contents, in PyTorch's records: ``.metadata`` is a pickle of them under PyTorch's names."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ...base.dtypes import DType, get_default_dtype
from ...base.memory_format import channels_last, contiguous_format, preserve_format
from ...base.shapes import Size
from ...core.tensor import Layout, strided

__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]


@dataclass
class ChunkStorageMetadata:
    """A part of a tensor: where it begins, and its size."""

    offsets: Size
    sizes: Size


class _MEM_FORMAT_ENCODING(Enum):  # noqa: N801
    """The number of a memory format in a file."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = dict(zip(_MEM_FORMAT_ENCODING, (contiguous_format, channels_last, preserve_format)))


@dataclass
class TensorProperties:
    """dtype, and what PyTorch's files hold beside it."""

    dtype: DType = field(default_factory=get_default_dtype)
    layout: Layout = strided
    requires_grad: bool = False
    memory_format: Any = contiguous_format
    pin_memory: bool = False

    def __getstate__(self):
        encoded = next(e for e, f in _FORMATS.items() if f is self.memory_format)
        return self.dtype, self.layout, self.requires_grad, encoded, self.pin_memory

    def __setstate__(self, state):
        self.dtype, self.layout, self.requires_grad, encoded, self.pin_memory = state
        self.memory_format = _FORMATS[encoded]


@dataclass
class TensorStorageMetadata:
    """A tensor: its whole size, and the parts that are stored."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """Something that is no tensor."""


@dataclass
class StorageMeta:
    """Where a checkpoint lies."""

    checkpoint_id: str | os.PathLike | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """Everything about a checkpoint: {name: what is stored}, the paths of the names in nested dictionaries, {MetadataIndex: place in a file}."""

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True, init=False)
class MetadataIndex:
    """Which part of what name."""

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset=None, index: int | None = None):
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        if offset is not None:
            object.__setattr__(self, "offset", Size(offset))
