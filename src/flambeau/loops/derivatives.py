"""Derivatives of native loops: ``flambeau::loop_cotangents``, ``flambeau::loop_tangents``, and ``flambeau::loop_derivative`` for higher orders.

The loop runs again on its operands as they were before it, by the kernel that notes each operation on a tape (:mod:`tape`), and the tape is gone
through once for each set of cotangents or tangents. So nothing of a loop but its operands is kept for the backward pass, and what a derivative
costs is a second run and 24 bytes for each operation on floats that depend on an array of floats.

A derivative of a derivative is taken of the list of a run's operations (:mod:`operations`), 32 bytes for each and some four times as many for each
further order.

The kernel runs in an arena: one piece of memory that holds copies of the operands, the results and the loop's own buffers, and behind it a shadow
of the same size, which holds the numbers of the elements' notes.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import os

import numpy as np

from ..base.device import CPU
from ..base.shapes import contiguous_strides
from ..core.declare import extern
from ..core.definition import TensorMeta
from ..inductor.settings import config
from .arguments import RUNTIME
from .checkpoints import FULL, NO_SIGNAL, START, Windows, are_possible, budget_of, merged, renumbered
from .operations import ENTRY, OperationList, pullback
from .operator import _parsed, loop
from .tape import FORWARD, NOTE, REVERSE, TAPE_RECORD

__all__ = ["loop_cotangents", "loop_derivative", "loop_tangents"]

ALIGNED = 64
ERRORS = 8  # slots behind those of the results


@functools.lru_cache(256)
def _address(text: str) -> int:
    cache = importlib.import_module("flambeau.inductor.machine.cache")  # made when it is first run: it imports LLVM
    name = cache.kernel_name(text)
    return cache.addresses({name: text.replace("@KERNEL", f"@{name}")}, optimise=True)[name]


@functools.lru_cache(256)
def _function(text: str, arguments: int):
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * arguments)(_address(text))


def _limit() -> int:
    """Bytes that a tape may take: the setting, or half of the machine's memory. They are used as they are written."""
    return config.native_loop_tape_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


class TooLong(Exception):
    """The tape has no room for all notes."""


