"""From one placement to another: which collectives a rank's part goes through. Functional collectives, so that it can be captured."""

from __future__ import annotations

from ...core.operator import namespace
from .. import functional_collectives as funcol
from ..device_mesh import DeviceMesh
from .placement_types import Partial, Placement, Replicate, Shard, chunk_of

__all__ = ["redistribute"]

aten = namespace("aten")


def redistribute(local, shape, mesh: DeviceMesh, current, target):
    """This rank's part of a tensor of ``shape`` under ``target``, from that under ``current``. It may share memory with ``local``."""
    current, target = list(current), list(target)
    if current == target:
        return local
    undone = _undone(current, target)
    for i in reversed(range(mesh.ndim)):
        if i in undone:
            straight = _only(i, current, target)
            local, current[i] = _leave(
                local, _extent(shape, mesh, current, i), mesh, i, current[i], target[i], straight
            )
    for i in range(mesh.ndim):
        if current[i] != target[i]:
            local = _take(local, mesh, i, target[i])
    return local


def _undone(current, target) -> set[int]:
    """The dimensions of the mesh whose placement must be left: those that change, and those that cut a dimension after one that changes there."""
    undone = {i for i, (a, b) in enumerate(zip(current, target)) if a != b}
    dims = {p.dim for i in undone for p in (current[i], target[i]) if isinstance(p, Shard)}
    first = min(undone)
    undone |= {j for j in range(first, len(current)) if isinstance(current[j], Shard) and current[j].dim in dims}
    return undone


def _only(i: int, current, target) -> bool:
    """Whether no other dimension of the mesh cuts what dimension ``i`` cuts, before or after."""
    dims = {p.dim for p in (current[i], target[i]) if isinstance(p, Shard)}
    others = (p for both in (current, target) for j, p in enumerate(both) if j != i)
    return not any(isinstance(p, Shard) and p.dim in dims for p in others)


def _extent(shape, mesh: DeviceMesh, current, i: int) -> int:
    """The size that dimension ``i`` of the mesh cuts: what the ones before it left."""
    p, here = current[i], mesh.get_coordinate()
    if not isinstance(p, Shard):
        return 0
    n = shape[p.dim]
    for j in range(i):
        if current[j] == p:
            n = chunk_of(n, mesh.size(j), here[j])[0]
    return n


def _leave(local, n: int, mesh: DeviceMesh, i: int, current: Placement, target: Placement, straight: bool):
    """(the part, its placement) after leaving ``current``: replicated, or right in the target where one collective does that."""
    group, k = mesh.get_group(i), mesh.size(i)
    if isinstance(current, Partial):
        if isinstance(target, Shard) and straight and local.shape[target.dim] % k == 0:
            return funcol.reduce_scatter_tensor(local, current.reduce_op, target.dim, group), target
        return funcol.all_reduce(local.contiguous(), current.reduce_op, group), Replicate()
    if isinstance(current, Shard):
        if isinstance(target, Shard) and straight and n and n % k == 0 and _divides(k, local.shape[target.dim]):
            return _exchange(local, current.dim, target.dim, k, group), target
        return _gather(local, current.dim, n, k, group), Replicate()
    return local, current


def _divides(k: int, n: int) -> bool:
    return n > 0 and n % k == 0


def _gather(local, d: int, n: int, k: int, group):
    full = -(-n // k)
    if local.shape[d] < full:
        missing = [*local.shape[:d], full - local.shape[d], *local.shape[d + 1 :]]
        local = aten.cat.default([local, local.new_zeros(missing)], d)
    stacked = funcol.all_gather_tensor(local, 0, group)
    if d == 0 and full * k == n:
        return stacked
    pieces = aten.unbind.int(stacked.view(k, *local.shape), 0)
    return aten.cat.default([p.narrow(d, 0, chunk_of(n, k, j)[0]) for j, p in enumerate(pieces)], d)


def _exchange(local, source: int, to: int, k: int, group):
    """Parts along ``source`` become parts along ``to``: every rank sends every other one its piece."""
    pieces = aten.stack.default(aten.split.Tensor(local, local.shape[to] // k, to), 0)
    received = funcol.all_to_all_single(pieces, None, None, group)
    return aten.cat.default(list(aten.unbind.int(received, 0)), source)


def _take(local, mesh: DeviceMesh, i: int, target: Placement):
    """This rank's part of what it has whole."""
    here = mesh.get_coordinate()[i]
    if isinstance(target, Shard):
        size, start = chunk_of(local.shape[target.dim], mesh.size(i), here)
        return local.narrow(target.dim, start, size)
    if isinstance(target, Partial) and here and target.reduce_op in ("sum", "product"):
        return aten.zeros_like.default(local) if target.reduce_op == "sum" else aten.ones_like.default(local)
    return local
