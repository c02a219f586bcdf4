"""The sizes of what a NumPy function gives, where those of its arrays are symbols: read off the same call on made-up arrays of several sizes.

Each size of a result is taken for a polynomial of degree 2 in the symbols, or half of an affine one rounded down, whose coefficients are whole. It is
fitted at as many points as it has coefficients and has to hold at some more. What doesn't fit gets the sizes of the example. The call itself
compares the shapes of its results with those of made-up arrays of its own sizes, so a formula that doesn't hold everywhere is told, and the frame
runs plainly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import relations
from ..base.expr import floordiv, of
from ..base.records import slotted
from ..base.shapes import contiguous_strides
from ..base.symint import expression, is_symbolic, wrap

__all__ = ["Varying", "sizes_vary", "varying"]

MOST_SYMBOLS = 3
SMALL, SPREAD, MORE = 40, 13, 4
"""An example up to which sizes near it are tried, how far they are apart, and points beyond those that are fitted."""


@slotted
class Result:
    """An array that the call gives. ``shape``: sizes and symbolic sizes."""

    shape: tuple
    strides: tuple
    dtype: np.dtype


@slotted
class Varying:
    """``made``: what the call gives at some sizes; ``results``: the arrays in it."""

    made: Any
    results: list[Result]


def sizes_vary(arrays) -> bool:
    return any(is_symbolic(n) for a in arrays if not isinstance(a, np.ndarray) for n in (*a.shape, *a.stride()))


def varying(arrays, sample: Callable, leaves_of: Callable) -> Varying | None:
    """What a call gives for arrays of symbolic sizes; None where no formula fits. ``sample(descriptions)``: what it gives on made-up arrays of these
    (shape, strides in bytes, dtype)."""
    numbers = [n for a in arrays for n in (*a.shape, *a.stride()) if is_symbolic(n)]
    env = numbers[0].env
    symbols = sorted(set().union(*(relations.symbols(env.simplify(n.expr)) for n in numbers)), key=lambda s: s.key)
    if not symbols or len(symbols) > MOST_SYMBOLS or any(s not in env.hints for s in symbols):
        return None
    terms = [(), *((s,) for s in symbols), *itertools.combinations_with_replacement(symbols, 2)]
    points = _points([env.hints[s] for s in symbols], len(terms) + MORE)
    given = [dict(zip(symbols, map(int, row))) for row in points]
    try:
        made = [sample(_descriptions(arrays, env, point)) for point in given]
    except (TypeError, ValueError):
        return None
    leaves = [leaves_of(m) for m in made]
    if len({tuple((leaf.dtype, leaf.ndim) for leaf in row) for row in leaves}) != 1:
        return None
    results = [_result(found, given, terms, env) for found in zip(*leaves)]
    return None if None in results else Varying(made[0], results)


def _points(hints: list[int], count: int) -> np.ndarray:
    """Sizes at which the call is made, a row a point."""
    base = hints if max(hints) <= SMALL else 11 + np.argsort(np.argsort(hints))
    offsets = np.random.RandomState(7).randint(0, SPREAD, (count, len(hints)))
    offsets[:, 0] = np.arange(count) % SPREAD
    offsets[0] = 0
    return np.asarray(base) + offsets


def _descriptions(arrays, env, point: dict) -> tuple:
    at = lambda n: int(relations.evaluate(env.simplify(expression(n)), point)) if is_symbolic(n) else int(n)  # noqa: E731
    found = []
    for a in arrays:
        d = np.dtype(a.dtype.np)
        found.append((tuple(map(at, a.shape)), tuple(at(n) * d.itemsize for n in a.stride()), d.str))
    return tuple(found)


def _result(leaves, given: list[dict], terms: list[tuple], env) -> Result | None:
    first = leaves[0]
    shape = tuple(_formula([leaf.shape[d] for leaf in leaves], given, terms, env) for d in range(first.ndim))
    order = _order(first)
    if None in shape or any(_order(leaf) != order for leaf in leaves):
        return None
    dense = contiguous_strides([shape[d] for d in order])
    strides = [0] * first.ndim
    for d, step in zip(order, dense):
        strides[d] = step
    return Result(shape, tuple(strides), first.dtype)


def _order(leaf: np.ndarray) -> tuple[int, ...]:
    """The dimensions, the outermost in memory first, of an array with this one's layout without gaps."""
    strides = np.empty_like(leaf).strides
    return tuple(sorted(range(leaf.ndim), key=lambda d: (-strides[d], d)))


def _formula(values: list[int], given: list[dict], terms: list[tuple], env):
    """The number, or symbolic number, that takes these values at the points; None where there is none of the kind."""
    if len(set(values)) == 1:
        return values[0]
    affine = [t for t in terms if len(t) < 2]
    for divisor, over in ((1, affine), (2, affine), (1, terms)):
        coefficients = _fitted(np.asarray(values) * divisor, given, over)
        # Of a quotient that is rounded down the remainder is fitted as a half.
        for more in range(divisor):
            exact = [c + (more if not t else 0) for c, t in zip(coefficients, over)]
            reached = [sum(c * _value(t, point) for c, t in zip(exact, over)) // divisor for point in given]
            if reached == values:
                whole: Any = 0
                for c, t in zip(exact, over):
                    whole = whole + c * math.prod(map(of, t))
                return wrap(whole if divisor == 1 else floordiv(whole, divisor), env)
    return None


def _value(term: tuple, point: dict) -> int:
    return math.prod(point[s] for s in term)


def _fitted(values: np.ndarray, given: list[dict], terms: list[tuple]) -> list[int]:
    """Whole coefficients near those of least squares."""
    matrix = np.array([[_value(t, point) for t in terms] for point in given], float)
    found, *_ = np.linalg.lstsq(matrix, values.astype(float), rcond=None)
    return [int(c) for c in np.rint(found)]
