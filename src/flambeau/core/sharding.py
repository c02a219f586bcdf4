"""What an operator can say of cutting its arguments into parts (the override ``"sharding"``), beside what follows from its kind."""

from __future__ import annotations

from ..base.records import slotted

__all__ = ["Apart", "Letters", "Rows"]


class Letters:
    """``Letters("bh..,bh..->bh..,bh.")``: a term for each argument of the schema (empty for what is no tensor, trailing ones left out), a letter for
    each dimension. Parts along a letter may be computed apart; a result without the letter is the sum of the parts' results."""

    def __init__(self, text: str):
        left, _, right = text.partition("->")
        self.ins, self.outs = left.split(","), right.split(",")


@slotted
class Apart:
    """All tensors, arguments and results, have the same dimensions, and whatever isn't in the argument ``dim`` is gone along one by one.
    ``linear``: the result is linear in all tensors together."""

    dim: str = "dim"
    linear: bool = False


@slotted
class Rows:
    """The result is ``source[index]``, rows of the argument ``source``: beside what its kind says, parts of the rows give summands, in which rows
    that are elsewhere are zeros. ``dim``: the argument that tells the dimension of the rows; then ``index`` has the shape of the result."""

    source: str
    index: str
    dim: str | None = None
