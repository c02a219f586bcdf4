"""Checkpoints of many ranks as one file of ``torch.save``, and the other way round."""

from __future__ import annotations

from ...core.bindings import function
from ...serialization import load as load_file
from ...serialization import save as save_file
from ._save_load import load, save
from .filesystem import FileSystemReader
from .metadata import TensorStorageMetadata

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]

empty = function("empty")


def dcp_to_torch_save(dcp_checkpoint_dir, torch_save_path) -> None:
    """Read all of a checkpoint in this process and write it by ``torch.save``."""
    reader = FileSystemReader(dcp_checkpoint_dir)
    metadata = reader.read_metadata()
    state: dict = {}
    for name, about in metadata.state_dict_metadata.items():
        value = empty(about.size, dtype=about.properties.dtype) if isinstance(about, TensorStorageMetadata) else None
        _put(state, (metadata.planner_data or {}).get(name, (name,)), value)
    load(state, storage_reader=reader, no_dist=True)
    save_file(state, torch_save_path)


def _put(container, path, value) -> None:
    """Place a leaf; dictionaries and lists are made on the way."""
    step, *rest = path
    if isinstance(container, list):
        container.extend([None] * (step + 1 - len(container)))
    if not rest:
        container[step] = value
        return
    known = container[step] if isinstance(container, list) else container.get(step)
    if known is None:
        known = container[step] = [] if isinstance(rest[0], int) else {}
    _put(known, rest, value)


def torch_save_to_dcp(torch_save_path, dcp_checkpoint_dir) -> None:
    """Write the state dict of a file of ``torch.save`` as a checkpoint. It is unpickled: for files that you trust."""
    save(
        load_file(torch_save_path, map_location="cpu", weights_only=False),
        checkpoint_id=dcp_checkpoint_dir,
        no_dist=True,
    )
