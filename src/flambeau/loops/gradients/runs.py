"""A loop's run again, from its operands as they were before it, by a kernel that notes what it does.

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

from ...base import foreign
from ...base.shapes import contiguous_strides
from ...inductor.settings import config
from ..arguments import RUNTIME
from ..operator import _parsed
from .checkpoints import FULL, LAST, NO_SIGNAL, START, Windows
from .tape import NOTE_RECORD, TAPE_RECORD

__all__ = ["Run", "TooLong", "function_of", "tape_limit", "too_long"]

ALIGNED = 64
SMALLEST = 1 << 20  # bytes of a tape that is worth it
ERRORS = 8  # slots behind those of the results


@functools.lru_cache(256)
def address_of(text: str) -> int:
    cache = importlib.import_module("flambeau.inductor.machine.cache")  # made when it is first run: it imports LLVM
    name = cache.kernel_name(text)
    return cache.addresses({name: text.replace("@KERNEL", f"@{name}")}, optimise=True)[name]


@functools.lru_cache(256)
def function_of(text: str, arguments: int):
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * arguments)(address_of(text))


def tape_limit() -> int:
    """Bytes that a tape may take: the setting, or half of the machine's memory. They are used as they are written."""
    return config.native_loop_tape_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


class TooLong(Exception):
    """The tape has no room for all notes."""


def _notes(entry: np.dtype, most: int) -> np.ndarray:
    """Room for ``most`` notes, or for as many as the system gives address space for: pages are used as they are written."""
    while True:
        try:
            return np.empty(most, entry)
        except MemoryError:
            if most * entry.itemsize < SMALLEST:
                raise
            most //= 2


class Run:
    """A loop's run on these arrays, by a kernel that notes what it does: ``kernel`` names it in the program, its notes are ``entry``.
    ``given`` and ``made``: for each operand (in order) and for each result the numbers of its elements' notes, or
    None where they are no floats."""

    kernel, entry = "recorded", NOTE_RECORD

    def __init__(self, arrays, ints, floats, program: str, windows: bool = False, each: int = 0):
        """``windows``: the run isn't made here, see :attr:`windows`. ``each``: bytes for each note that the caller makes of it, within the
        limit. Raises TooLong where the tape has no room for it."""
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
            return np.ndarray(shape, np.uint32, memory, base + room + starts[k], packed_strides(shape, dtype.itemsize))

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
        notes = _notes(self.entry, 0 if windows else min(tape_limit() // (self.entry.itemsize + each), LAST))
        end = len(notes)
        tape = np.zeros((), TAPE_RECORD)  # without a hook: a full tape is told
        tape["next"], tape["end"], tape["notes"] = self.first, end, notes.ctypes.data
        start = memory.ctypes.data + base
        arena = np.array([start + starts[-1], start + room, 0, room], np.int64)
        self._waiting: list[BaseException] = []
        asked = ctypes.CFUNCTYPE(ctypes.c_int64)(self._interrupted)
        runtime = dict.fromkeys(RUNTIME, 0)  # a kernel with a tape uses no other
        runtime["interrupted"] = address_of(NO_SIGNAL) if windows else foreign.address_of(asked)
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
            self.ended(function_of(p[self.kernel], 5)(*call))
            if tape["full"]:
                raise TooLong
            self.count = int(tape["next"])
            return

        def used() -> list[np.ndarray]:
            n = int(arena[0]) - start
            return [memory[base : base + n], memory[base + room : base + room + n]]

        kernel = address_of(p[self.kernel])
        self.windows = Windows(
            address_of(START), address_of(FULL), [kernel, *call], tape, arena, used, self.first, self.entry
        )

    def _interrupted(self) -> int:
        """Whether a signal's handler has raised an error."""
        try:
            for _ in (0,):  # a turn of a loop: handlers of signals run here
                pass
            return 0
        except BaseException as e:
            self._waiting.append(e)
            return 1

    def ended(self, code: int) -> None:
        """Raise what a run has ended with."""
        if code < 0:
            raise self._waiting[0]
        if code:
            kind, text, _ = self.program["errors"][code - 1]
            raise RuntimeError(f"a loop failed when it was run again for its derivative: {kind}: {text}")


def too_long(width: int) -> MemoryError:
    return MemoryError(
        f"the derivative of a loop has more operations than its memory holds ({tape_limit() >> 20} MiB, {width} bytes for each): "
        "take it in parts, or of fewer turns, or raise torch._inductor.config.native_loop_tape_bytes"
    )


def packed_strides(shape, itemsize: int) -> tuple[int, ...]:
    return tuple(s * itemsize for s in contiguous_strides(shape))
