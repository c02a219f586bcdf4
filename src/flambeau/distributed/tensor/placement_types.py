"""How a tensor lies on one dimension of a mesh: in parts, whole, or as summands; and which part a rank has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..device_mesh import DeviceMesh

__all__ = ["DTensorSpec", "Partial", "Placement", "Replicate", "Shard", "chunk_of", "local_box", "normalized"]


class Placement:
    """Shard, Replicate or Partial."""

    def is_shard(self, dim: int | None = None) -> bool:
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a part along ``dim``, as ``torch.chunk`` makes them: the last parts may be shorter or empty."""

    dim: int

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """(size, offset) of part ``rank`` of ``num_chunks``."""
        return chunk_of(curr_local_size, num_chunks, rank)


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has the whole tensor, the same elements everywhere."""


@dataclass(frozen=True)
class Partial(Placement):
    """Each rank has a tensor of the whole shape, and the elements are the reduction of all of them: "sum", "avg", "product", "max", "min"."""

    reduce_op: str = "sum"

    def __post_init__(self):
        if self.reduce_op not in ("sum", "avg", "product", "max", "min"):
            raise ValueError(f"Partial: no reduction {self.reduce_op!r}")

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"


def chunk_of(n: int, parts: int, k: int) -> tuple[int, int]:
    """(size, offset) of part ``k`` when ``n`` is cut into ``parts`` as torch.chunk cuts it."""
    full = -(-n // parts)
    start = min(n, full * k)
    return min(n, start + full) - start, start


def local_box(shape, mesh: DeviceMesh, placements, coordinate=None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(sizes, offsets) of the part of a tensor of ``shape`` that the rank at ``coordinate`` has (this rank's unless given). A dimension that several
    dimensions of the mesh shard is cut by the first of them first."""
    here = mesh.get_coordinate() if coordinate is None else coordinate
    sizes, offsets = list(shape), [0] * len(shape)
    for i, p in enumerate(placements):
        if isinstance(p, Shard):
            sizes[p.dim], start = chunk_of(sizes[p.dim], mesh.size(i), here[i])
            offsets[p.dim] += start
    return tuple(sizes), tuple(offsets)


def normalized(placements, mesh: DeviceMesh, ndim: int) -> tuple[Placement, ...]:
    """One placement for each dimension of the mesh (Replicate for all when None), with non-negative dimensions. ValueError for a wrong number,
    IndexError for a dimension that isn't there."""
    placements = [Replicate()] * mesh.ndim if placements is None else list(placements)
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found {len(placements)} placements, and device_mesh.ndim: {mesh.ndim}."
        )
    for i, p in enumerate(placements):
        if not isinstance(p, Placement):
            raise TypeError(f"a placement is a Shard, Replicate or Partial, got {type(p).__name__}")
        if isinstance(p, Shard):
            if not -ndim <= p.dim < ndim:
                raise IndexError(f"Shard(dim={p.dim}) of a tensor of {ndim} dimensions")
            placements[i] = Shard(p.dim % ndim)
    return tuple(placements)


@dataclass(frozen=True)
class DTensorSpec:
    """Where the parts of one tensor are: its mesh, placements, whole shape and strides."""

    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: Any = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def device_mesh(self) -> DeviceMesh:
        return self.mesh

    def numel(self) -> int:
        return math.prod(self.shape)
