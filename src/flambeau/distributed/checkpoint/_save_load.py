"""``save`` and ``load``: each rank writes what it has, each part once, and reads the parts that it needs, however many ranks wrote them."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import Future

from ... import _C
from ...autograd.grad_mode import no_grad
from ...base.shapes import Size
from .. import world
from ..tensor import DTensor
from ._parts import box_of, flatten, overlap, set_at
from ._steps import Ranks
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
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "async_save",
    "load",
    "load_state_dict",
    "save",
    "save_state_dict",
]


class DefaultSavePlanner:
    """The plan that ``save`` always makes; planners of one's own aren't built."""

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors=None,
        **options,
    ):
        if not flatten_state_dict:
            raise NotImplementedError("DefaultSavePlanner: flatten_state_dict=False isn't built")


class DefaultLoadPlanner:
    """``allow_partial_load``: names that the checkpoint lacks are left as they are."""

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ):
        if not flatten_state_dict:
            raise NotImplementedError("DefaultLoadPlanner: flatten_state_dict=False isn't built")
        self.allow_partial_load = allow_partial_load


def _states(state_dict: dict) -> dict:
    return {k: v.state_dict() if _is_stateful(v) else v for k, v in state_dict.items()}


def _is_stateful(x) -> bool:
    return isinstance(x, Stateful) and not isinstance(x, _C.TensorBase)


def _writer(storage_writer, checkpoint_id) -> FileSystemWriter:
    if storage_writer is None:
        if checkpoint_id is None:
            raise RuntimeError("Cannot determine which storage to write: give checkpoint_id or storage_writer")
        return FileSystemWriter(checkpoint_id)
    if not isinstance(storage_writer, FileSystemWriter):
        raise NotImplementedError(
            f"checkpoints into a {type(storage_writer).__name__} aren't built: FileSystemWriter is"
        )
    return storage_writer


def save(
    state_dict: dict,
    *,
    checkpoint_id=None,
    storage_writer=None,
    planner=None,
    process_group=None,
    no_dist: bool = False,
) -> Metadata:
    """Write a state dict (nested; tensors, DTensors, objects with ``state_dict``, and what ``torch.save`` takes) into the folder ``checkpoint_id``.

    All ranks call it. A part of a DTensor is written by one of the ranks that have it, plain tensors and everything else by the first rank that has
    that name. CheckpointException on all ranks when one fails; the checkpoint exists when all is written.
    """
    if planner is not None and type(planner) is not DefaultSavePlanner:
        raise NotImplementedError("save planners of one's own aren't built")
    writer, ranks = _writer(storage_writer, checkpoint_id), Ranks(process_group, no_dist)
    flat: dict = {}
    paths: dict = {}

    def plan():
        if ranks.rank == 0:
            writer.prepare()
        found, where = flatten(_states(state_dict))
        flat.update(found)
        paths.update(where)
        return {name: _described(name, value, ranks.rank) for name, value in found.items() if _is_here(value)}, where

    plans = ranks.all("save: plan", plan)
    described, mine = _shared(plans, ranks.rank)

    def write():
        items = []
        for index in mine:
            value = flat[index.fqn]
            items.append((index, box_of(value)[1].contiguous().clone() if isinstance(value, _C.TensorBase) else value))
        return writer.write(ranks.rank, items)

    places = ranks.all("save: write", write)
    metadata = Metadata(described, {name: path for _, where in plans for name, path in where.items()})
    metadata.storage_data = {index: place for part in places for index, place in part.items()}
    ranks.all("save: finish", lambda: writer.finish(metadata) if ranks.rank == 0 else None)
    return metadata


def _is_here(value) -> bool:
    return not isinstance(value, DTensor) or value.device_mesh.get_coordinate() is not None


def _described(name: str, value, rank: int):
    """(what is stored under a name, its index on this rank, its bytes)."""
    if not isinstance(value, _C.TensorBase):
        return BytesStorageMetadata(), MetadataIndex(name), 0
    box, local = box_of(value)
    about = TensorStorageMetadata(
        TensorProperties(value.dtype, requires_grad=value.requires_grad), Size(value.shape), [box]
    )
    return about, MetadataIndex(name, box.offsets), local.nbytes


def _shared(plans, rank: int) -> tuple[dict, list[MetadataIndex]]:
    """({name: everything stored under it}, what this rank writes): each part once, by the owner with the fewest bytes so far, on all ranks alike."""
    described: dict = {}
    owners: dict[MetadataIndex, tuple[list[int], int, ChunkStorageMetadata | None]] = {}
    for r, (plan, _) in enumerate(plans):
        for name, (about, index, size) in plan.items():
            chunk = about.chunks[0] if isinstance(about, TensorStorageMetadata) else None
            if chunk is not None and 0 in chunk.sizes and 0 not in about.size:
                continue  # an empty part of a tensor that isn't
            known = described.setdefault(name, about)
            if type(known) is not type(about) or chunk is not None and known.size != about.size:
                raise ValueError(f"ranks disagree about {name}: {known} and {about}")
            if index not in owners:
                owners[index] = [], size, chunk
                if chunk is not None and known is not about:
                    known.chunks.append(chunk)
            owners[index][0].append(r)
    loads = [0] * len(plans)
    mine = []
    for index, (who, size, chunk) in owners.items():
        to = min(who, key=lambda r: (loads[r], r)) if chunk is not None else who[0]
        loads[to] += size
        if to == rank:
            mine.append(index)
    return described, mine


def load(
    state_dict: dict,
    *,
    checkpoint_id=None,
    storage_reader: FileSystemReader | None = None,
    planner=None,
    process_group=None,
    no_dist: bool = False,
) -> None:
    """Read a checkpoint into the tensors of ``state_dict``, in place, each rank the parts that it needs; other leaves are replaced, and objects
    with ``load_state_dict`` are given theirs. All ranks call it. CheckpointException on all ranks, before anything is read, when a name or a
    size differs."""
    if planner is not None and type(planner) is not DefaultLoadPlanner:
        raise NotImplementedError("load planners of one's own aren't built")
    if storage_reader is None and checkpoint_id is None:
        raise RuntimeError("Cannot determine which storage to read: give checkpoint_id or storage_reader")
    reader, ranks = storage_reader or FileSystemReader(checkpoint_id), Ranks(process_group, no_dist)
    if not isinstance(reader, FileSystemReader):
        raise NotImplementedError(f"checkpoints out of a {type(reader).__name__} aren't built: FileSystemReader is")
    partial = planner is not None and planner.allow_partial_load
    nested: dict = {}
    plan: list = []

    def prepare():
        nested.update(_states(state_dict))
        flat, paths = flatten(nested)
        metadata = reader.read_metadata()
        for name, value in flat.items():
            about = metadata.state_dict_metadata.get(name)
            if about is None:
                if partial:
                    continue
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            if isinstance(value, _C.TensorBase) and isinstance(about, TensorStorageMetadata) and _is_here(value):
                if tuple(about.size) != tuple(value.shape):
                    raise ValueError(f"Size mismatch between saved {about.size} and current: {value.shape} for {name}")
                box, local = box_of(value)
                plan.extend(_reads(metadata, name, about, box, local))
            elif isinstance(about, BytesStorageMetadata):
                plan.append((metadata.storage_data[MetadataIndex(name)], paths[name], None))
            elif not isinstance(value, _C.TensorBase):
                plan.append((metadata.storage_data[MetadataIndex(name, about.chunks[0].offsets)], paths[name], None))

    ranks.all("load: plan", prepare)

    def read():
        with no_grad():
            for place, target, cut in sorted(plan, key=lambda row: (row[0].relative_path, row[0].offset)):
                value = reader.read(place)
                if cut is None:
                    set_at(nested, target, value)
                    continue
                for d, (here, there, length) in enumerate(cut):
                    target, value = target.narrow(d, here, length), value.narrow(d, there, length)
                target.copy_(value)

    ranks.all("load: read", read)
    for key, value in state_dict.items():
        if _is_stateful(value):
            value.load_state_dict(nested[key])
        else:
            state_dict[key] = nested[key]


def _reads(metadata: Metadata, name: str, about: TensorStorageMetadata, box: ChunkStorageMetadata, local) -> list:
    """(place, target, what both have in common) of the stored parts that a box needs. ValueError when they don't cover it."""
    found, covered = [], 0
    for chunk in about.chunks:
        common = overlap(box, chunk)
        if common is not None:
            found.append((metadata.storage_data[MetadataIndex(name, chunk.offsets)], local, common))
            n = 1
            for _, _, length in common:
                n *= length
            covered += n
    if covered < local.numel():
        raise ValueError(f"the checkpoint has {covered} of the {local.numel()} elements of {name} that are needed")
    return found


