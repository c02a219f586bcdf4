"""Messages from one rank to another."""

from __future__ import annotations

from .. import _C
from . import world
from .collectives import Result, outsider
from .elements import bytes_of, contiguous, plain
from .work import MessageWork, Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def _peer(pg, global_rank, group_rank, name: str) -> int | None:
    if group_rank is not None and global_rank is not None:
        raise ValueError(f"Can't specify both {name} and group_{name}")
    if group_rank is None:
        group_rank = None if global_rank is None else pg.group_rank(global_rank)
    elif not 0 <= group_rank < pg.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {pg.group_name}")
    if group_rank == pg.rank():
        raise ValueError(
            f"Invalid {'destination' if name == 'dst' else 'source'} rank: {name} should not be the same as the rank of the current process."
        )
    return group_rank


def isend(tensor, dst: int | None = None, group=None, tag: int = 0, group_dst: int | None = None) -> Work | None:
    """Send ``tensor`` to rank ``dst``; it must not change before the Work is done."""
    if outsider(group):
        return None
    pg = world.of(group)
    peer = _peer(pg, dst, group_dst, "dst")
    if peer is None:
        raise ValueError("isend: give the destination rank")
    array = contiguous(plain(tensor, "tensor"))
    event = pg.event("send", (tensor,))
    pending = pg._engine.send(bytes_of(array), peer, tag)
    _C.event_end(event)
    return pg.message(pending, f"send to rank {pg._ranks[peer]}", [tensor])


def irecv(tensor, src: int | None = None, group=None, tag: int = 0, group_src: int | None = None) -> MessageWork | None:
    """Receive ``tensor`` from rank ``src``, or from any."""
    if outsider(group):
        return None
    pg = world.of(group)
    peer = _peer(pg, src, group_src, "src")
    out = Result(tensor, "tensor")
    event = pg.event("recv" if peer is not None else "recvAnySource", (tensor,))
    pending = pg._engine.receive(bytes_of(out.array), peer, tag)
    _C.event_end(event)
    return pg.message(
        pending, f"recv from rank {'any' if peer is None else pg._ranks[peer]}", [tensor], out.finish, peer
    )


def send(tensor, dst: int | None = None, group=None, tag: int = 0, group_dst: int | None = None) -> None:
    """As isend, done on return."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor, src: int | None = None, group=None, tag: int = 0, group_src: int | None = None) -> int:
    """As irecv, done on return. The global rank that sent it; -1 when this rank isn't in the group."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return world.of(group)._ranks[work.source_rank()]


class P2POp:
    """One message for ``batch_isend_irecv``: ``isend`` or ``irecv``, its tensor, and the other rank."""

    def __init__(self, op, tensor, peer: int | None = None, group=None, tag: int = 0, group_peer: int | None = None):
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        plain(tensor, "tensor")
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        self.group_peer = group_peer if group_peer is not None else world.of(group).group_rank(peer)
        self.peer = world.of(group)._ranks[self.group_peer]

    def __repr__(self) -> str:
        return f"P2POp({self.op.__name__} pg={world.of(self.group).group_name}, rank {self.peer}, {tuple(self.tensor.shape)}, {self.tensor.dtype})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start all messages; a Work for each."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    if not p2p_op_list:
        raise ValueError("batch_isend_irecv: expected at least one message")
    works = []
    for p in p2p_op_list:
        peer = {"group_dst" if p.op is isend else "group_src": p.group_peer}
        works.append(p.op(p.tensor, group=p.group, tag=p.tag, **peer))
    return [w for w in works if w is not None]
