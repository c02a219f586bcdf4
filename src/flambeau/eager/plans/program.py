"""Native programs: loops over NumPy's inner loops, worked out for fixed shapes (see csrc/core/call_plan.h).

A :class:`~.values.PlanValue` is where an array lies while the program runs. A :class:`Program` collects steps on values, of which ``assembly``
makes the CallPlan. What can't be said in steps raises :class:`~.values.NotPlanned`; the call then stays with the Python kernel.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from ...base import kernels
from ...base.quiet import errstate
from ...base.shapes import contiguous_strides
from .steps import KernelStep, Load, LoopStep, Operand, merged, ufunc_loops
from .values import REFUSED, NotPlanned, Place, PlanValue, Slot, bytes_of, narrow

LARGE = 1 << 16  # elements from which an operator may run a compiled kernel: those calls stay with the general way
WRITTEN = 1 << 24  # likewise where the result is written over an argument, and nothing is made
_LONG = 1 << 20  # operations from which a native kernel lets other threads run meanwhile
_DEEPEST = 8  # dimensions that a step by index may have

_FLOAT32 = np.dtype(np.float32)


class Result(NamedTuple):
    """A result's description, as csrc/core/call_plan_object.c reads it; strides and offset in bytes."""

    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


class Program:
    """Steps on values."""

    def __init__(self, most: int = LARGE):
        """``most``: how many elements a tensor argument has fewer than."""
        self.inside = False  # whether the steps are those of a composite's body
        self.most = most
        self.steps: list[LoopStep | KernelStep] = []
        self.counts: Counter[Place] = Counter()
        # Numbers of dtypes of the Python numbers, and bytes of the temporaries.
        self.numbers: list[int] = []
        self.temporaries: list[int] = []
        # A result that is None has no description.
        self.results: list[Result | None] = []
        self.constants: list[np.ndarray] = []
        self.inputs: list[PlanValue] = []
        # Temporaries that became results.
        self.promoted: dict[Slot, Slot] = {}

    # -- values ----------------------------------------------------------------------------------------------------------
    def tensor(self, a: np.ndarray) -> PlanValue:
        """The next tensor argument."""
        if a.size == 0 or a.size >= self.most:
            raise NotPlanned
        v = PlanValue(self._next(Place.TENSOR), a.shape, a.strides, a.dtype)
        self.inputs.append(v)
        return v

    def number(self, dtype: np.dtype) -> PlanValue:
        """The next Python number, as a value of ``dtype``."""
        v = PlanValue(self._next(Place.NUMBER), (), (), dtype)
        self.numbers.append(dtype.num)
        return v

    def constant(self, value, dtype=None) -> PlanValue:
        # An integer that doesn't fit is an OverflowError; what is said to a finite number that doesn't is the operator's own.
        with errstate(over="ignore"):
            a = np.array(value, dtype, order="C")
        if isinstance(value, float) and dtype is not None and (a.dtype.kind in "iub" or np.isinf(a) != np.isinf(value)):
            raise NotPlanned
        v = PlanValue(self._next(Place.CONSTANT), a.shape, a.strides, a.dtype)
        self.constants.append(a)
        return v

    def known(self, v: PlanValue) -> np.ndarray:
        """The elements of a constant, or of a view of one."""
        return np.ndarray(v.shape, v.dtype, self.constants[v.slot.which], v.offset, v.strides)

    def empty(self, shape, dtype: np.dtype, strides=None, *, result=False) -> PlanValue:
        """New memory: a temporary, or a result of the program. ``strides`` in elements; it is dense."""
        shape = tuple(shape)
        if math.prod(shape) == 0 or math.prod(shape) >= LARGE:
            raise NotPlanned
        strides = bytes_of(contiguous_strides(shape) if strides is None else strides, dtype)
        v = PlanValue(self._next(Place.RESULT if result else Place.TEMPORARY), shape, strides, dtype)
        if result:
            self.results.append(Result(dtype, shape, strides))
        else:
            self.temporaries.append(math.prod(shape) * dtype.itemsize)
        return v

    def memory(self, out, shape, dtype: np.dtype, strides=None) -> PlanValue:
        """Where a rule puts its result: ``out`` is a PlanValue when it fits, Place.RESULT for a result of the program, None for a temporary."""
        if isinstance(out, PlanValue) and out.shape == tuple(shape) and out.dtype == dtype:
            return out
        return self.empty(shape, dtype, strides, result=out is Place.RESULT)

    def promote(self, v: PlanValue) -> PlanValue:
        """A temporary, seen from its first element, as the next result of the program."""
        slot = self.promoted[v.slot] = self._next(Place.RESULT)
        self.temporaries[v.slot.which] = 0
        self.results.append(Result(v.dtype, v.shape, v.strides))
        return PlanValue(slot, v.shape, v.strides, v.dtype)

    def absent(self) -> None:
        """The next result of the program is None."""
        self._next(Place.RESULT)
        self.results.append(None)

    def attempt(self, fn):
        """``fn()``, or None where it is refused: then the program is as it was."""
        kept = [self.steps, self.numbers, self.results, self.temporaries, self.constants]
        before, counts = [len(x) for x in kept], self.counts.copy()
        try:
            return fn()
        except REFUSED:
            for x, n in zip(kept, before):
                del x[n:]
            self.counts = counts
            return None

    def _next(self, place: Place) -> Slot:
        self.counts[place] += 1
        return Slot(place, self.counts[place] - 1)

    def final(self, v: PlanValue) -> Slot:
        """The memory of a value in the whole program: what was promoted lies in a result's."""
        return self.promoted.get(v.slot, v.slot)

    # -- steps -----------------------------------------------------------------------------------------------------------
    def loops(self, loop: tuple, shape, operands, strides=None, order=None, transposed=True) -> None:
        """One inner loop over all of ``shape``; ``strides``: of each operand over it (broadcast when not given); see merged."""
        given = strides or [v.broadcast(shape) for v in operands]
        if loop[0] == "ufunc":
            sizes, rows = ufunc_loops(loop[1], shape, given, operands[-1].dtype.itemsize, order, transposed)
        else:
            sizes, rows = merged(shape, given, order, transposed)
        inner = sizes.pop() if sizes else 1
        steps = tuple(r.pop() if r else 0 for r in rows)
        self.steps.append(LoopStep(loop, tuple(sizes), (inner,), steps, _operands(operands, rows), []))

    def ufunc(self, ufunc: np.ufunc, operands: list, out: PlanValue | None, shape, like=None) -> PlanValue:
        """``ufunc`` of values and Python numbers, with NumPy's own choice of dtypes."""
        kinds = tuple(
            v.dtype if isinstance(v, PlanValue) else np.dtype(bool) if v is True or v is False else type(v)
            for v in operands
        )
        if not any(isinstance(k, np.dtype) for k in kinds) or complex in kinds:
            raise NotPlanned
        resolved = ufunc.resolve_dtypes((*kinds, None))
        values = [
            self.cast(v, d, shape) if isinstance(v, PlanValue) else self.constant(v, d)
            for v, d in zip(operands, resolved)
        ]
        if out is None or out.dtype != resolved[-1]:
            out = self.empty(shape, resolved[-1], like)
        self.loops(("ufunc", ufunc, tuple(d.num for d in resolved)), shape, [*values, out])
        return out

    def copy(self, v: PlanValue, out: PlanValue) -> PlanValue:
        """``v`` broadcast and cast into ``out``; from and to 16-bit floating point by way of float32, as kernels do."""
        if v.dtype != out.dtype and _FLOAT32 not in (v.dtype, out.dtype) and (narrow(v.dtype) or narrow(out.dtype)):
            v = self.cast(v, _FLOAT32)
        loop = ("copy", v.dtype.itemsize) if v.dtype == out.dtype else ("cast", v.dtype.num, out.dtype.num)
        self.loops(loop, out.shape, [v, out])
        return out

    def cast(self, v: PlanValue, dtype: np.dtype, shape=None) -> PlanValue:
        """``v`` with another dtype: itself, or a dense copy."""
        if v.dtype == dtype:
            return v
        return self.copy(v, self.empty(v.shape, dtype))

    def select(self, condition, a, b, out: PlanValue | None, shape, like=None) -> PlanValue:
        """where(condition, a, b), with NumPy's promotion."""
        if not isinstance(condition, PlanValue):
            condition = self.constant(bool(condition))
        kinds = [v.dtype if isinstance(v, PlanValue) else v for v in (a, b)]
        dtype = np.result_type(*kinds)
        condition = self.cast(condition, np.dtype(bool))
        a, b = (self.cast(v, dtype) if isinstance(v, PlanValue) else self.constant(v, dtype) for v in (a, b))
        if out is None or out.dtype != dtype:
            out = self.empty(shape, dtype, like)
        self.loops(("select", dtype.itemsize), shape, [condition, a, b, out])
        return out

    def matmul(self, shape, operands, strides, sizes, core) -> None:
        """Matrix products over the loops of ``shape``. ``sizes``: (m, k, n); ``core``: the strides of (m, k), (k, n), (m, n)."""
        num = operands[0].dtype.num
        order = strides[-1]
        loops, rows = merged(shape, strides, order)
        loop = ("ufunc", np.matmul, (num, num, num))
        self.steps.append(LoopStep(loop, tuple(loops), (1, *sizes), (0, 0, 0, *core), _operands(operands, rows), []))

    def gather(self, shape, source: PlanValue, source_strides, out: PlanValue, loads: list[Load]) -> None:
        """``out[i] = source[... i ... load(i) ...]``. Each of ``loads`` is one of its indices."""
        self._by_index(("gather",), shape, Operand(source, source_strides), Operand(out, out.strides), loads)

    def scatter(self, how: str, shape, source: PlanValue, out: PlanValue, out_strides, loads) -> None:
        """``out[... i ... load(i) ...] = source[i]``, or combined with what is there: ``how`` assign, add, multiply, minimum, maximum."""
        loop = ("scatter", how, out.dtype.num)
        self._by_index(loop, shape, Operand(source, source.broadcast(shape)), Operand(out, out_strides), loads)

    def _by_index(self, loop, shape, read: Operand, written: Operand, loads: list[Load]) -> None:
        block, dims = written.value.dtype.itemsize, len(shape)
        rows = [list(read.strides), list(written.strides), *(list(load.index.strides) for load in loads)]
        sizes = list(shape)
        # Blocks of bytes are moved, as long as they lie side by side on both sides; what is combined goes element by element.
        moved = loop[0] == "gather" or loop[1] == "assign"
        while (
            moved
            and sizes
            and (sizes[-1] == 1 or (rows[0][-1] == rows[1][-1] == block and not any(r[-1] for r in rows[2:])))
        ):
            block *= sizes.pop()
            for r in rows:
                r.pop()
        if dims > _DEEPEST:
            raise NotPlanned
        loads = [load._replace(index=Operand(load.index.value, tuple(r))) for load, r in zip(loads, rows[2:])]
        operands = _operands([read.value, written.value], rows)
        self.steps.append(LoopStep(loop, tuple(sizes), (), (), operands, loads, block))

    def native(self, kernel, operands: list, results: list, flops, numbers: dict) -> None:
        """A native kernel over values; ``flops``: about how many operations it makes."""
        there = kernels.given(kernel, operands, results)
        given = iter([v for v in (*operands, *results) if v is not None])
        views = [next(given) if here else None for here in there]
        self.steps.append(KernelStep(kernel.capsule, views, tuple(map(int, kernel.pack(**numbers))), flops >= _LONG))


def _operands(values, rows) -> list[Operand]:
    return [Operand(v, tuple(r)) for v, r in zip(values, rows)]
