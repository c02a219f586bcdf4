"""The steps of a native program as records, and the loops over which they run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.records import slotted
from .values import NotPlanned, PlanValue

_SHORT = 6  # elements of an inner loop that costs more to enter than to run
# NumPy's loops of these (seen in 2.4 with AVX-512) write truth values side by side wherever they are to go.
_SIDE_BY_SIDE = frozenset({np.isnan, np.isinf, np.signbit})
# Distances in bytes between operands from which its loop of `negative` (same version) reads the wrong ones, unless results lie side by side.
_NEGATED_WRONG = (16, 64)


class Operand(NamedTuple):
    """An array and its strides, in bytes, over the loops of a step."""

    value: PlanValue
    strides: tuple[int, ...]


class Load(NamedTuple):
    """An index that is read from an array: it counts steps of ``stride`` bytes along ``size`` places; ``wrap``: negative ones count from the end."""

    index: Operand
    size: int
    stride: int
    wrap: bool


@slotted
class LoopStep:
    """An inner loop that is called for all places of outer ones."""

    # What runs, in the words of csrc/core/call_plan_object.c: ("ufunc", ufunc, numbers of dtypes), ("copy", bytes), ("cast", from, to),
    # ("select", bytes), ("gather",), ("scatter", how, number of the dtype).
    loop: tuple
    sizes: tuple[int, ...]
    # The inner loop's own sizes and strides, as NumPy's loops take them.
    inner: tuple[int, ...]
    inner_strides: tuple[int, ...]
    operands: list[Operand]
    loads: list[Load]
    # Bytes of a block that is moved as a whole; 0 where the inner loop takes elements.
    block: int = 0

    def values(self) -> list[PlanValue]:
        return [o.value for o in (*self.operands, *(load.index for load in self.loads))]


@slotted
class KernelStep:
    """A step that runs a native kernel; an operand that is left out is None."""

    fn: object
    operands: list[PlanValue | None]
    numbers: tuple[int, ...]
    # Whether other threads run meanwhile.
    long: bool

    def values(self) -> list[PlanValue]:
        return [v for v in self.operands if v is not None]


def merged(shape, rows, order=None, transposed=True):
    """The loops over ``shape`` with fewer dimensions: (sizes, strides of each operand), dimensions of size 1 dropped, neighbours joined where
    every operand runs through them in one go. The last is the inner loop, by the strides in ``order`` (default: of the last operand); ``transposed``:
    where that is short, the longest one."""
    order = rows[-1] if order is None else order
    dims = sorted((d for d, n in enumerate(shape) if n != 1), key=lambda d: -abs(order[d]))
    sizes: list[int] = []
    out: list[list[int]] = [[] for _ in rows]
    for d in dims:
        n = shape[d]
        if sizes and all(s[-1] == r[d] * n for s, r in zip(out, rows)):
            sizes[-1] *= n
            for s, r in zip(out, rows):
                s[-1] = r[d]
        else:
            sizes.append(n)
            for s, r in zip(out, rows):
                s.append(r[d])
    longest = max(range(len(sizes)), key=sizes.__getitem__, default=0)
    # Windows, say: a few long rows instead of many short ones.
    if transposed and sizes and sizes[-1] < _SHORT < sizes[longest]:
        for part in (sizes, *out):
            part.append(part.pop(longest))
    return sizes, out


def ufunc_loops(ufunc: np.ufunc, shape, rows, item: int, order=None, transposed=True):
    """``merged`` for the loop of a ufunc whose result has elements of ``item`` bytes: strides for which NumPy's own loop is wrong are left out."""
    for how in (transposed, False):
        sizes, found = merged(shape, rows, order, how)
        if not sizes or not _astray(ufunc, found, item):
            return sizes, found
    raise NotPlanned


def _astray(ufunc: np.ufunc, rows, item: int) -> bool:
    """Whether NumPy's inner loop is wrong for these strides (of each operand over the loops; the last is the result's, of ``item`` bytes)."""
    steps = [r[-1] for r in rows]
    if steps[-1] == item:
        return False
    return ufunc in _SIDE_BY_SIDE or (ufunc is np.negative and steps[0] in _NEGATED_WRONG)