class Run:
    """A loop's run on these arrays, by a kernel that notes what it does: ``kernel`` names it in the program, its notes have ``width`` bytes.
    ``given`` and ``made``: for each operand (in order) and for each result the numbers of its elements' notes, or
    None where they are no floats."""

    kernel, width = "recorded", NOTE

    def __init__(self, arrays, ints, floats, program: str, windows: bool = False):
        """``windows``: the run isn't made here, see :attr:`windows`. Raises TooLong where the tape has no room for it."""
        self.program = p = _parsed(program)
        if not p[self.kernel]:
            raise NotImplementedError("a loop that was compiled where no gradient was asked for has no derivative")
        shapes = [a.shape for a in arrays] + [arrays[n].shape for n in p["fresh"]]
        dtypes = [a.dtype for a in arrays] + [arrays[n].dtype for n in p["fresh"]]
        results = list(map(np.dtype, p["results"]))
        sizes = [math.prod(s) * d.itemsize for s, d in zip(shapes, dtypes)] + [8 * (len(results) + ERRORS)]
        starts = np.cumsum([0] + [-(-n // ALIGNED) * ALIGNED + ALIGNED for n in sizes]).tolist()
        room = max(1 << 28, 8 * starts[-1])
        memory = np.zeros(2 * room + ALIGNED, np.uint8)  # pages that nobody writes cost nothing
        base = -memory.ctypes.data % ALIGNED

        def at(k, shape, dtype):
            return np.ndarray(shape, dtype, memory, base + starts[k])

        def numbers(k, shape, dtype):
            if dtype.kind != "f":
                return None
            return np.ndarray(shape, np.uint32, memory, base + room + starts[k], _strides(shape, dtype.itemsize))

        held = [at(k, s, d) for k, (s, d) in enumerate(zip(shapes, dtypes))]
        self.given: list[slice | None] = []
        self.first = 1
        for k, (copy, a) in enumerate(zip(held, arrays)):
            copy[...] = a
            mine = numbers(k, a.shape, a.dtype)
            self.given.append(None if mine is None else slice(self.first, self.first + a.size))
            if mine is not None:
                mine[...] = np.arange(self.first, self.first + a.size, dtype=np.uint32).reshape(a.shape)
                self.first += a.size
        self.shapes = [a.shape for a in arrays]
        notes = np.empty(0 if windows else _limit(), np.uint8)
        end = min(notes.size // self.width, (1 << 32) - 1)
        tape = np.zeros((), TAPE_RECORD)  # without a hook: a full tape is told
        tape["next"], tape["end"], tape["notes"] = self.first, end, notes.ctypes.data
        start = memory.ctypes.data + base
        arena = np.array([start + starts[-1], start + room, 0, room], np.int64)
        self._waiting: list[BaseException] = []
        asked = ctypes.CFUNCTYPE(ctypes.c_int64)(self._interrupted)
        runtime = dict.fromkeys(RUNTIME, 0)  # a kernel with a tape uses no other
        runtime["interrupted"] = _address(NO_SIGNAL) if windows else ctypes.cast(asked, ctypes.c_void_p).value
        data = np.array(
            [*runtime.values(), *(h.ctypes.data for h in held), tape.ctypes.data, arena.ctypes.data],
            np.int64,
        )  # fmt: skip
        meta = np.array([n for a in held[: len(arrays)] for n in (*a.shape, *a.strides)] or [0], np.int64)
        given = [np.array(list(x) or [0], d) for x, d in ((ints, np.int64), (floats, np.float64))]
        out = start + starts[len(shapes)]
        call = [data.ctypes.data, meta.ctypes.data, *(x.ctypes.data for x in given), out]
        self.notes, self.memory, self._kept = notes, memory, (data, meta, *given)
        made = [*p["written"], *range(len(arrays), len(shapes))]
        self.made = [numbers(k, shapes[k], dtypes[k]) for k in made]
        for k, d in enumerate(results):
            place = base + room + starts[len(shapes)] + 8 * k
            self.made.append(np.ndarray((), np.uint32, memory, place) if d.kind == "f" else None)
        if not windows:
            self._ended(_function(p[self.kernel], 5)(*call))
            if tape["full"]:
                raise TooLong
            self.count = int(tape["next"])
            return

        def used() -> list[np.ndarray]:
            n = int(arena[0]) - start
            return [memory[base : base + n], memory[base + room : base + room + n]]

        kernel = _address(p[self.kernel])
        self.windows = Windows(_address(START), _address(FULL), [kernel, *call], tape, arena, used, self.first)

    def _interrupted(self) -> int:
        """Whether a signal's handler has raised an error."""
        try:
            for _ in (0,):  # a turn of a loop: handlers of signals run here
                pass
            return 0
        except BaseException as e:
            self._waiting.append(e)
            return 1

    def _ended(self, code: int) -> None:
        """Raise what a run has ended with."""
        if code < 0:
            raise self._waiting[0]
        if code:
            kind, text = self.program["errors"][code - 1]
            raise RuntimeError(f"a loop failed when it was run again for its derivative: {kind}: {text}")


def _too_long(width: int) -> MemoryError:
    return MemoryError(
        f"the derivative of a loop has more operations than its memory holds ({_limit() >> 20} MiB, {width} bytes for each): "
        "take it in parts, or of fewer turns, or raise torch._inductor.config.native_loop_tape_bytes"
    )


class Tape(Run):
    """With the partial derivatives of each operation."""

    def _sweep(self, text: str, d: np.ndarray) -> None:
        _function(text, 4)(self.notes.ctypes.data, self.first, self.count, d.ctypes.data)

    def cotangents(self, places, cts) -> list[np.ndarray]:
        """For each operand of floats, from the cotangents of the results number ``places``."""
        d = np.zeros(self.count)
        for k, ct in zip(places, cts):
            if self.made[k] is not None:
                np.add.at(d, self.made[k].reshape(-1), np.asarray(ct, np.float64).reshape(-1))
        d[0] = 0.0
        self._sweep(REVERSE, d)
        return [d[mine].reshape(shape) for mine, shape in zip(self.given, self.shapes) if mine is not None]

    def tangents(self, given) -> list[np.ndarray]:
        """For each result, zeros where it isn't one of floats, from the tangents of the operands of floats."""
        d = np.zeros(self.count)
        for mine, t in zip([g for g in self.given if g is not None], given):
            d[mine] = t.reshape(-1)
        d[0] = 0.0
        self._sweep(FORWARD, d)
        return [np.zeros(()) if mine is None else d[mine] for mine in self.made]


class CheckpointedTape(Run):
    """With a tape in windows, see checkpoints.py."""

    def __init__(self, arrays, ints, floats, program: str):
        super().__init__(arrays, ints, floats, program, windows=True)
        size, self.room = budget_of(_limit(), 2 * sum(part.size for part in self.windows.used()[:1]) + (1 << 14))
        self.windows.resized(size)

    def _sweep(self, text: str, notes: np.ndarray, begin: int, d: np.ndarray) -> None:
        """Over a window with numbers of its own that begin with ``begin``."""
        if len(notes):
            _function(text, 4)(notes.ctypes.data - begin * NOTE, begin, begin + len(notes), d.ctypes.data)

    def cotangents(self, places, cts) -> list[np.ndarray]:
        """As Tape's."""
        points = self.windows.to_the_end(self.room)
        self._ended(int(self.windows.block[6]))
        numbers, sums = np.zeros(0, np.int64), np.zeros(0)
        for k, ct in zip(places, cts):
            if self.made[k] is not None:
                mine, ct = self.made[k].reshape(-1).astype(np.int64), np.asarray(ct, np.float64).reshape(-1)
                each, where = np.unique(mine, return_inverse=True)
                numbers, sums = merged(numbers, sums, each, np.bincount(where, ct, len(each)))
        for begin, notes in self.windows.backwards(points, self.room):
            low = renumbered(notes, begin)
            d = np.zeros(len(low) + 1 + len(notes))
            inside = numbers >= begin
            d[numbers[inside] - begin + len(low) + 1] = sums[inside]
            self._sweep(REVERSE, notes, len(low) + 1, d)
            numbers, sums = merged(numbers[~inside], sums[~inside], low, d[1 : len(low) + 1])
        d = np.zeros(self.first)
        d[numbers] = sums
        return [d[mine].reshape(shape) for mine, shape in zip(self.given, self.shapes) if mine is not None]

    def tangents(self, given) -> list[np.ndarray]:
        """As Tape's: the first run tells what later windows need of earlier ones, the second computes it."""
        windows, needed = self.windows, np.zeros(1, np.int64)
        start = windows.checkpoint()
        while not windows.done:
            begin = self.first + windows.window * windows.size
            needed = np.union1d(needed, renumbered(windows.advance(), begin))
        self._ended(int(windows.block[6]))
        outs = [mine if mine is None else mine.astype(np.int64) for mine in self.made]
        needed = np.unique(np.concatenate([needed, *(mine.reshape(-1) for mine in outs if mine is not None)]))
        values = np.zeros(len(needed))
        for mine, t in zip([g for g in self.given if g is not None], given):
            low, high = np.searchsorted(needed, (mine.start, mine.stop))
            values[low:high] = t.reshape(-1)[needed[low:high] - mine.start]
        windows.restore(start)
        while not windows.done:
            begin = self.first + windows.window * windows.size
            notes = windows.advance()
            low = renumbered(notes, begin)
            d = np.zeros(len(low) + 1 + len(notes))
            d[1 : len(low) + 1] = values[np.searchsorted(needed, low)]
            self._sweep(FORWARD, notes, len(low) + 1, d)
            first, last = np.searchsorted(needed, (begin, begin + len(notes)))
            values[first:last] = d[needed[first:last] - begin + len(low) + 1]
        return [np.zeros(()) if mine is None else values[np.searchsorted(needed, mine)] for mine in outs]


def _tape(arrays, ints, floats, program: str) -> Tape | CheckpointedTape:
    try:
        return Tape(arrays, ints, floats, program)
    except TooLong:
        if not are_possible():
            raise _too_long(NOTE) from None
    return CheckpointedTape(arrays, ints, floats, program)


def _strides(shape, itemsize: int) -> tuple[int, ...]:
    return tuple(s * itemsize for s in contiguous_strides(shape))


def _floating(arrays):
    return [a for a in arrays if a.dtype.is_floating_point]


@extern(
    "flambeau::loop_cotangents(Tensor[] arrays, SymInt[] ints, float[] floats, str program, Tensor[] cotangents, int[] places) -> Tensor[]",
    meta=lambda arrays, ints, floats, program, cotangents, places: [
        TensorMeta(tuple(a.shape), contiguous_strides(a.shape), a.dtype, CPU) for a in _floating(arrays)
    ],
    variants="",
    tags=("may_run_plainly",),
)  # fmt: skip
def loop_cotangents(arrays, ints, floats, program, cotangents, places):
    """Cotangents of a loop's operands of floats, from those of its results number ``places``."""
    made = _tape(arrays, ints, floats, program).cotangents(places, cotangents)
    return [g.astype(a.dtype) for g, a in zip(made, [a for a in arrays if a.dtype.kind == "f"])]


@extern(
    "flambeau::loop_tangents(Tensor[] arrays, SymInt[] ints, float[] floats, str program, Tensor[] tangents, Tensor[] likes) -> Tensor[]",
    meta=lambda arrays, ints, floats, program, tangents, likes: [
        TensorMeta(tuple(a.shape), contiguous_strides(a.shape), a.dtype, CPU) for a in likes
    ],
    variants="",
    tags=("may_run_plainly",),
)  # fmt: skip
def loop_tangents(arrays, ints, floats, program, tangents, likes):
    """Tangents of a loop's results, which are like ``likes``, from those of its operands of floats."""
    made = _tape(arrays, ints, floats, program).tangents(tangents)
    return [t.astype(a.dtype) for t, a in zip(made, likes)]


def _loop_vjp(cts, arrays, ints, floats, program):
    places = [k for k, ct in enumerate(cts) if ct is not None]
    made = iter(loop_cotangents(arrays, ints, floats, program, [cts[k] for k in places], places))
    return [next(made) if a.dtype.is_floating_point else None for a in arrays]


def _loop_vjp_again(mask, cts, arrays, ints, floats, program, cotangents, places):
    """Of cotangents: where only those of the results are asked for, the transpose, which are tangents; else the next derivative."""
    floating = _floating(arrays)
    given = [a.new_zeros(a.shape) if ct is None else ct for ct, a in zip(cts, floating)]
    if not mask[0]:
        likes = loop(arrays, ints, floats, program)
        made = loop_tangents(arrays, ints, floats, program, given, likes)
        return None, [made[k] for k in places]
    made = loop_derivative(arrays, ints, floats, program, [*cotangents, *given], places, [len(cotangents), len(given)])
    return _spread_out(arrays, made), made[len(floating) :]


def _loop_vjp_of_tangents(mask, cts, arrays, ints, floats, program, tangents):
    """Of tangents: cotangents are their transpose, and the slope of both is that of their product."""
    places = [k for k, ct in enumerate(cts) if ct is not None]
    given = [cts[k] for k in places]
    back = loop_cotangents(arrays, ints, floats, program, given, places)
    if not mask[0]:
        return None, back, None
    made = loop_derivative(arrays, ints, floats, program, [*given, *tangents], places, [len(given), len(tangents)])
    return _spread_out(arrays, made), back, None


def _loop_vjp_of_derivative(cts, arrays, ints, floats, program, given, places, counts):
    likes = [*_floating(arrays), *given[: sum(counts[:-1])]]
    more = [a.new_zeros(a.shape) if ct is None else ct for ct, a in zip(cts, likes)]
    made = loop_derivative(arrays, ints, floats, program, [*given, *more], places, [*counts, len(more)])
    return _spread_out(arrays, made), made[len(_floating(arrays)) :]


def _spread_out(arrays, made):
    """For each operand its cotangent, None for those that aren't floats."""
    found = iter(made)
    return [next(found) if a.dtype.is_floating_point else None for a in arrays]


@extern(
    "flambeau::loop_derivative(Tensor[] arrays, SymInt[] ints, float[] floats, str program, Tensor[] given, int[] places, int[] counts) -> Tensor[]",
    meta=lambda arrays, ints, floats, program, given, places, counts: [
        TensorMeta(tuple(a.shape), contiguous_strides(a.shape), a.dtype, CPU)
        for a in (*_floating(arrays), *given[: sum(counts[:-1])])
    ],
    variants="",
    tags=("may_run_plainly",),
)  # fmt: skip
def loop_derivative(arrays, ints, floats, program, given, places, counts):
    """A pullback of pullbacks of a loop, ``len(counts)`` in all. The first takes the cotangents of the loop's results number ``places``, each further
    one those of what the one before it gives; ``given`` has those of all, ``counts`` how many each takes. Cotangents of the operands of floats, then
    of what the earlier pullbacks were given."""
    try:
        return Listed(arrays, ints, floats, program).pulled_back(arrays, given, places, counts)
    except TooLong:
        raise _too_long(ENTRY.itemsize) from None


class Listed(Run):
    """With the operations themselves."""

    kernel, width = "listed", ENTRY.itemsize

    def pulled_back(self, arrays, given, places, counts) -> list[np.ndarray]:
        program = OperationList(self.notes[: self.count * self.width].view(ENTRY).copy())
        program.entries[: self.first] = np.zeros((), ENTRY)
        floating = [a for a in arrays if a.dtype.kind == "f"]
        operands = [np.arange(g.start, g.stop, dtype=np.uint32) for g in self.given if g is not None]
        leaves = [(numbers, a.reshape(-1)) for numbers, a in zip(operands, floating)]
        outputs, wanted = [self._numbers(k) for k in places], list(operands)
        rest = iter(given)
        for n in counts:
            level = [next(rest) for _ in range(n)]
            seeds = [program.leaves(ct.size) for ct in level]
            leaves += [(numbers, ct.reshape(-1)) for numbers, ct in zip(seeds, level)]
            outputs = pullback(program, outputs, seeds, wanted)
            wanted += seeds
        values = program.values(leaves)
        likes = [*floating, *given[: sum(counts[:-1])]]
        return [values[numbers].reshape(a.shape).astype(a.dtype) for numbers, a in zip(outputs, likes)]

    def _numbers(self, place: int) -> np.ndarray:
        """Of the elements of a result; 0 for what no float leads to."""
        found = self.made[place]
        return np.zeros(1, np.uint32) if found is None else found.reshape(-1)


loop.derivative(arrays=_loop_vjp)
loop_cotangents.derivative(arrays__cotangents=_loop_vjp_again)
loop_tangents.derivative(arrays__tangents__likes=_loop_vjp_of_tangents)
loop_derivative.derivative(arrays__given=_loop_vjp_of_derivative)
