"""Which values may be computed again when the forward may keep only a part of the bytes it would keep (``activation_memory_budget``).

A value has a price: the time of computing it again, estimated from its sizes. The least price is looked for at which a minimum cut that is
free to compute all values up to that price again keeps few enough bytes. At budget 0 everything but random draws and what has effects is
computed again from the inputs."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from ..fx import Node
from ..fx.targets import kind_of, tags_of
from .costs import Cost, cost, elements, is_fusible, is_size, nbytes
from .graph_passes import draws
from .settings import config

__all__ = ["budget", "within"]


def budget() -> float:
    """The setting. RuntimeError outside of 0 to 1, as PyTorch raises."""
    value = config.activation_memory_budget
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise RuntimeError(f"The valid ranges for memory budget are 0 <= m <= 1. The provided value is {value}")
    return float(value)


def within(nodes: list[Node], part: float, saved: list[Node], cut: Callable) -> list[Node]:
    """The values to save. ``saved``: those saved without a limit; ``cut(may be computed again: Node -> bool)``: those saved then."""
    limit = part * _bytes(saved)
    prices = {n: p for n in nodes if (p := _price(n)) is not None}
    steps = sorted(set(prices.values()))
    low, high, best = 0, len(steps) - 1, saved  # the least price that is enough, by bisection
    while low <= high:
        middle = (low + high) // 2
        found = cut(lambda n, most=steps[middle]: prices.get(n, math.inf) <= most)
        if _bytes(found) < _bytes(best) or _bytes(found) <= limit:
            best = found
        if _bytes(found) <= limit:
            high = middle - 1
        else:
            low = middle + 1
    return best


def _bytes(saved: list[Node]) -> int:
    """Inputs are there anyway."""
    return sum(nbytes(n) for n in saved if n.op != "placeholder")


def _price(n: Node) -> float | None:
    """Operations to compute a node again, about; None where that must not be.

    Of a product of matrices the root of the product of all sizes is its number of multiplications, of a convolution nearly."""
    if n.target is operator.getitem or is_size(n):
        return 0.0
    if (
        n.op != "call_function"
        or draws(n)
        or n.is_impure()
        or "overwritten" in n.meta
        or "copy_of_overwritten" in n.meta
    ):
        return None
    if "data" in tags_of(n.target) or kind_of(n.target) in (None, "random", "inplace", "out"):
        return None
    sizes = [max(elements(i), 1) for i in (*n._inputs, n)]
    if cost(n) is not Cost.NEVER or is_fusible(n):
        return float(sum(sizes))
    return 10.0 * sum(sizes) + math.sqrt(math.prod(sizes))
