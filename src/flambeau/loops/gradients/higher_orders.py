"""Derivatives of second and higher order along a loop's run: the list of its operations, whole or in windows.

One sweep forwards and one backwards over hyper-dual numbers give a pullback of pullbacks of any order (:mod:`.hyperdual`), so one reversal
schedule is all that is needed: a window's list is made again from the checkpoint before it, with the parts that its operands had there.
"""

from __future__ import annotations

import numpy as np

from .checkpoints import are_possible, budget_of, merged
from .hyperdual import Levels, backwards, forwards
from .operations import ENTRY
from .runs import Run, TooLong, tape_limit, too_long

__all__ = ["pulled_back"]


def pulled_back(arrays, ints, floats, program: str, given, places, counts) -> list[np.ndarray]:
    """See derivatives.loop_derivative."""
    rest = iter(given)
    levels = [[next(rest) for _ in range(n)] for n in counts]
    floating = [a for a in arrays if a.dtype.kind == "f"]
    variables = Levels(floating, levels)
    x, seeds = variables.variables[:2]
    run: List | CheckpointedList
    try:
        run = List(arrays, ints, floats, program, variables.parts)
    except TooLong:
        if not are_possible():
            raise too_long(List.taken(variables.parts)) from None
        run = CheckpointedList(arrays, ints, floats, program, variables.parts)
    sizes = [ct.size for ct in levels[0]]
    found = variables.pulled_back(*run.swept(x, seeds, run.numbers(places, sizes)))
    likes = [floating, *levels[:-1]]
    return [
        part.reshape(a.shape).astype(a.dtype)
        for made, group in zip(found, likes)
        for part, a in zip(np.split(made, np.cumsum([a.size for a in group])), group)
    ]


class ListRun(Run):
    """A run that lists its operations."""

    kernel, entry = "listed", ENTRY

    @classmethod
    def taken(cls, parts: int) -> int:
        """Bytes for each operation: of the list, and the parts of its number and of its cotangent."""
        return ENTRY.itemsize + 16 * parts

    def numbers(self, places, sizes):
        """A function that gives, when the run has been made, the numbers of the elements of the results number ``places``, which have so many."""

        def of_results() -> np.ndarray:
            found = [(self.made[k], n) for k, n in zip(places, sizes)]
            return np.concatenate(
                [np.zeros(0, np.int64), *(np.zeros(n) if m is None else m.reshape(-1) for m, n in found)]
            ).astype(np.int64)

        return of_results


class List(ListRun):
    """All at once."""

    def __init__(self, arrays, ints, floats, program: str, parts: int):
        super().__init__(arrays, ints, floats, program, each=self.taken(parts) - ENTRY.itemsize)

    def swept(self, x: np.ndarray, seeds: np.ndarray, numbers) -> tuple[np.ndarray, np.ndarray]:
        """The cotangents of the operands ``x`` and the results number ``numbers()``, whose cotangents are ``seeds``: arrays (elements, parts). Parts
        number 0 of results are of no use."""
        first, entries = self.first, self.notes[self.first : self.count]
        values = np.zeros((self.count, x.shape[1]))
        values[1:first] = x
        forwards(entries, first, values)
        cotangents, at = np.zeros_like(values), numbers()
        np.add.at(cotangents, at, seeds)
        cotangents[0] = 0.0
        backwards(entries, first, values, cotangents)
        return cotangents[1:first], values[at]


class CheckpointedList(ListRun):
    """In windows, see checkpoints.py."""

    def __init__(self, arrays, ints, floats, program: str, parts: int):
        super().__init__(arrays, ints, floats, program, windows=True)
        size, self.room = budget_of(tape_limit(), 3 * ENTRY.itemsize + 16 * parts)
        self.windows.resized(size)

    def _forward(self, notes: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Parts but the first, which each operation has of its operands by itself."""
        rows = self.rows = np.zeros((1 + len(before) + len(notes), 1 + before.shape[1]))
        rows[1 : 1 + len(before), 1:] = before
        forwards(notes, 1 + len(before), rows)
        return rows[:, 1:]

    def swept(self, x: np.ndarray, seeds: np.ndarray, numbers) -> tuple[np.ndarray, np.ndarray]:
        """As List's."""
        windows = self.windows
        windows.carry(x[:, 1:].copy(), self._forward)
        points = windows.to_the_end(self.room)
        self.ended(int(windows.block[6]))
        at = numbers()
        results = np.zeros_like(seeds)
        results[at > 0, 1:] = windows.value_of(at[at > 0])
        waiting, where = np.unique(at, return_inverse=True)
        sums = np.zeros((len(waiting), x.shape[1]))
        np.add.at(sums, where, seeds)
        for begin, low, notes in windows.backwards(points, self.room):
            cotangents = np.zeros_like(self.rows)
            inside = waiting >= begin
            cotangents[waiting[inside] - begin + len(low) + 1] = sums[inside]
            backwards(notes, len(low) + 1, self.rows, cotangents)
            waiting, sums = merged(waiting[~inside], sums[~inside], low, cotangents[1 : len(low) + 1])
        found = np.zeros((self.first, x.shape[1]))
        found[waiting] = sums
        return found[1:], results
