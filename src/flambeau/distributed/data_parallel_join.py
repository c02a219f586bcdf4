"""DistributedDataParallel in a Join: what ranks without input do for those that go on."""

from __future__ import annotations

import numpy as np

from .. import _C
from . import collectives
from .join import JoinHook
from .process_group import ProcessGroup
from .reduce_op import ReduceOp
from .replicas import synchronize

__all__ = ["DataParallelJoinHook", "agree_to_reduce", "common_rank"]


def _most(value: int, group: ProcessGroup) -> int:
    flag = _C.from_array(np.array([value], np.int64))
    collectives.all_reduce(flag, ReduceOp.MAX, group)
    return int(flag._array[0])


def common_rank(group: ProcessGroup, candidate: bool) -> int:
    """The last of the ranks that say yes. All ranks ask."""
    found = _most(group.rank() if candidate else -1, group)
    if found < 0:
        raise RuntimeError("no rank is left that has input")
    return found


def agree_to_reduce(ddp, mine: bool) -> bool:
    """Whether the ranks that have input will reduce gradients in this iteration."""
    return bool(_most(int(mine), ddp.process_group))


class DataParallelJoinHook(JoinHook):
    """Shadows the collectives of ``ddp``'s forward and backward with zeros. The means are over all ranks, or over those that go on."""

    def __init__(self, ddp, divide_by_initial_world_size: bool):
        self.ddp = ddp
        ddp._divides_by_those_going = not divide_by_initial_world_size

    def main_hook(self) -> None:
        ddp = self.ddp
        syncs = agree_to_reduce(ddp, False)
        if ddp.broadcast_buffers and ddp.require_forward_param_sync:
            buffers = ddp._buffers_of_module()
            if buffers:
                synchronize(buffers, ddp.process_group, common_rank(ddp.process_group, False))
        ddp.require_forward_param_sync = syncs
        if syncs:
            # Those that go on divide: here the sum matters alone.
            ddp.reducer.shadow(1 if ddp._divides_by_those_going else None)

    def post_hook(self, is_last_joiner: bool) -> None:
        """All ranks end with the parameters of one that went on to the end."""
        ddp = self.ddp
        source = common_rank(ddp.process_group, is_last_joiner)
        synchronize([*ddp.module.parameters(), *ddp._buffers_of_module()], ddp.process_group, source)
