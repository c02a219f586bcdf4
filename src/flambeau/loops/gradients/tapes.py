"""First derivatives along a loop's run: the tape of one that is made again, whole or in windows."""

from __future__ import annotations

import numpy as np

from .checkpoints import are_possible, budget_of, merged
from .runs import Run, TooLong, function_of, tape_limit, too_long
from .tape import FORWARD, NOTE, REVERSE

__all__ = ["CheckpointedTape", "Tape", "tape_of"]


class Tape(Run):
    """With the partial derivatives of each operation."""

    def _sweep(self, text: str, d: np.ndarray) -> None:
        function_of(text, 4)(self.notes.ctypes.data, self.first, self.count, d.ctypes.data)

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
        size, self.room = budget_of(tape_limit(), 3 * NOTE)
        self.windows.resized(size)

    def _sweep(self, text: str, notes: np.ndarray, begin: int, d: np.ndarray) -> None:
        """Over a window with numbers of its own that begin with ``begin``."""
        if len(notes):
            function_of(text, 4)(notes.ctypes.data - begin * NOTE, begin, begin + len(notes), d.ctypes.data)

    def cotangents(self, places, cts) -> list[np.ndarray]:
        """As Tape's."""
        points = self.windows.to_the_end(self.room)
        self.ended(int(self.windows.block[6]))
        numbers, sums = np.zeros(0, np.int64), np.zeros(0)
        for k, ct in zip(places, cts):
            if self.made[k] is not None:
                mine, ct = self.made[k].reshape(-1).astype(np.int64), np.asarray(ct, np.float64).reshape(-1)
                each, where = np.unique(mine, return_inverse=True)
                numbers, sums = merged(numbers, sums, each, np.bincount(where, ct, len(each)))
        for begin, low, notes in self.windows.backwards(points, self.room):
            d = np.zeros(len(low) + 1 + len(notes))
            inside = numbers >= begin
            d[numbers[inside] - begin + len(low) + 1] = sums[inside]
            self._sweep(REVERSE, notes, len(low) + 1, d)
            numbers, sums = merged(numbers[~inside], sums[~inside], low, d[1 : len(low) + 1])
        d = np.zeros(self.first)
        d[numbers] = sums
        return [d[mine].reshape(shape) for mine, shape in zip(self.given, self.shapes) if mine is not None]

    def tangents(self, given) -> list[np.ndarray]:
        """As Tape's: they go with the run."""

        def forward(notes: np.ndarray, before: np.ndarray) -> np.ndarray:
            d = np.concatenate([np.zeros((1, 1)), before, np.zeros((len(notes), 1))])
            self._sweep(FORWARD, notes, len(before) + 1, d)
            return d

        rows = np.concatenate([np.zeros(0), *(np.asarray(t, np.float64).reshape(-1) for t in given)])
        self.windows.carry(rows[:, None], forward)
        while not self.windows.done:
            self.windows.advance()
        self.ended(int(self.windows.block[6]))
        return [np.zeros(()) if mine is None else self._carried_to(mine) for mine in self.made]

    def _carried_to(self, numbers: np.ndarray) -> np.ndarray:
        """The tangents of these notes, 0 for none."""
        out, noted = np.zeros(numbers.shape), numbers > 0
        out[noted] = self.windows.value_of(numbers[noted])[:, 0]
        return out


def tape_of(arrays, ints, floats, program: str) -> Tape | CheckpointedTape:
    try:
        return Tape(arrays, ints, floats, program)
    except TooLong:
        if not are_possible():
            raise too_long(NOTE) from None
    return CheckpointedTape(arrays, ints, floats, program)
