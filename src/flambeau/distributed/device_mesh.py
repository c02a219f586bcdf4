"""DeviceMesh: ranks arranged in an array, with a process group along each of its dimensions."""

from __future__ import annotations

import math

import numpy as np

from .. import _C
from . import world
from .process_group import ProcessGroup

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """``mesh``: an array of global ranks, each at most once. All ranks of the job make it: a process group is made for every line of ranks along
    every dimension. ``mesh["dp"]`` is the part along named dimensions that this rank is in. RuntimeError for a mesh whose ranks aren't there."""

    def __init__(self, device_type: str, mesh, *, mesh_dim_names: tuple[str, ...] | None = None, _groups=None):
        if device_type != "cpu":
            raise RuntimeError(f"DeviceMesh: there are devices of type cpu only, got {device_type!r}")
        self._array = np.array(mesh._array if isinstance(mesh, _C.TensorBase) else mesh, np.int64)
        self.device_type = device_type
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        if self.mesh_dim_names is not None:
            if len(self.mesh_dim_names) != self._array.ndim:
                raise RuntimeError(
                    f"a mesh of {self._array.ndim} dimensions can't have the names {self.mesh_dim_names}"
                )
            if len(set(self.mesh_dim_names)) != len(self.mesh_dim_names):
                raise RuntimeError(f"Each mesh_dim_name must be unique, got {self.mesh_dim_names}")
        ranks = self._array.reshape(-1).tolist()
        if len(set(ranks)) != len(ranks) or not all(0 <= r < world.get_world_size() for r in ranks):
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {world.get_world_size()}, got ranks {ranks}"
            )
        self._groups = self._make_groups() if _groups is None else _groups
        self._root: DeviceMesh | None = None  # the mesh that this one was taken of

    def _make_groups(self) -> list[ProcessGroup | None]:
        """For each dimension the group of the line that this rank is in; all ranks make all groups, in one order."""
        own: list[ProcessGroup | None] = []
        everyone = list(range(world.get_world_size()))
        for d in range(self._array.ndim):
            found = None
            for line in np.moveaxis(self._array, d, -1).reshape(-1, self._array.shape[d]).tolist():
                made = world.of(None) if line == everyone else world.new_group(line, sort_ranks=False)
                if isinstance(made, ProcessGroup):
                    found = made
            own.append(found)
        return own

    @property
    def mesh(self):
        """The ranks, a tensor."""
        return _C.from_array(self._array.copy())

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    def size(self, mesh_dim: int | None = None) -> int:
        """Ranks along a dimension, or all."""
        return self._array.size if mesh_dim is None else self._array.shape[mesh_dim]

    def _dim(self, mesh_dim) -> int:
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(f"Found the DeviceMesh have {self.ndim} dimensions: give the dimension")
            return 0
        if isinstance(mesh_dim, str):
            if self.mesh_dim_names is None or mesh_dim not in self.mesh_dim_names:
                raise KeyError(f"Invalid mesh_dim_name {mesh_dim!r}: the mesh has {self.mesh_dim_names}")
            return self.mesh_dim_names.index(mesh_dim)
        return mesh_dim

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of the ranks along a dimension that this rank is among."""
        found = self._groups[self._dim(mesh_dim)]
        if found is None:
            raise RuntimeError("this rank isn't part of the mesh")
        return found

    def get_all_groups(self) -> list[ProcessGroup]:
        return [self.get_group(d) for d in range(self.ndim)]

    def get_rank(self) -> int:
        return world.get_rank()

    def get_coordinate(self) -> list[int] | None:
        """The place of this rank in the mesh, None when it isn't there."""
        where = np.argwhere(self._array == world.get_rank())
        return where[0].tolist() if len(where) else None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The number of this rank along a dimension."""
        return self.get_group(mesh_dim).rank()

    def __getitem__(self, names) -> DeviceMesh:
        wanted = (names,) if isinstance(names, str) else tuple(names)
        dims = [self._dim(name) for name in wanted]
        here = self.get_coordinate()
        if here is None:
            raise RuntimeError("this rank isn't part of the mesh")
        index = tuple(slice(None) if d in dims else here[d] for d in range(self.ndim))
        part = self._array[index]
        kept = sorted(dims)
        part = part.transpose([kept.index(d) for d in dims])
        out = DeviceMesh(self.device_type, part, mesh_dim_names=wanted, _groups=[self._groups[d] for d in dims])
        out._root = self if self._root is None else self._root
        return out

    def joined(self, inner: DeviceMesh) -> DeviceMesh:
        """The mesh with the dimensions of this one and then those of ``inner``. ValueError unless both were taken of one mesh by names."""
        root = self._root
        if root is None or inner._root is not root:
            raise ValueError(
                f"{self} and {inner} have to be parts of one mesh: mesh[name] of an init_device_mesh(..., mesh_dim_names=...)"
            )
        return root[(*(self.mesh_dim_names or ()), *(inner.mesh_dim_names or ()))]

    @classmethod
    def from_group(cls, group, device_type: str, mesh=None, *, mesh_dim_names=None) -> DeviceMesh:
        """The mesh of a group, or of one group for each dimension of ``mesh``."""
        groups = list(group) if isinstance(group, list | tuple) else [group]
        if mesh is None:
            if len(groups) != 1:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            mesh = list(groups[0]._ranks)
        return cls(device_type, mesh, mesh_dim_names=mesh_dim_names, _groups=groups)

    def __eq__(self, other) -> bool:
        same = isinstance(other, DeviceMesh) and np.array_equal(self._array, other._array)
        return same and self.mesh_dim_names == other.mesh_dim_names

    def __hash__(self) -> int:
        return hash((self._array.tobytes(), self._array.shape, self.mesh_dim_names))

    def __repr__(self) -> str:
        names = self.mesh_dim_names or tuple(range(self.ndim))
        return f"DeviceMesh(({', '.join(f'{n}={k}' for n, k in zip(names, self.shape))}), '{self.device_type}', ranks {self._array.tolist()})"


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names=None, backend_override=None
) -> DeviceMesh:
    """All ranks in an array of ``mesh_shape``, row by row. The default process group is made first when there is none."""
    if backend_override is not None:
        raise NotImplementedError("init_device_mesh: backend_override isn't built")
    if not world.is_initialized():
        world.init_process_group()
    if math.prod(mesh_shape) != world.get_world_size():
        raise RuntimeError(
            f"a mesh of shape {tuple(mesh_shape)} needs {math.prod(mesh_shape)} ranks, the job has {world.get_world_size()}"
        )
    ranks = np.arange(world.get_world_size()).reshape(mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
