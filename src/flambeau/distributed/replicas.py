"""Ranks that begin alike: parameters and buffers of one rank for all."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from .. import _C
from . import collectives, objects
from .errors import DistError
from .process_group import ProcessGroup

__all__ = ["check_same_shapes", "ignored_names", "sync_module_states", "synchronize"]


def ignored_names(module) -> set[str]:
    """Names that DistributedDataParallel leaves alone."""
    return set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))


def check_same_shapes(tensors, group: ProcessGroup) -> None:
    """RuntimeError, on all ranks, when they have different parameters."""
    own = [(tuple(t.shape), str(t.dtype)) for t in tensors]
    every: list = [None] * group.size()
    objects.all_gather_object(every, own, group)
    first = every[0]
    for rank, found in enumerate(every):
        if len(found) != len(first):
            raise DistError(
                "DDP expects same model across all ranks, but Rank "
                f"0 has {len(first)} params, while rank {rank} has inconsistent {len(found)} params."
            )
        for k, (a, b) in enumerate(zip(first, found)):
            if a != b:
                raise DistError(
                    f"[{rank}]: params[{k}] in this process with sizes {list(b[0])} ({b[1]}) appears not to match sizes {list(a[0])} ({a[1]}) "
                    "of the same param in process 0."
                )


def synchronize(tensors, group: ProcessGroup, src: int = 0) -> None:
    """Make all tensors what they are on rank ``src`` of the group: one broadcast for each dtype."""
    if group.size() == 1:
        return
    by_type = defaultdict(list)
    for t in tensors:
        by_type[t.dtype].append(t)
    for alike in by_type.values():
        arrays = [t._array for t in alike]
        flat = np.concatenate([a.reshape(-1) for a in arrays])
        collectives.broadcast(_C.from_array(flat), group=group, group_src=src)
        if group.rank() == src:
            continue
        at = 0
        for t, a in zip(alike, arrays):
            a[...] = flat[at : at + a.size].reshape(a.shape)
            t._bump_version()
            at += a.size


def sync_module_states(
    module,
    process_group,
    broadcast_bucket_size: int = 0,
    src: int = 0,
    params_and_buffers_to_ignore=(),
    broadcast_buffers=True,
):
    """Parameters and buffers of a module become those of rank ``src``."""
    named = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    synchronize([t for n, t in named if n not in params_and_buffers_to_ignore], process_group, src)
