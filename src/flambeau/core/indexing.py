"""What coordinate maps of index operators work with: loop indices, and bounds."""

from __future__ import annotations

from .. import _C
from ..base.errors import OutOfBounds
from ..base.records import slotted
from .operator import OpOverload


@slotted
class Loop:
    """The k-th loop index, running over ``size`` values."""

    k: int
    size: int


class Description:
    """What ``coords`` may ask besides its arguments."""

    def ndim(self, t):
        return len(t.shape)


def describe(args) -> Description:
    return Description()


def is_full_loop(c, n: int) -> bool:
    return isinstance(c, Loop) and c.size == n


def check_bounds(op: OpOverload, c, n: int):
    """Non-negative indices. IndexError naming the operator, the value and the size."""
    if c.size:
        lo, hi = int(c.min()), int(c.max())
        least = -n if op.definition.wrap else 0
        if lo < least or hi >= n:
            bad = lo if lo < least else hi
            raise OutOfBounds(f"{op._opname}: index {bad} is out of bounds for dimension with size {n}")
        if lo < 0:
            return c + (c < 0) * n
    return c


def numel(t: _C.TensorBase) -> int:
    return t._shape.numel()
