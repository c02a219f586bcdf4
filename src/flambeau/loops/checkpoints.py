"""Derivatives of loops whose tape is longer than its budget: the tape is made in windows, and the loop goes on from checkpoints.

Reverse mode wants the last note first. A kernel with a tape runs on a stack of its own (``makecontext``): where a window of the tape is full its
note function hands over to Python (``swapcontext``), which uses the window's notes and lets the kernel go on. A :class:`Checkpoint` there is the
kernel's stack, its registers, the part of the arena that is in use and its shadow; to go on from it these are put back. So checkpoints
lie anywhere in a run, whatever loops and branches the kernel is in, and no kernel needs a second entry (Griewank and Walther,
Evaluating Derivatives, chapter 12: reversal schedules). Numbers of notes are those of the whole run; what a window refers to before its start is kept
by number, no more of it than the loop's arrays and variables hold.
"""

from __future__ import annotations

import ctypes
import platform
import sys

import numpy as np

from ..base.records import slotted
from .tape import NOTE, tape_places

__all__ = ["FULL", "NO_SIGNAL", "START", "Windows", "are_possible", "budget_of", "merged", "renumbered"]

STACK, CONTEXT = 1 << 18, 1 << 13  # bytes
LEAST, MOST = 1 << 8, 1 << 20  # notes of a window
LAST = (1 << 32) - 1  # number of a note
ENTRY = np.dtype([("a", "<u4"), ("b", "<u4"), ("wa", "<f8"), ("wb", "<f8")])

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


def budget_of(limit: int, state: int) -> tuple[int, int]:
    """(notes of a window, checkpoints) for so many bytes: a quarter for the window and what is made of it, which takes three times its
    size, the rest for checkpoints of ``state`` bytes, two at least."""
    notes = min(max(limit // (4 * 3 * NOTE), LEAST), MOST)
    return notes, max((limit - 3 * notes * NOTE) // max(state, 1), 2)


@slotted
class Checkpoint:
    """``window``: the number of the one that comes next. Parts of memory with what they held."""

    window: int
    parts: list[tuple[np.ndarray, np.ndarray]]

    def restore(self) -> None:
        for place, held in self.parts:
            place[...] = held


class Windows:
    """A run in windows of ``size`` notes. ``start``, ``full``: addresses of these functions; ``call``: those of the loop's kernel and of its
    arguments; ``tape``: a TAPE_RECORD; ``arena``: see derivatives.Run; ``used()``: the bytes of the arena in use, and of its shadow; ``first``:
    number of the first note."""

    def __init__(self, start: int, full: int, call: list[int], tape: np.ndarray, arena: np.ndarray, used, first: int):
        self.tape, self.arena, self.used, self.first = tape, arena, used, first
        self.libc = ctypes.CDLL(None)
        self.stack = np.zeros(STACK, np.uint8)
        self.mine, self.others = np.zeros(CONTEXT, np.uint8), np.zeros(CONTEXT, np.uint8)
        self.block = np.array([*call, 0, 0], np.int64)
        swap = ctypes.cast(self.libc.swapcontext, ctypes.c_void_p).value
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
        self.buffer = np.empty(size, ENTRY)

    @property
    def done(self) -> bool:
        return bool(self.block[7])

    def checkpoint(self) -> Checkpoint:
        used = np.flatnonzero(self.stack[: STACK - 64].view(np.int64))  # what a run before left there does no harm
        deepest = 8 * int(used[0]) if used.size else STACK - 64
        places = [self.stack[deepest:], self.mine, self.block, self.tape, self.arena, *self.used()]
        return Checkpoint(self.window, [(place, place.copy()) for place in places])

    def restore(self, point: Checkpoint) -> None:
        point.restore()
        self.window = point.window

    def advance(self) -> np.ndarray:
        """Run one window: its notes."""
        begin = self.first + self.window * self.size
        if begin + self.size > LAST:
            raise MemoryError(
                "the derivative of a loop has more than 4 billion operations: take it in parts, or of fewer turns"
            )
        self.tape["end"], self.tape["notes"] = begin + self.size, self.buffer.ctypes.data - begin * NOTE
        here, there = (ctypes.c_void_p(c.ctypes.data) for c in (self.others, self.mine))
        if self.libc.swapcontext(here, there):
            raise OSError("swapcontext failed")
        self.window += 1
        return self.buffer[: int(self.tape["next"]) - begin]

    def backwards(self, points: list[Checkpoint], room: int):
        """Windows from the last to the first, as (first number, notes), after a run to the end with these checkpoints; ``room``: of how many."""
        for window in reversed(range(self.window)):
            while points[-1].window > window:
                points.pop()
            self.restore(points[-1])
            while self.window < window:
                middle = (self.window + window + 1) // 2
                while self.window < middle:
                    self.advance()
                if len(points) < room:
                    points.append(self.checkpoint())
            yield self.first + window * self.size, self.advance()

    def to_the_end(self, room: int) -> list[Checkpoint]:
        """Run all, with checkpoints at equal distances, ``room`` at most."""
        points, apart = [self.checkpoint()], 1
        while not self.done:
            self.advance()
            if self.window % apart == 0 and not self.done:
                if len(points) == room:
                    apart *= 2
                    points = [p for p in points if p.window % apart == 0]
                if self.window % apart == 0:
                    points.append(self.checkpoint())
        return points


def renumbered(notes: np.ndarray, begin: int) -> np.ndarray:
    """Give the operands of a window's notes numbers of its own, in place: 0, then what lies before it, then its notes. The numbers of what
    lies before it, ascending."""
    operands = [notes[name].astype(np.int64) for name in "ab"]
    before = [(x > 0) & (x < begin) for x in operands]
    low = np.unique(np.concatenate([x[m] for x, m in zip(operands, before)]))
    for name, x, m in zip("ab", operands, before):
        mine = np.where(x >= begin, x - begin + (len(low) + 1), 0)
        mine[m] = np.searchsorted(low, x[m]) + 1
        notes[name] = mine
    return low


def merged(
    numbers: np.ndarray, values: np.ndarray, more: np.ndarray, added: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums by number, of two lists; numbers ascend and are there once."""
    both = np.union1d(numbers, more)
    out = np.zeros(len(both))
    np.add.at(out, np.searchsorted(both, numbers), values)
    np.add.at(out, np.searchsorted(both, more), added)
    return both, out
