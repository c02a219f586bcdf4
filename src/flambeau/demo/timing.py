"""Two ways of doing one thing, timed in turn."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter

__all__ = ["Pairs", "in_turn"]


@dataclass
class Pairs:
    """Seconds of each run of two ways, ``plain[i]`` and ``compiled[i]`` one right after the other."""

    plain: list[float]
    compiled: list[float]

    @property
    def ratios(self) -> list[float]:
        """How much longer the plain way takes, pair by pair."""
        return [a / b for a, b in zip(self.plain, self.compiled)]

    @property
    def medians(self) -> tuple[float, float]:
        """The median of the plain runs and that of the compiled ones."""
        return median(self.plain), median(self.compiled)

    @property
    def speed_up(self) -> float:
        """How much longer the plain median is."""
        plain, compiled = self.medians
        return plain / compiled

    @property
    def middle_half(self) -> tuple[float, float]:
        """The quartiles of the ratios."""
        if len(self.plain) < 2:
            return self.ratios[0], self.ratios[0]
        low, _, high = quantiles(self.ratios, n=4, method="inclusive")
        return low, high

    def __str__(self) -> str:
        low, high = self.middle_half
        return f"{self.speed_up:.2f}x (medians of {len(self.plain)} pairs, half of them between {low:.2f}x and {high:.2f}x)"

    def as_data(self) -> dict[str, object]:
        """What a program reads: seconds, and how much faster."""
        plain, compiled = self.medians
        return {
            "pairs": len(self.plain),
            "plain_seconds": plain,
            "compiled_seconds": compiled,
            "speed_up": self.speed_up,
            "quartiles": list(self.middle_half),
        }


def in_turn(plain: Callable, compiled: Callable, pairs: int, seconds: float = float("inf")) -> Pairs:
    """Run both by turns, with the first one of a pair changing, for ``pairs`` pairs or ``seconds``. What the machine does beside meets both."""
    found = Pairs([], [])
    begin = perf_counter()
    gc.collect()
    for i in range(pairs):
        order = [(plain, found.plain), (compiled, found.compiled)]
        for fn, times in order if i % 2 == 0 else order[::-1]:
            start = perf_counter()
            fn()
            times.append(perf_counter() - start)
        if perf_counter() - begin > seconds:
            break
    return found
