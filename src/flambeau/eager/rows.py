"""Native kernels of the override "rows" on arrays, at once: for the first calls, which have no call plan."""

from __future__ import annotations

import numpy as np

from ..base import dtypes
from ..base.device import CPU
from ..base.memory_format import is_last
from ..core import native_kernels
from ..core.handler import Handler
from .plans.values import REFUSED, bytes_of

__all__ = ["REFUSED", "rows_of_arrays"]


def rows_of_arrays(op, arrays):
    """The results, arrays: the bits are those of the call plan that later calls have. An exception of ``REFUSED`` where it names no kernel."""
    made = op.overrides["rows"](ArrayCalls(), *(Held(x) if isinstance(x, np.ndarray) else x for x in arrays))
    return tuple(m.array for m in made) if isinstance(made, list) else made.array


class Held:
    """An array as the override "rows" sees it."""

    __slots__ = ("array", "dtype", "shape")

    device = CPU

    def __init__(self, array: np.ndarray):
        self.array, self.shape, self.dtype = array, array.shape, dtypes.from_numpy(array.dtype)

    @property
    def strides(self):
        return tuple(s // self.array.itemsize for s in self.array.strides)


class ArrayCalls(Handler):
    """What the override "rows" of an operator is handed where there is no call plan: kernels run at once."""

    rules = native_kernels.SUBJECTS

    def launch(self, kernel, operands, outs, flops, /, **numbers) -> list[Held]:
        made = [Held(np.ndarray(o.shape, o.dtype.np, strides=bytes_of(o.strides, o.dtype.np))) for o in outs]
        kernel([x and x.array for x in operands], [m.array for m in made], **numbers)
        return made

    def contiguous(self, x: Held) -> Held:
        return Held(np.ascontiguousarray(x.array).reshape(x.shape))

    def image(self, x: Held) -> Held:
        return x if is_last(x.shape, x.strides) else self.contiguous(x)

    def part(self, x: Held, shape, strides) -> Held:
        return Held(x.array.reshape(shape))

    def as_dtype(self, x: Held, dtype) -> Held:
        return x if x.dtype is dtype else Held(x.array.astype(dtype.np))
