"""Several groups at once."""

from __future__ import annotations

from . import world
from .world import GroupMember

__all__ = ["new_subgroups", "new_subgroups_by_enumeration", "split_group"]


def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None):
    """(this rank's group or None, all groups) of disjoint lists of ranks. ValueError when a rank is in two."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: dict[int, list[int]] = {}
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}")
            seen[rank] = ranks
    groups = [
        world.new_group(ranks, timeout=timeout, backend=backend, pg_options=pg_options, group_desc=group_desc)
        for ranks in ranks_per_subgroup_list
    ]
    own = next((g for g in groups if g != GroupMember.NON_GROUP_MEMBER), None)
    return own, groups


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Groups of ``group_size`` neighbouring ranks; the size must divide the world's."""
    ranks = world.get_process_group_ranks(group)
    size = len(ranks) if group_size is None else group_size
    if size <= 0:
        raise ValueError(f"The arg 'group_size' ({size}) must be positive")
    if size > len(ranks):
        raise ValueError(f"The arg 'group_size' ({size}) must not exceed the world size ({len(ranks)})")
    if len(ranks) % size:
        raise ValueError(f"The world size ({len(ranks)}) must be divisible by '{group_size=}'")
    parts = [ranks[k : k + size] for k in range(0, len(ranks), size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None):
    """The part of ``parent_pg`` that this rank is in, of lists of the parent's ranks; None in none of them. All ranks of the parent call it."""
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = world.of(parent_pg)
    own = None
    for ranks in split_ranks:
        members = [parent._ranks[k] for k in ranks]
        made = world.new_group(members, timeout=timeout, pg_options=pg_options, group_desc=group_desc)
        if made != GroupMember.NON_GROUP_MEMBER:
            own = made
    return own
