"""Collectives of Python objects: pickled, and moved as bytes. The receiver runs what the sender pickled: only among processes that trust each
other."""

from __future__ import annotations

import pickle

import numpy as np

from .. import _C
from . import world
from .collectives import all_gather, broadcast, gather, outsider, root_of, scatter
from .point_to_point import recv, send

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def packed(value):
    """An object as a tensor of bytes."""
    return _C.from_array(np.frombuffer(pickle.dumps(value), np.uint8).copy())


def unpacked(t, size: int):
    return pickle.loads(t._array[:size].tobytes())


def _bytes(n: int):
    return _C.from_array(np.zeros(n, np.uint8))


def counts(values: list[int]):
    """Numbers as a tensor."""
    return _C.from_array(np.array(values, np.int64))


def _all_lengths(n: int, pg) -> list[int]:
    sizes = [counts([0]) for _ in range(pg.size())]
    all_gather(sizes, counts([n]), group=pg)
    return [int(s._array[0]) for s in sizes]


def _padded(t, n: int):
    out = _bytes(n)
    out._array[: t._array.size] = t._array
    return out


def all_gather_object(object_list: list, obj, group=None) -> None:
    """``object_list[k]`` becomes the object of rank k."""
    if outsider(group):
        return
    pg = world.of(group)
    own = packed(obj)
    sizes = _all_lengths(own._array.size, pg)
    most = max(sizes)
    parts = [_bytes(most) for _ in sizes]
    all_gather(parts, _padded(own, most), group=pg)
    for k, (part, n) in enumerate(zip(parts, sizes)):
        object_list[k] = unpacked(part, n)


def gather_object(
    obj, object_gather_list=None, dst: int | None = None, group=None, group_dst: int | None = None
) -> None:
    """On rank ``dst`` ``object_gather_list[k]`` becomes the object of rank k."""
    if outsider(group):
        return
    pg = world.of(group)
    root = root_of(pg, dst, group_dst, "dst")
    mine = pg.rank() == root
    if mine and not object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must be specified on destination rank.")
    if not mine and object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must NOT be specified on non-destination ranks.")
    own = packed(obj)
    sizes = _all_lengths(own._array.size, pg)
    most = max(sizes)
    parts = [_bytes(most) for _ in sizes] if mine else None
    gather(_padded(own, most), parts, group_dst=root, group=pg)
    for k, n in enumerate(sizes if mine else ()):
        object_gather_list[k] = unpacked(parts[k], n)


def broadcast_object_list(
    object_list: list, src: int | None = None, group=None, device=None, group_src: int | None = None
) -> None:
    """Make the elements of the list what they are on rank ``src``."""
    if outsider(group):
        return
    pg = world.of(group)
    root = root_of(pg, src, group_src, "src")
    mine = pg.rank() == root
    parts = [packed(x) for x in object_list] if mine else []
    sizes = counts([p._array.size for p in parts] if mine else [0] * len(object_list))
    broadcast(sizes, group_src=root, group=pg)
    lengths = sizes._array.tolist()
    if not lengths:
        return
    whole = _C.from_array(np.concatenate([p._array for p in parts])) if mine else _bytes(sum(lengths))
    broadcast(whole, group_src=root, group=pg)
    at = 0
    for k, n in enumerate(() if mine else lengths):
        object_list[k] = pickle.loads(whole._array[at : at + n].tobytes())
        at += n


def scatter_object_list(
    scatter_object_output_list: list,
    scatter_object_input_list=None,
    src: int | None = None,
    group=None,
    group_src: int | None = None,
):
    """``scatter_object_output_list[0]`` becomes the object of this rank in rank ``src``'s list."""
    if outsider(group):
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    pg = world.of(group)
    root = root_of(pg, src, group_src, "src")
    mine = pg.rank() == root
    parts = [packed(x) for x in scatter_object_input_list] if mine else []
    sizes = counts([p._array.size for p in parts] if mine else [0] * pg.size())
    broadcast(sizes, group_src=root, group=pg)
    lengths = sizes._array.tolist()
    most = max(lengths)
    own = _bytes(most)
    scatter(own, [_padded(p, most) for p in parts] if mine else None, group_src=root, group=pg)
    scatter_object_output_list[0] = unpacked(own, lengths[pg.rank()])


def send_object_list(
    object_list: list,
    dst: int | None = None,
    group=None,
    device=None,
    group_dst: int | None = None,
    use_batch: bool = False,
):
    """Send a list of objects to rank ``dst``."""
    parts = [packed(x) for x in object_list]
    send(counts([p._array.size for p in parts]), dst, group, group_dst=group_dst)
    send(_C.from_array(np.concatenate([p._array for p in parts])), dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list,
    src: int | None = None,
    group=None,
    device=None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive as many objects as the list is long; returns the rank that sent them."""
    sizes = counts([0] * len(object_list))
    source = recv(sizes, src, group, group_src=group_src)
    lengths = sizes._array.tolist()
    whole = _bytes(sum(lengths))
    recv(whole, source if group_src is None else None, group, group_src=group_src)
    at = 0
    for k, n in enumerate(lengths):
        object_list[k] = pickle.loads(whole._array[at : at + n].tobytes())
        at += n
    return source
