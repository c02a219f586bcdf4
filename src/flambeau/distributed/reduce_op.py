"""ReduceOp: how the elements of all ranks become one."""

from __future__ import annotations

import enum

from ..base.dtypes import DType
from . import elements

__all__ = ["RedOpType", "ReduceOp", "native", "premultiplied"]


class RedOpType(enum.IntEnum):
    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8
    UNUSED = 9

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    __str__ = __repr__


class ReduceOp:
    """``ReduceOp.SUM``, ``AVG``, ``PRODUCT``, ``MIN``, ``MAX``, ``BAND``, ``BOR``, ``BXOR``; ``PREMUL_SUM`` has a factor.

    Integers wrap; 16-bit floats are reduced in float32 and rounded once; bools are joined by "or" (sums, MAX) or "and" (products, MIN)."""

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM, UNUSED = RedOpType

    def __init__(self, op: RedOpType | ReduceOp, factor=None):
        self.op = op.op if isinstance(op, ReduceOp) else RedOpType(op)
        self.factor = factor

    def __eq__(self, other) -> bool:
        return self.op == (other.op if isinstance(other, ReduceOp) else other)

    def __hash__(self) -> int:
        return hash(self.op)

    def __repr__(self) -> str:
        return repr(self.op)


def premultiplied(factor) -> ReduceOp:
    """The sum of everything times ``factor``."""
    return ReduceOp(RedOpType.PREMUL_SUM, factor)


def native(op, dtype: DType) -> tuple[int, object]:
    """(number of the operation in csrc/distributed/exchange.h, factor to multiply with before, or None). ValueError and RuntimeError for what
    there is no such reduction of."""
    found = op if isinstance(op, ReduceOp) else ReduceOp(op)
    kind = found.op
    if kind is RedOpType.PREMUL_SUM:
        return RedOpType.SUM, found.factor
    if kind is RedOpType.UNUSED:
        raise ValueError("ReduceOp.UNUSED is no operation")
    if not elements.reducible(dtype, kind):
        raise RuntimeError(f"ReduceOp.{kind.name} of {dtype} tensors isn't defined")
    return int(kind), None
