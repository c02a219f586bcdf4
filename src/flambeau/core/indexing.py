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


class NotLinear(Exception):
    """A coordinate isn't a sum of multiples of loop indices."""


class Linear:
    """``start`` plus multiples of loop indices: {number of the loop: (loop, factor)}."""

    def __init__(self, start: int, terms: dict):
        self.start, self.terms = start, terms

    def within(self, n: int) -> bool:
        """Whether all its values are in [0, n)."""
        ends = [(loop.size - 1) * factor for loop, factor in self.terms.values()]
        return 0 <= self.start + sum(min(e, 0) for e in ends) and self.start + sum(max(e, 0) for e in ends) < n


def linear(x) -> Linear:
    if isinstance(x, Linear):
        return x
    if isinstance(x, Loop):
        return Linear(0, {x.k: (x, 1)})
    if x.__class__ is not int:
        raise NotLinear
    return Linear(x, {})


class LinearIndex:
    """The arithmetic handler of coordinate maps that are linear. What isn't raises NotLinear."""

    @staticmethod
    def add(a, b):
        a, b = linear(a), linear(b)
        terms = dict(a.terms)
        for k, (loop, factor) in b.terms.items():
            terms[k] = (loop, factor + terms[k][1] if k in terms else factor)
        return Linear(a.start + b.start, terms)

    @staticmethod
    def mul(a, b):
        a, b = linear(a), linear(b)
        if a.terms and b.terms:
            raise NotLinear
        (a, by) = (a, b.start) if a.terms else (b, a.start)
        return Linear(a.start * by, {k: (loop, factor * by) for k, (loop, factor) in a.terms.items()})

    @classmethod
    def sub(cls, a, b):
        return cls.add(a, cls.mul(b, -1))

    def __getattr__(self, name):
        raise NotLinear


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
            raise OutOfBounds(f"{op._opname}: index {bad} is out of bounds for dimension with size {n}", bad)
        if lo < 0:
            return c + (c < 0) * n
    return c


def numel(t: _C.TensorBase) -> int:
    return t._shape.numel()
