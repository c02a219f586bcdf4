"""Native programs: loops over NumPy's inner loops, worked out for fixed shapes (see csrc/core/call_plan.h).

A :class:`PlanValue` is where an array lies while the program runs. A :class:`Program` collects steps on values and makes the CallPlan. What
can't be said in steps raises :class:`NotPlanned`; the call then stays with the Python kernel.
"""

from __future__ import annotations

import math

import numpy as np

from .. import _C
from ..base import dtypes, kernels
from ..base.device import CPU
from ..base.records import slotted
from ..base.shapes import broadcast_shapes, contiguous_strides
from ..core.definition import TensorMeta
from ..core.indexing import NotLinear

WRITTEN = 1 << 24  # likewise where the result is written over an argument, and nothing is made
SHORT = 6  # elements of an inner loop that costs more to enter than to run
LONG = 1 << 20  # operations from which a native kernel lets other threads run meanwhile
LARGE = 1 << 16  # elements from which an operator may run a compiled kernel: those calls stay with the general way


_FLOAT32 = np.dtype(np.float32)
_NARROW = frozenset((dtypes.float16.np, dtypes.bfloat16.np))


def narrow(dtype: np.dtype) -> bool:
    """A 16-bit floating-point dtype: what has it is computed in float32 and rounded once."""
    return dtype in _NARROW


class NotPlanned(Exception):
    """This call can't be put into native steps."""


# NumPy's loops of these (seen in 2.4 with AVX-512) write truth values side by side wherever they are to go.
SIDE_BY_SIDE = frozenset({np.isnan, np.isinf, np.signbit})
# Distances in bytes between operands from which its loop of `negative` (same version) reads the wrong ones, unless results lie side by side.
NEGATED_WRONG = (16, 64)


def _astray(ufunc, rows, item: int) -> bool:
    """Whether NumPy's inner loop is wrong for these strides (of each operand over the loops; the last is the result's, of ``item`` bytes)."""
    steps = [r[-1] for r in rows]
    if steps[-1] == item:
        return False
    return ufunc in SIDE_BY_SIDE or (ufunc is np.negative and steps[0] in NEGATED_WRONG)


# What a kernel would raise is raised by the kernel: these end an attempt.
REFUSED = (
    NotPlanned, NotLinear, ArithmeticError, AttributeError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError,
)  # fmt: skip


@slotted(eq=False)
class PlanValue:
    """``slot``: ("tensor" | "number" | "result" | "temporary" | "constant", which); ``strides`` and ``offset`` in bytes."""

    slot: tuple[str, int]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    offset: int = 0

    def broadcast(self, shape) -> tuple[int, ...]:
        """Strides over the loops of ``shape``."""
        pad = len(shape) - len(self.shape)
        own = (0 if n == 1 else s for n, s in zip(self.shape, self.strides))
        return (0,) * pad + tuple(own)


