"""What FullyShardedDataParallel needs before it can shard: the mesh of a strategy, and parameters that have memory."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ...autograd.grad_mode import no_grad
from ...modules.module import Module
from .. import objects, world
from ..device_mesh import DeviceMesh, init_device_mesh
from .api import ShardingStrategy
from .sharding import FSDPModule

__all__ = ["HYBRID", "materialize", "mesh_of"]

HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)


def mesh_of(process_group, strategy: ShardingStrategy) -> DeviceMesh:
    """The mesh of a strategy: shards over a group; without shards, replicas of one part; shards on each machine and replicas over the machines."""
    if strategy in HYBRID:
        if isinstance(process_group, tuple):
            shards, replicas = process_group
            rows: list = [None] * replicas.size()
            objects.all_gather_object(rows, list(shards._ranks), replicas)
            return DeviceMesh.from_group([replicas, shards], "cpu", rows)
        size = int(os.environ.get("LOCAL_WORLD_SIZE") or world.get_world_size())
        return init_device_mesh("cpu", (world.get_world_size() // size, size))
    group = world.of(process_group)
    if strategy is ShardingStrategy.NO_SHARD:
        if group.size() != world.get_world_size():
            raise NotImplementedError("FullyShardedDataParallel: NO_SHARD on some of the ranks isn't built")
        return DeviceMesh("cpu", [[r] for r in group._ranks])
    return DeviceMesh.from_group(group, "cpu")


def materialize(module: Module, param_init_fn) -> None:
    """Memory and values for what is on the meta device, in ``module`` and below it outside of wrappers. ValueError for a module that has no
    ``reset_parameters`` to get values from."""
    for m in _outside_of_wrappers(module):
        own = [*m.parameters(recurse=False), *m.buffers(recurse=False)]
        if not any(t.device.type == "meta" for t in own):
            continue
        if param_init_fn is not None:
            param_init_fn(m)
            continue
        m.to_empty(device="cpu", recurse=False)
        if not hasattr(m, "reset_parameters"):
            raise ValueError(
                f"{type(m).__name__} is on the meta device and has no reset_parameters(): give param_init_fn"
            )
        with no_grad():
            m.reset_parameters()


def _outside_of_wrappers(module: Module) -> Iterator[Module]:
    if isinstance(module, FSDPModule):
        return
    yield module
    for child in module.children():
        yield from _outside_of_wrappers(child)
