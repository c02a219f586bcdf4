"""The collectives as methods of a ProcessGroup, as communication hooks and backends call them: they take lists, and give a Work."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import collectives, point_to_point
from .process_group import ProcessGroup
from .reduce_op import ReduceOp
from .work import Work

__all__ = [
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "BarrierOptions",
    "BroadcastOptions",
    "GatherOptions",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
]


@dataclass
class AllreduceOptions:
    """Of ``ProcessGroup.allreduce``."""

    reduceOp: object = ReduceOp.SUM  # noqa: N815
    timeout: object = None
    asyncOp: bool = True  # noqa: N815


@dataclass
class AllreduceCoalescedOptions(AllreduceOptions):
    """Of ``ProcessGroup.allreduce_coalesced``."""


@dataclass
class ReduceScatterOptions(AllreduceOptions):
    """Of ``ProcessGroup.reduce_scatter``."""


@dataclass
class BroadcastOptions:
    """Of ``ProcessGroup.broadcast``: the root as a rank of the group."""

    rootRank: int = 0  # noqa: N815
    rootTensor: int = 0  # noqa: N815
    timeout: object = None
    asyncOp: bool = True  # noqa: N815


@dataclass
class ReduceOptions(BroadcastOptions):
    """Of ``ProcessGroup.reduce``."""

    reduceOp: object = ReduceOp.SUM  # noqa: N815


@dataclass
class GatherOptions(BroadcastOptions):
    """Of ``ProcessGroup.gather``."""


@dataclass
class ScatterOptions(BroadcastOptions):
    """Of ``ProcessGroup.scatter``."""


@dataclass
class AllgatherOptions:
    """Of ``ProcessGroup.allgather``."""

    timeout: object = None
    asyncOp: bool = True  # noqa: N815


@dataclass
class AllToAllOptions(AllgatherOptions):
    """Of ``ProcessGroup.alltoall``."""


@dataclass
class BarrierOptions(AllgatherOptions):
    """Of ``ProcessGroup.barrier``."""

    device_ids: list = field(default_factory=list)


def _one(tensors):
    """The tensor of a list of one. RuntimeError for any other number."""
    if not isinstance(tensors, list | tuple):
        return tensors
    if len(tensors) != 1:
        raise RuntimeError(f"requires a single tensor, got {len(tensors)}")
    return tensors[0]


def _op(opts):
    return getattr(opts, "reduceOp", opts)


def allreduce(self, tensors, opts=ReduceOp.SUM, timeout=None) -> Work:
    """all_reduce of one tensor. ``opts``: an operation, or AllreduceOptions."""
    return collectives.all_reduce(_one(tensors), _op(opts), self, async_op=True)


def allreduce_coalesced(self, tensors, opts=ReduceOp.SUM) -> Work:
    """all_reduce of several tensors."""
    return collectives.all_reduce_coalesced(tensors, _op(opts), self, async_op=True)


def broadcast(self, tensors, opts=0, timeout=None) -> Work:
    """broadcast of one tensor. ``opts``: the root's rank in the group, or BroadcastOptions."""
    root = getattr(opts, "rootRank", opts)
    return collectives.broadcast(_one(tensors), group=self, async_op=True, group_src=root)


def reduce(self, tensors, opts=0, op=ReduceOp.SUM, timeout=None) -> Work:
    """reduce of one tensor. ``opts``: the root's rank in the group, or ReduceOptions."""
    root, op = (opts.rootRank, opts.reduceOp) if isinstance(opts, ReduceOptions) else (opts, op)
    return collectives.reduce(_one(tensors), op=op, group=self, async_op=True, group_dst=root)


def allgather(self, output_tensors, input_tensors, opts=None) -> Work:
    """all_gather of one tensor into one list."""
    outputs = _one(output_tensors) if isinstance(input_tensors, list | tuple) else output_tensors
    return collectives.all_gather(outputs, _one(input_tensors), self, async_op=True)


def allgather_coalesced(self, output_lists, input_list, opts=None) -> Work:
    """all_gather of several tensors, a list of them for each rank."""
    return collectives.all_gather_coalesced(output_lists, input_list, self, async_op=True)


def _allgather_base(self, output, input, opts=None) -> Work:
    """all_gather_into_tensor."""
    return collectives.all_gather_into_tensor(output, input, self, async_op=True)


def gather(self, output_tensors, input_tensors, opts=0) -> Work:
    """gather of one tensor. ``opts``: the root's rank in the group, or GatherOptions."""
    root = getattr(opts, "rootRank", opts)
    outputs = _one(output_tensors) if output_tensors else None
    return collectives.gather(_one(input_tensors), outputs, group=self, async_op=True, group_dst=root)


def scatter(self, output_tensors, input_tensors, opts=0) -> Work:
    """scatter into one tensor. ``opts``: the root's rank in the group, or ScatterOptions."""
    root = getattr(opts, "rootRank", opts)
    inputs = _one(input_tensors) if input_tensors else None
    return collectives.scatter(_one(output_tensors), inputs, group=self, async_op=True, group_src=root)


def reduce_scatter(self, output_tensors, input_tensors, opts=ReduceOp.SUM) -> Work:
    """reduce_scatter into one tensor."""
    return collectives.reduce_scatter(_one(output_tensors), _one(input_tensors), _op(opts), self, async_op=True)


def _reduce_scatter_base(self, output, input, opts=ReduceOp.SUM) -> Work:
    """reduce_scatter_tensor."""
    return collectives.reduce_scatter_tensor(output, input, _op(opts), self, async_op=True)


def alltoall(self, output_tensors, input_tensors, opts=None) -> Work:
    """all_to_all."""
    return collectives.all_to_all(output_tensors, input_tensors, self, async_op=True)


def alltoall_base(self, output, input, output_split_sizes, input_split_sizes, opts=None) -> Work:
    """all_to_all_single."""
    return collectives.all_to_all_single(output, input, output_split_sizes, input_split_sizes, self, async_op=True)


def send(self, tensors, dst_rank: int, tag: int = 0) -> Work:
    """isend to a rank of the group."""
    return point_to_point.isend(_one(tensors), group=self, tag=tag, group_dst=dst_rank)


def recv(self, tensors, src_rank: int, tag: int = 0) -> Work:
    """irecv from a rank of the group."""
    return point_to_point.irecv(_one(tensors), group=self, tag=tag, group_src=src_rank)


def recv_anysource(self, tensors, tag: int = 0) -> Work:
    """irecv from any rank."""
    return point_to_point.irecv(_one(tensors), group=self, tag=tag)


def barrier(self, opts=None, timeout=None) -> Work:
    """barrier."""
    return collectives.barrier(self, async_op=True)


def monitored_barrier(self, timeout=None, wait_all_ranks: bool = False) -> None:
    """monitored_barrier."""
    collectives.monitored_barrier(self, timeout, wait_all_ranks)


for _method in (
    allreduce,
    allreduce_coalesced,
    broadcast,
    reduce,
    allgather,
    allgather_coalesced,
    _allgather_base,
    gather,
    scatter,
    reduce_scatter,
    _reduce_scatter_base,
    alltoall,
    alltoall_base,
    send,
    recv,
    recv_anysource,
    barrier,
    monitored_barrier,
):
    setattr(ProcessGroup, _method.__name__, _method)
