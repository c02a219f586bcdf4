"""``torch.distributed.checkpoint``: state dicts that many ranks save together, and any number of ranks loads. Files are PyTorch's."""

from . import state_dict
from ._save_load import DefaultLoadPlanner, DefaultSavePlanner, async_save, load, load_state_dict, save, save_state_dict
from ._steps import CheckpointException
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from .stateful import Stateful

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "ChunkStorageMetadata",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "Metadata",
    "MetadataIndex",
    "Stateful",
    "TensorProperties",
    "TensorStorageMetadata",
    "async_save",
    "load",
    "load_state_dict",
    "save",
    "save_state_dict",
    "state_dict",
]
