"""Gradients of one module on their way from all ranks to the shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ... import _C
from ...autograd.grad_mode import no_grad
from ..work import Work

if TYPE_CHECKING:
    from ._shards import Shards

__all__ = ["Piece", "Reduction"]


@dataclass
class Piece:
    """What one collective reduces: which parameters, the elements of each, the memory it writes, and its work (None when it is done)."""

    members: list[int]
    sizes: list[int]
    out: object
    work: Work | None


class Reduction:
    """The reductions of one module's gradients."""

    def __init__(self, shards: Shards, pieces: list[Piece]):
        self.shards, self.pieces = shards, pieces

    def wait(self) -> list:
        """The gradients of the shards, None where there is none."""
        shards = self.shards
        ranks, rank, made = shards.group.size(), shards.group.rank(), [None] * len(shards.params)
        for piece in self.pieces:
            if piece.work is not None:
                piece.work.wait()
            out = piece.out if shards.factor is None else piece.out / shards.factor
            for i, vector in zip(piece.members, out.split(piece.sizes)):
                p = shards.params[i]
                made[i] = p.part_of(vector.to(p.p.dtype), ranks, rank)
        self.pieces = []
        return made

    def accumulate(self) -> None:
        """Wait, and add the gradients to those of the shards, as the autograd engine would."""
        params = self.shards.params
        with no_grad():
            for p, g in zip(params, self.wait()):
                if g is not None:
                    p.p.grad = g if p.p.grad is None else p.p.grad.add_(g)


def observed(p) -> bool:
    """Whether somebody has hooks on the gradient of a leaf, which have to run with it."""
    return bool(_C.leaf_hooks(p, False) or _C.leaf_hooks(p, True))