def async_save(
    state_dict: dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None, **options
) -> Future:
    """``save`` in a thread of its own, of a copy made now; a Future of its result. Ranks that are processes need a ``process_group`` that
    nothing else uses meanwhile: RuntimeError without one."""
    if options:
        raise NotImplementedError(f"async_save: {', '.join(options)} isn't built")
    if world.is_initialized() and world.get_world_size() > 1 and process_group is None:
        raise RuntimeError(
            "async_save needs a process_group of its own (torch.distributed.new_group()): its collectives run beside the program's"
        )
    writer, copied = _writer(storage_writer, checkpoint_id), copy.deepcopy(_states(state_dict))
    out: Future = Future()
    here = world.current()

    def run():
        world.use(here)
        try:
            out.set_result(save(copied, storage_writer=writer, planner=planner, process_group=process_group))
        except BaseException as error:
            out.set_exception(error)

    threading.Thread(target=run, name="async_save", daemon=False).start()
    return out


def save_state_dict(
    state_dict, storage_writer, process_group=None, coordinator_rank: int = 0, no_dist: bool = False, planner=None
) -> Metadata:
    """PyTorch's older name of ``save``."""
    return save(
        state_dict, storage_writer=storage_writer, process_group=process_group, no_dist=no_dist, planner=planner
    )


def load_state_dict(
    state_dict, storage_reader, process_group=None, coordinator_rank: int = 0, no_dist: bool = False, planner=None
) -> None:
    """PyTorch's older name of ``load``."""
    load(state_dict, storage_reader=storage_reader, process_group=process_group, no_dist=no_dist, planner=planner)
