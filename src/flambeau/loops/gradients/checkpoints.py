"""Derivatives of loops whose tape is longer than its budget: the tape is made in windows, and the loop goes on from checkpoints.

Reverse mode wants the last note first. A kernel with a tape runs on a stack of its own (``makecontext``): where a window of the tape is full its
note function hands over to Python (``swapcontext``), which uses the window's notes and lets the kernel go on. A :class:`Checkpoint` there is the
kernel's stack, its registers, the part of the arena that is in use and its shadow; to go on from it these are put back. So checkpoints
lie anywhere in a run, whatever loops and branches the kernel is in, and no kernel needs a second entry (Griewank and Walther,
Evaluating Derivatives, chapter 12: reversal schedules). Numbers of notes are those of the whole run; what a window refers to before its start is kept
by number, no more of it than the loop's arrays and variables hold.

What goes forwards with the run (tangents, hyper-dual numbers) is kept for the notes that later ones may refer to: those whose number lies in
the shadow, on the kernel's stack or in a register at the end of a window, as a conservative garbage collector finds them. No number can hide:
a kernel gets it whole, as a word that ``fld_note`` returns, and does nothing but copy it.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable

import numpy as np

from ...base.foreign import address_of
from ...base.records import slotted
from .tape import tape_places

__all__ = ["FULL", "NO_SIGNAL", "START", "Windows", "are_possible", "budget_of", "merged", "renumbered"]

STACK, CONTEXT = 1 << 18, 1 << 13  # bytes
LEAST, MOST = 1 << 8, 1 << 20  # notes of a window
LAST = (1 << 32) - 1  # number of a note

# What calls the loop's kernel with the numbers of a block, and leaves what it returns there.
START = """; a loop on a stack of its own
define void @KERNEL(ptr %block) {
  %kernel = load ptr, ptr %block
LOADS
  %code = call i64 %kernel(ptr %v1, ptr %v2, ptr %v3, ptr %v4, ptr %v5)
  %code.p = getelementptr i64, ptr %block, i64 6
  store i64 %code, ptr %code.p
  %done.p = getelementptr i64, ptr %block, i64 7
  store i64 1, ptr %done.p
  ret void
}
""".replace(
    "LOADS",
    "\n".join(f"  %p{k} = getelementptr i64, ptr %block, i64 {k}\n  %v{k} = load ptr, ptr %p{k}" for k in range(1, 6)),
)
# What is called where a window is full.
FULL = tape_places("""; a window of a tape is full
define void @KERNEL(ptr %tape) {
  %mine.p = FIELD(mine)
  %others.p = FIELD(others)
  %swap.p = FIELD(swap)
  %mine = load ptr, ptr %mine.p
  %others = load ptr, ptr %others.p
  %swap = load ptr, ptr %swap.p
  %failed = call i32 %swap(ptr %mine, ptr %others)
  ret void
}
""")
# Signals are looked for between windows: no Python runs on another stack.
NO_SIGNAL = """; a loop isn't interrupted
define i64 @KERNEL() {
  ret i64 0
}
"""


def are_possible() -> bool:
    """Whether this system has contexts with their own stacks."""
    known = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
    return known and hasattr(ctypes.CDLL(None), "makecontext")


def budget_of(limit: int, each: int) -> tuple[int, int]:
    """(notes of a window, bytes of checkpoints) for so many bytes: a quarter for a window, of which each note takes ``each`` with all that is made
    of it, the rest for checkpoints."""
    notes = min(max(limit // (4 * each), LEAST), MOST)
    return notes, limit - notes * each


@slotted
class Checkpoint:
    """``window``: the number of the one that comes next. Parts of memory with what they held; what went with the run, see Windows.carry."""

    window: int
    parts: list[tuple[np.ndarray, np.ndarray]]
    numbers: np.ndarray
    values: np.ndarray
    size: int

    def restore(self) -> None:
        for place, held in self.parts:
            place[...] = held


class Windows:
    """A run in windows of ``size`` notes of the dtype ``entry``, with the fields ``a`` and ``b`` for their operands' numbers. ``start``, ``full``:
    addresses of these functions; ``call``: those of the loop's kernel and of its arguments; ``tape``: a TAPE_RECORD; ``arena``: see runs.Run;
    ``used()``: the bytes of the arena in use, and of its shadow; ``first``: number of the first note."""

    def __init__(
        self,
        start: int,
        full: int,
        call: list[int],
        tape: np.ndarray,
        arena: np.ndarray,
        used,
        first: int,
        entry: np.dtype,
    ):
        self.tape, self.arena, self.used, self.first, self.entry = tape, arena, used, first, entry
        self.numbers, self.values = np.zeros(0, np.uint32), np.zeros((0, 0))
        self.forward: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
        self.libc = ctypes.CDLL(None)
        self.stack = np.zeros(STACK, np.uint8)
        self.mine, self.others = np.zeros(CONTEXT, np.uint8), np.zeros(CONTEXT, np.uint8)
        self.block = np.array([*call, 0, 0], np.int64)
        swap = address_of(self.libc.swapcontext)
        addresses = {"hook": full, "mine": self.mine.ctypes.data, "others": self.others.ctypes.data, "swap": swap}
        for name, address in addresses.items():
            tape[name] = address
        if self.libc.getcontext(ctypes.c_void_p(self.mine.ctypes.data)):
            raise OSError("getcontext failed")
        # struct ucontext begins with flags, the context that follows, and the stack's address, flags and size.
        self.mine[:40].view(np.int64)[1:] = self.others.ctypes.data, self.stack.ctypes.data, 0, STACK
        self.libc.makecontext.restype = None
        address = ctypes.c_void_p(self.block.ctypes.data)
        self.libc.makecontext(ctypes.c_void_p(self.mine.ctypes.data), ctypes.c_void_p(start), 1, address)
        self.window = 0
        self.resized(LEAST)

    def resized(self, size: int) -> None:
        """Windows have so many notes from the start on."""
        self.size = size
        self.buffer = np.empty(size, self.entry)

    @property
    def done(self) -> bool:
        return bool(self.block[7])

    def carry(self, values: np.ndarray, forward: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
        """Something goes with the run: ``values``, a row for each note before the first. ``forward(notes, before)`` gives those of 0, of what lies
        before a window, which are ``before``, and of the window's notes, which have such numbers."""
        self.numbers, self.values = np.arange(1, self.first, dtype=np.uint32), values
        self.forward = forward

    def value_of(self, numbers: np.ndarray) -> np.ndarray:
        """What went with the run, of these notes."""
        at, found = self._places(numbers)
        if not found.all():
            raise AssertionError("flambeau's mistake: a loop's derivative lost the value of an operation")
        return self.values[at]

    def _places(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(the rows of these notes, whether they are there)."""
        if not len(self.numbers):
            return np.zeros(numbers.shape, np.int64), np.zeros(numbers.shape, bool)
        at = np.searchsorted(self.numbers, numbers)
        return at, self.numbers.take(at, mode="clip") == numbers

    def _used_stack(self) -> np.ndarray:
        words = self.stack[: STACK - 64].view(np.int64)
        deepest = int((words != 0).argmax()) if self.window else len(words)  # what a run before left there does no harm
        return self.stack[8 * deepest :]

    def checkpoint(self) -> Checkpoint:
        places = [self._used_stack(), self.mine, self.block, self.tape, self.arena, *self.used()]
        size = sum(place.nbytes for place in places) + self.numbers.nbytes + self.values.nbytes
        return Checkpoint(self.window, [(place, place.copy()) for place in places], self.numbers, self.values, size)

    def restore(self, point: Checkpoint) -> None:
        point.restore()
        self.window, self.numbers, self.values = point.window, point.numbers, point.values

    def advance(self) -> tuple[int, np.ndarray]:
        """Run one window: (number of its first note, notes)."""
        begin = self.first + self.window * self.size
        if begin + self.size > LAST:
            raise MemoryError(
                "the derivative of a loop has more than 4 billion operations: take it in parts, or of fewer turns"
            )
        self.tape["end"], self.tape["notes"] = begin + self.size, self.buffer.ctypes.data - begin * self.entry.itemsize
        here, there = (ctypes.c_void_p(c.ctypes.data) for c in (self.others, self.mine))
        if self.libc.swapcontext(here, there):
            raise OSError("swapcontext failed")
        self.window += 1
        notes = self.buffer[: int(self.tape["next"]) - begin]
        if self.forward is not None:
            self._carried(begin, notes)
        return begin, notes

    def _carried(self, begin: int, notes: np.ndarray) -> None:
        self.low = renumbered(notes, begin)
        assert self.forward is not None
        made = self.forward(notes, self.value_of(self.low))
        _, shadow = self.used()
        words = np.concatenate([part.view(np.uint32) for part in (self._used_stack(), self.mine, shadow)])
        seen = _ascending(words[(words > 0) & (words < begin + len(notes))])
        before, new = np.split(seen, [np.searchsorted(seen, begin)])
        at, found = self._places(before)
        rows = new.astype(np.int64) - begin + len(self.low) + 1
        self.values = np.concatenate([self.values[at[found]], made[rows]])
        self.numbers = np.concatenate([before[found], new])

    def backwards(self, points: list[Checkpoint], room: int):
        """Windows from the last to the first, after a run to the end with these checkpoints, for which there are ``room`` bytes: (first number, what
        the window refers to before it, notes); notes as :func:`renumbered` leaves them."""
        for window in reversed(range(self.window)):
            while points[-1].window > window:
                points.pop()
            self.restore(points[-1])
            while self.window < window:
                middle = (self.window + window + 1) // 2
                while self.window < middle:
                    self.advance()
                if len(points) < 2 or _held(points) + points[-1].size <= room:
                    points.append(self.checkpoint())
            begin, notes = self.advance()
            yield begin, self.low if self.forward is not None else renumbered(notes, begin), notes

    def to_the_end(self, room: int) -> list[Checkpoint]:
        """Run all, with checkpoints at equal distances that take ``room`` bytes at most, or are two."""
        points, apart = [self.checkpoint()], 1
        while not self.done:
            self.advance()
            while self.window % apart == 0 and not self.done:
                if len(points) < 2 or _held(points) + points[-1].size <= room:
                    points.append(self.checkpoint())
                    break
                apart *= 2
                points = [p for p in points if p.window % apart == 0]
        return points


def _ascending(numbers: np.ndarray) -> np.ndarray:
    """Each once. (``np.unique`` hashes, which takes longer.)"""
    numbers = np.sort(numbers)
    first = np.ones(len(numbers), bool)
    first[1:] = numbers[1:] != numbers[:-1]
    return numbers[first]


def _held(points: list[Checkpoint]) -> int:
    return sum(p.size for p in points)


def renumbered(notes: np.ndarray, begin: int) -> np.ndarray:
    """Give the operands of a window's notes numbers of its own, in place: 0, then what lies before it, then its notes. The numbers of what
    lies before it, ascending."""
    before = [(x - np.uint32(1)) < begin - 1 for x in (notes["a"], notes["b"])]  # 0 wraps around
    low = _ascending(np.concatenate([notes[name][mask] for name, mask in zip("ab", before)]))
    for name, mask in zip("ab", before):
        x = notes[name]
        mine = np.where(x >= begin, x - np.uint32(begin) + np.uint32(len(low) + 1), np.uint32(0))
        mine[mask] = np.searchsorted(low, x[mask]) + 1
        notes[name] = mine
    return low.astype(np.int64)


def merged(
    numbers: np.ndarray, values: np.ndarray, more: np.ndarray, added: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums by number, of two lists; numbers ascend and are there once in each."""
    both = np.union1d(numbers, more)
    out = np.zeros((len(both), *values.shape[1:]))
    out[np.searchsorted(both, numbers)] = values
    out[np.searchsorted(both, more)] += added
    return both, out
