"""State dicts as names and boxes: nested containers made flat, and which part of a tensor a rank has."""

from __future__ import annotations

from collections.abc import Mapping

from ... import _C
from ...base.shapes import Size
from ..tensor import DTensor
from ..tensor.placement_types import local_box
from .metadata import ChunkStorageMetadata

__all__ = ["box_of", "flatten", "overlap", "set_at"]

Path = tuple[str | int, ...]


def flatten(state_dict: Mapping) -> tuple[dict[str, object], dict[str, Path]]:
    """({name: leaf}, {name: path}): dictionaries are opened, and lists that hold tensors or dictionaries. ValueError for two leaves of one name."""
    flat: dict[str, object] = {}
    paths: dict[str, Path] = {}

    def visit(path: Path, value) -> None:
        if isinstance(value, Mapping):
            for key, part in value.items():
                visit((*path, str(key)), part)
        elif isinstance(value, list) and any(map(_holds, value)):
            for i, part in enumerate(value):
                visit((*path, i), part)
        else:
            name = ".".join(map(str, path))
            if name in flat:
                raise ValueError(f"duplicated flatten key {name}")
            flat[name], paths[name] = value, path

    visit((), state_dict)
    return flat, paths


def _holds(x) -> bool:
    """Whether a list with this element is opened."""
    return isinstance(x, _C.TensorBase | Mapping) or isinstance(x, list) and any(map(_holds, x))


def set_at(state_dict, path: Path, value) -> None:
    """Put a leaf at its path. Keys of a dictionary that are no strings are found by their text."""
    at = state_dict
    for step in path[:-1]:
        at = at[_key(at, step)]
    at[_key(at, path[-1])] = value


def _key(container, step):
    if isinstance(container, Mapping) and step not in container:
        return next((key for key in container if str(key) == step), step)
    return step


def box_of(t) -> tuple[ChunkStorageMetadata, object]:
    """(the part of a tensor that this rank has, its elements). ValueError for summands."""
    if not isinstance(t, DTensor):
        return ChunkStorageMetadata(Size([0] * t.dim()), Size(t.shape)), t.detach()
    if any(p.is_partial() for p in t.placements):
        raise ValueError(f"a DTensor of placements {t.placements} can't be saved or loaded: redistribute it")
    sizes, offsets = local_box(tuple(t.shape), t.device_mesh, t.placements)
    return ChunkStorageMetadata(Size(offsets), Size(sizes)), t._local_tensor.detach()


def overlap(a: ChunkStorageMetadata, b: ChunkStorageMetadata) -> list[tuple[int, int, int]] | None:
    """For each dimension (first in ``a``, first in ``b``, length) of what two parts have in common; None when that is nothing."""
    out = []
    for a0, an, b0, bn in zip(a.offsets, a.sizes, b.offsets, b.sizes):
        start, end = max(a0, b0), min(a0 + an, b0 + bn)
        if end <= start:
            return None
        out.append((start - a0, start - b0, end - start))
    return out