def value_meta(x):
    """What rules about shapes and promotion look at."""
    if isinstance(x, PlanValue):
        strides = tuple(s // x.dtype.itemsize for s in x.strides)
        return TensorMeta(x.shape, strides, dtypes.from_numpy(x.dtype), CPU)
    return [value_meta(y) for y in x] if isinstance(x, list) else x


def bytes_of(strides, dtype) -> tuple[int, ...]:
    return tuple(s * dtype.itemsize for s in strides)


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
    if (
        transposed and sizes and sizes[-1] < SHORT < sizes[longest]
    ):  # windows, say: a few long rows instead of many short ones
        for part in (sizes, *out):
            part.append(part.pop(longest))
    return sizes, out


@slotted
class _KernelStep:
    """A step that runs a native kernel."""

    fn: object
    operands: list[PlanValue]
    numbers: tuple[int, ...]
    long: bool


class Program:
    """Steps on values."""

    def __init__(self, most: int = LARGE):
        """``most``: how many elements a tensor argument has fewer than."""
        self.inside = False  # whether the steps are those of a composite's body
        self.most = most
        self.steps: list[tuple] = []
        self.counts = {"tensor": 0, "number": 0, "result": 0, "temporary": 0, "constant": 0}
        self.numbers: list[int] = []
        self.results: list[tuple] = []
        self.temporaries: list[int] = []
        self.constants: list[np.ndarray] = []
        self.extents: list[tuple[int, int]] = []
        self.inputs: list[PlanValue] = []
        self.promoted: dict[tuple, tuple] = {}

    # -- values ----------------------------------------------------------------------------------------------------------
    def tensor(self, a: np.ndarray) -> PlanValue:
        """The next tensor argument."""
        if a.size == 0 or a.size >= self.most:
            raise NotPlanned
        v = PlanValue(("tensor", self._next("tensor")), a.shape, a.strides, a.dtype)
        self.inputs.append(v)
        return v

    def number(self, dtype: np.dtype) -> PlanValue:
        """The next Python number, as a value of ``dtype``."""
        v = PlanValue(("number", self._next("number")), (), (), dtype)
        self.numbers.append(dtype.num)
        return v

    def constant(self, value, dtype=None) -> PlanValue:
        # An integer that doesn't fit is an OverflowError; what is said to a finite number that doesn't is the operator's own.
        with np.errstate(over="ignore"):
            a = np.array(value, dtype, order="C")
        if isinstance(value, float) and dtype is not None and (a.dtype.kind in "iub" or np.isinf(a) != np.isinf(value)):
            raise NotPlanned
        v = PlanValue(("constant", self._next("constant")), a.shape, a.strides, a.dtype)
        self.constants.append(a)
        return v

    def known(self, v: PlanValue) -> np.ndarray:
        """The elements of a constant, or of a view of one."""
        return np.ndarray(v.shape, v.dtype, self.constants[v.slot[1]], v.offset, v.strides)

    def empty(self, shape, dtype: np.dtype, strides=None, *, result=False) -> PlanValue:
        """New memory: a temporary, or a result of the program. ``strides`` in elements; it is dense."""
        shape = tuple(shape)
        if math.prod(shape) == 0 or math.prod(shape) >= LARGE:
            raise NotPlanned
        strides = bytes_of(contiguous_strides(shape) if strides is None else strides, dtype)
        kind = "result" if result else "temporary"
        v = PlanValue((kind, self._next(kind)), shape, strides, dtype)
        if result:
            self.results.append((dtype, shape, strides, 0))
        else:
            self.temporaries.append(math.prod(shape) * dtype.itemsize)
        return v

    def memory(self, out, shape, dtype: np.dtype, strides=None) -> PlanValue:
        """Where a rule puts its result: ``out`` is a PlanValue when it fits, "result" for a result of the program, None for a temporary."""
        if isinstance(out, PlanValue) and out.shape == tuple(shape) and out.dtype == dtype:
            return out
        return self.empty(shape, dtype, strides, result=out == "result")

    def promote(self, v: PlanValue) -> PlanValue:
        """A temporary, seen from its first element, as the next result of the program."""
        slot = self.promoted[v.slot] = ("result", self._next("result"))
        self.temporaries[v.slot[1]] = 0
        self.results.append((v.dtype, v.shape, v.strides, 0))
        return PlanValue(slot, v.shape, v.strides, v.dtype)

    def absent(self) -> None:
        """The next result of the program is None."""
        self._next("result")
        self.results.append(None)

    def attempt(self, fn):
        """``fn()``, or None where it is refused: then the program is as it was."""
        kept = [self.steps, self.numbers, self.results, self.temporaries, self.constants]
        before, counts = [len(x) for x in kept], dict(self.counts)
        try:
            return fn()
        except REFUSED:
            for x, n in zip(kept, before):
                del x[n:]
            self.counts = counts
            return None

    def _next(self, kind: str) -> int:
        self.counts[kind] += 1
        return self.counts[kind] - 1

    # -- steps -----------------------------------------------------------------------------------------------------------
    def loops(self, loop: tuple, shape, operands, strides=None, order=None, transposed=True) -> None:
        """One inner loop over all of ``shape``; ``strides``: of each operand over it (broadcast when not given); see merged."""
        given = strides or [v.broadcast(shape) for v in operands]
        sizes, rows = merged(shape, given, order, transposed)
        if loop[0] == "ufunc" and sizes and _astray(loop[1], rows, operands[-1].dtype.itemsize):
            sizes, rows = merged(shape, given, order, False)
            if _astray(loop[1], rows, operands[-1].dtype.itemsize):
                raise NotPlanned
        inner = sizes.pop() if sizes else 1
        steps = tuple(r.pop() if r else 0 for r in rows)
        self.steps.append((loop, tuple(sizes), (inner,), steps, [(v, tuple(r)) for v, r in zip(operands, rows)], [], 0))

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
        self.steps.append(
            (
                ("ufunc", np.matmul, (num, num, num)),
                tuple(loops),
                (1, *sizes),
                (0, 0, 0, *core),
                [(v, tuple(r)) for v, r in zip(operands, rows)],
                [],
                0,
            )
        )

    def gather(self, shape, source: PlanValue, source_strides, out: PlanValue, loads) -> None:
        """``out[i] = source[... i ... load(i) ...]``. ``loads``: (index value, its strides over the loops, size, stride, wrap)."""
        self._by_index(("gather",), shape, (source, source_strides), (out, out.strides), loads)

    def scatter(self, how: str, shape, source: PlanValue, out: PlanValue, out_strides, loads) -> None:
        """``out[... i ... load(i) ...] = source[i]``, or combined with what is there: ``how`` assign, add, multiply, minimum, maximum."""
        loop = ("scatter", how, out.dtype.num)
        self._by_index(loop, shape, (source, source.broadcast(shape)), (out, out_strides), loads)

    def _by_index(self, loop, shape, read, written, loads) -> None:
        (source, source_strides), (out, out_strides) = read, written
        block, dims = out.dtype.itemsize, len(shape)
        rows = [list(source_strides), list(out_strides), *(list(s) for _, s, *_ in loads)]
        sizes = list(shape)
        moved = loop[0] == "gather" or loop[1] == "assign"  # blocks of bytes, else element by element
        while (
            moved
            and sizes
            and (sizes[-1] == 1 or (rows[0][-1] == rows[1][-1] == block and not any(r[-1] for r in rows[2:])))
        ):
            block *= sizes.pop()
            for r in rows:
                r.pop()
        if dims > 8:
            raise NotPlanned
        self.steps.append(
            (
                loop,
                tuple(sizes),
                (),
                (),
                [(source, tuple(rows[0])), (out, tuple(rows[1]))],
                [
                    ((v, tuple(r)), n, stride, v.dtype.itemsize, wrap)
                    for (v, _, n, stride, wrap), r in zip(loads, rows[2:])
                ],
                block,
            )
        )

    def native(self, kernel, operands: list, results: list, flops, numbers: dict) -> None:
        """A native kernel over values; ``flops``: about how many operations it makes."""
        there = kernels.given(kernel, operands, results)
        given = iter([v for v in (*operands, *results) if v is not None])
        views = [next(given) if here else None for here in there]
        self.steps.append(_KernelStep(kernel.capsule, views, tuple(map(int, kernel.pack(**numbers))), flops >= LONG))

    def _placed(self):
        """(how many there are of each kind of slot, slot -> its number, sizes of temporaries, constants): what no step uses is left out, and a
        temporary that is done with makes room for others of its size."""
        first, last = {}, {}
        for k, step in enumerate(self.steps):
            operands = (
                [v for v in step.operands if v is not None]
                if isinstance(step, _KernelStep)
                else [v for v, _ in (*step[4], *(a[0] for a in step[5]))]
            )
            for v in operands:
                slot = self.promoted.get(v.slot, v.slot)
                first.setdefault(slot, k)
                last[slot] = k
        which, sizes, free, constants = {}, [], {}, []
        done = sorted((k, slot) for slot, k in last.items() if slot[0] == "temporary")
        for slot, begin in first.items():  # in the order in which they come into use
            if slot[0] == "constant":
                which[slot] = len(constants)
                constants.append(self.constants[slot[1]])
            elif slot[0] == "temporary":
                while done and done[0][0] < begin:
                    gone = done.pop(0)[1]
                    free.setdefault(self.temporaries[gone[1]], []).append(which[gone])
                room = free.get(self.temporaries[slot[1]])
                which[slot] = room.pop() if room else len(sizes)
                if which[slot] == len(sizes):
                    sizes.append(self.temporaries[slot[1]])
        counts = {**self.counts, "temporary": len(sizes), "constant": len(constants)}
        return counts, which, tuple(sizes), tuple(constants)

    # -- the call plan ------------------------------------------------------------------------------------------------------
    def call_plan(self, *, target: PlanValue | None = None, many=False, outside=False) -> _C.CallPlan:
        """``target``: the tensor argument that is written and returned; ``outside``: no other may be it."""
        counts, which, temporaries, constants = self._placed()
        bases, at = {}, 0
        for kind in ("tensor", "number", "result", "temporary", "constant"):
            bases[kind], at = at, at + counts[kind]

        def place(v: PlanValue) -> int:
            kind, k = self.promoted.get(v.slot, v.slot)
            return bases[kind] + which.get((kind, k), k)

        def spec(step):
            if isinstance(step, _KernelStep):
                views = tuple(v and (place(v), v.offset, v.shape, v.strides) for v in step.operands)
                return step.fn, views, step.numbers, step.long
            loop, dims, inner, strides, operands, loads, block = step
            loads = tuple(((place(v), v.offset, r), n, s, item, int(wrap)) for (v, r), n, s, item, wrap in loads)
            return loop, dims, inner, strides, tuple((place(v), v.offset, r) for v, r in operands), loads, block

        steps = tuple(map(spec, self.steps))
        extents = None
        if target is not None:
            extents = []
            for v in self.inputs:
                lo = sum(min(0, s * (n - 1)) for n, s in zip(v.shape, v.strides))
                hi = sum(max(0, s * (n - 1)) for n, s in zip(v.shape, v.strides)) + v.dtype.itemsize - 1
                same = (
                    not outside and v.shape == target.shape and v.strides == target.strides and v.dtype == target.dtype
                )
                extents += [lo, hi, int(same)]
        more = {} if target is None else {"target": target.slot[1], "extents": tuple(extents)}
        return _C.CallPlan(
            self.counts["tensor"],
            tuple(self.results),
            steps=steps,
            temporaries=temporaries,
            constants=constants,
            numbers=tuple(self.numbers),
            many=many,
            **more,
        )


def common_shape(values) -> tuple[int, ...]:
    return broadcast_shapes(*[v.shape for v in values])
