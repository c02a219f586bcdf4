"""Where arrays lie while a native program runs, and what ends an attempt to make one."""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np

from ...base import dtypes
from ...base.device import CPU
from ...base.records import slotted
from ...core.definition import TensorMeta
from ...core.indexing import NotLinear

_NARROW = frozenset((dtypes.float16.np, dtypes.bfloat16.np))


def narrow(dtype: np.dtype) -> bool:
    """A 16-bit floating-point dtype: what has it is computed in float32 and rounded once."""
    return dtype in _NARROW


class NotPlanned(Exception):
    """This call can't be put into native steps."""


# What a kernel would raise is raised by the kernel: these end an attempt.
REFUSED = (
    NotPlanned, NotLinear, ArithmeticError, AttributeError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError,
)  # fmt: skip


class Place(enum.Enum):
    """Whose memory an array lies in. A call plan numbers them all in this order."""

    TENSOR = enum.auto()
    NUMBER = enum.auto()
    RESULT = enum.auto()
    TEMPORARY = enum.auto()
    CONSTANT = enum.auto()


class Slot(NamedTuple):
    """One array's memory: the ``which``-th of its place."""

    place: Place
    which: int


@slotted(eq=False)
class PlanValue:
    """An array in the memory of ``slot``; ``strides`` and ``offset`` in bytes."""

    slot: Slot
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    offset: int = 0

    def seen(self, shape, strides, *, dtype: np.dtype | None = None, offset: int = 0) -> PlanValue:
        """A view: the memory of this value, ``offset`` bytes behind its first element."""
        return PlanValue(self.slot, tuple(shape), tuple(strides), dtype or self.dtype, self.offset + offset)

    def broadcast(self, shape) -> tuple[int, ...]:
        """Strides over the loops of ``shape``."""
        pad = len(shape) - len(self.shape)
        own = (0 if n == 1 else s for n, s in zip(self.shape, self.strides))
        return (0,) * pad + tuple(own)

    def element_strides(self) -> tuple[int, ...]:
        return tuple(s // self.dtype.itemsize for s in self.strides)

    def extent(self) -> tuple[int, int]:
        """The first and the last byte that its elements have, from its first element's."""
        steps = [s * (n - 1) for n, s in zip(self.shape, self.strides)]
        return sum(min(0, s) for s in steps), sum(max(0, s) for s in steps) + self.dtype.itemsize - 1


def value_meta(x):
    """What rules about shapes and promotion look at."""
    if isinstance(x, PlanValue):
        return TensorMeta(x.shape, x.element_strides(), dtypes.from_numpy(x.dtype), CPU)
    return [value_meta(y) for y in x] if isinstance(x, list) else x


def bytes_of(strides, dtype) -> tuple[int, ...]:
    return tuple(s * dtype.itemsize for s in strides)
