"""The parameters of one module as shards: gathered together by one collective, and their gradients reduced by one."""

from __future__ import annotations

import itertools

from ...base.dtypes import DType
from ...core.bindings import function
from ...modules.module import Module
from ...modules.parameter import Parameter
from .. import collectives
from ..device_mesh import DeviceMesh
from ..process_group import ProcessGroup
from ..reduce_op import ReduceOp
from ..tensor import DTensor, Replicate, Shard, distribute_tensor
from ..tensor.placement_types import chunk_of
from ..work import Work
from ._policies import MixedPrecisionPolicy
from ._reductions import Piece, Reduction

__all__ = ["ShardedParameter", "Shards", "find"]

cat, empty = function("cat"), function("empty")


class ShardedParameter:
    """One parameter: its shard ``p`` (a DTensor), and the modules that have it under a name."""

    def __init__(self, p, owners: list[tuple[Module, str]], mesh: DeviceMesh, placement: Shard):
        # Of a parameter that is spread over another mesh already (tensor parallel): its part is what is sharded here.
        self.outer = p._spec if isinstance(p, DTensor) else None
        part = p if self.outer is None else p._local_tensor
        self.owners, self.dim, self.shape = owners, placement.dim % max(p.dim(), 1), tuple(part.shape)
        if not self.shape:
            names = ", ".join(name for _, name in owners)
            raise ValueError(f"fully_shard doesn't support scalar parameters: {names} has no dimension to shard")
        placements = [Replicate()] * (mesh.ndim - 1) + [Shard(self.dim)]
        self.mesh, self.placements = mesh, placements
        self.joined = mesh if self.outer is None else self.outer.mesh.joined(mesh)
        self.p = Parameter(self.cut(p.detach()), requires_grad=p.requires_grad)
        if p.grad is not None:
            self.p.grad = self.cut(p.grad)
        self.moved = (self.shape[self.dim], *self.shape[: self.dim], *self.shape[self.dim + 1 :])
        self.register(self.p)

    def cut(self, t) -> DTensor:
        """A whole tensor, the same on all ranks, as a shard. One that is spread over another mesh is cut there first: its dimensions come first."""
        if self.outer is None:
            return distribute_tensor(t, self.mesh, self.placements, src_data_rank=None)
        part = distribute_tensor(self.part(t), self.mesh, self.placements, src_data_rank=None)._local_tensor
        placements = (*self.outer.placements, *self.placements)
        return DTensor.from_local(part, self.joined, placements, shape=tuple(t.shape), stride=tuple(t.stride()))

    def part(self, t):
        """What the group of this mesh has of a whole tensor: all, or this rank's part over the other mesh."""
        if self.outer is None:
            return t
        return t.redistribute(placements=self.outer.placements)._local_tensor

    def handed(self, whole):
        """The parameter that the module gets for a gathered one."""
        return whole if self.outer is None else DTensor(whole, self.outer, requires_grad=False)

    def adopt(self) -> None:
        """Take over what the program has put under the parameter's name (``to_empty``, ``load_state_dict(assign=True)``). RuntimeError when it is no
        shard like the one that was there."""
        found = self.registered()
        if found is self.p:
            return
        if not isinstance(found, DTensor):
            raise RuntimeError(
                f"the parameter {self.name} of a sharded module was replaced by a tensor that isn't sharded"
            )
        if found.placements != self.p.placements or found.shape != self.p.shape:
            raise RuntimeError(
                f"the parameter {self.name} of a sharded module was replaced by one that is sharded otherwise"
            )
        self.p = found
        self.register(found)

    def register(self, value) -> None:
        """Let the modules have ``value`` under the parameter's name."""
        for module, name in self.owners:
            module._parameters[name] = value

    @property
    def name(self) -> str:
        """The names that the modules have it under."""
        return ", ".join(name for _, name in self.owners)

    def registered(self):
        """What the modules have under the name now."""
        module, name = self.owners[0]
        return module._parameters[name]

    def rows(self, ranks: int) -> int:
        return -(-self.moved[0] // ranks)

    def numel(self, ranks: int) -> int:
        """Elements of a part, filled up to the size that all ranks have."""
        n = self.rows(ranks)
        for m in self.moved[1:]:
            n *= m
        return n

    def filled(self, t, rows: int):
        """``t`` with the sharded dimension in front, as a vector, zeros behind its rows up to so many."""
        t = t.movedim(self.dim, 0).contiguous().reshape(-1)
        missing = rows * (self.numel(1) // max(self.moved[0], 1)) - t.numel()
        return cat([t, t.new_zeros(missing)]) if missing else t

    def whole(self, pieces):
        """The parameter out of the parts of all ranks, (ranks, elements)."""
        t = pieces.reshape(-1, *self.moved[1:])[: self.moved[0]]
        return t.movedim(0, self.dim).contiguous()

    def part_of(self, vector, ranks: int, rank: int):
        """The gradient of the shard out of this rank's elements."""
        size = chunk_of(self.moved[0], ranks, rank)[0]
        t = vector.reshape(-1, *self.moved[1:])[:size].movedim(0, self.dim).contiguous()
        return DTensor.from_local(
            t, self.p.device_mesh, self.p.placements, shape=tuple(self.p.shape), stride=tuple(self.p.stride())
        )


_places: dict[
    int, tuple[Shards, int]
] = {}  # storage of a gathered parameter (by id, while it is gathered) -> whose it is


def find(t) -> tuple[Shards, int] | None:
    """The shards whose gathered parameter ``t`` is (a view of), and which."""
    return _places.get(id((t._local_tensor if isinstance(t, DTensor) else t)._storage))


class Shards:
    """The parameters that one module gathers."""

    def __init__(self, params: list[ShardedParameter], mesh: DeviceMesh, state, policy: MixedPrecisionPolicy):
        self.state = state  # of the module, see sharding.py
        param_dtype, reduce_dtype = policy.param_dtype, policy.reduce_dtype
        self.params, self.param_dtype, self.reduce_dtype = params, param_dtype, reduce_dtype
        self.group: ProcessGroup = mesh.get_group(mesh.ndim - 1)
        self.replicas: ProcessGroup | None = mesh.get_group(0) if mesh.ndim == 2 else None
        self.whole: list | None = None
        self.pending: list[tuple[list[int], object, Work | None]] | None = None
        self.kept: dict[int, object] = {}  # gradients of backward passes without a reduction
        self.reduces, self.reduces_replicas, self.factor = True, True, None

    def register_parts(self) -> None:
        """Let the modules have the shards."""
        for p in self.params:
            p.register(p.p)

    # ---- gathering

    def start(self, async_op: bool) -> None:
        """Start gathering, unless it has been."""
        if self.whole is not None or self.pending is not None:
            return
        for p in self.params:
            p.adopt()
            if p.p.device.type == "meta":
                raise RuntimeError(
                    f"FSDP parameters should be materialized from meta device before training, but {p.name} is on meta: "
                    "call to_empty() and give values"
                )
        ranks, self.pending = self.group.size(), []
        for dtype, members in self._by_dtype(lambda p: self.param_dtype or p.p.dtype):
            parts = [
                self.params[i].filled(self.params[i].p._local_tensor.detach().to(dtype), self.params[i].rows(ranks))
                for i in members
            ]
            flat = cat(parts) if len(parts) > 1 else parts[0]
            out = empty(ranks, flat.numel(), dtype=dtype)
            work = collectives.all_gather_into_tensor(out, flat, self.group, async_op)
            self.pending.append((members, out, work))

    def _by_dtype(self, dtype_of) -> list[tuple[DType, list[int]]]:
        order = sorted(range(len(self.params)), key=lambda i: (dtype_of(self.params[i]).name, i))
        made = itertools.groupby(order, key=lambda i: dtype_of(self.params[i]))
        return [(dtype, list(members)) for dtype, members in made]

    def gather(self) -> list:
        """The whole parameters."""
        if self.whole is None:
            self.start(False)
            whole, ranks = [None] * len(self.params), self.group.size()
            for members, out, work in self.pending or ():
                if work is not None:
                    work.wait()
                sizes = [self.params[i].numel(ranks) for i in members]
                for i, piece in zip(members, out.split(sizes, 1)):
                    whole[i] = self.params[i].whole(piece)
            self.pending, self.whole = None, whole
            for i, t in enumerate(whole):
                _places[id(t._storage)] = self, i
        return self.whole

    def free(self) -> None:
        """Let go of what was gathered, or is being gathered."""
        for _, _, work in self.pending or ():
            if work is not None:
                work.wait()
        for t in self.whole or ():
            _places.pop(id(t._storage), None)
        self.pending = self.whole = None

    # ---- reducing

    def reduce(self, grads: list, async_op: bool) -> Reduction | None:
        """Start to reduce the gradients of the whole parameters (None where there is none) to those of the shards, means over the ranks. None when
        they are kept for a later pass."""
        grads = [None if g is None else p.part(g) for p, g in zip(self.params, grads)]
        for i, kept in self.kept.items():
            grads[i] = kept if grads[i] is None else grads[i] + kept
        self.kept = {}
        if not self.reduces:
            self.kept = {i: g for i, g in enumerate(grads) if g is not None}
            return None
        pieces = []
        for dtype, members in self._by_dtype(lambda p: self.reduce_dtype or self.param_dtype or p.p.dtype):
            members = [i for i in members if grads[i] is not None]
            if members:
                pieces.append(self._reduced(dtype, members, grads, async_op))
        return Reduction(self, pieces)

    def _reduced(self, dtype: DType, members: list[int], grads: list, async_op: bool) -> Piece:
        """One collective for the gradients of one dtype; over replicas, one that follows it."""
        ranks = self.group.size()
        rows = [
            self.params[i].filled(grads[i].detach().to(dtype), ranks * self.params[i].rows(ranks)).view(ranks, -1)
            for i in members
        ]
        flat = (cat(rows, 1) if len(rows) > 1 else rows[0]).contiguous()
        out = empty(flat.shape[1], dtype=dtype)
        op = ReduceOp.AVG if self.factor is None else ReduceOp.SUM
        work = collectives.reduce_scatter_tensor(out, flat, op, self.group, async_op)
        if self.replicas is not None and self.reduces_replicas:
            if work is not None:
                self.replicas.call(work.wait, True)
            work = collectives.all_reduce(out, op, self.replicas, async_op)
        return Piece(members, [r.shape[1] for r in rows], out, work)
