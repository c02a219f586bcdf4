"""Numbers that are assigned in some turns, or in loops within, and read behind: the loop is native, and without a value the error is Python's."""

import numpy as np
import pytest

from flambeau.testing.loops import check

X = np.random.default_rng(0).random(300)
GRID = X.reshape(20, 15)
NONE = np.zeros(300)


def of_a_loop_within(x, n):
    out = np.empty(len(x))
    for k, p in enumerate(x):
        for i in range(n):
            y = p * i
        out[k] = y
    return out


def last_place(x):
    for i in range(len(x)):
        if x[i] > 0.9:
            best = i
    return best


def of_two_kinds(x):
    t = 0
    for i in range(len(x)):
        if x[i] > 0.5:
            v = i
        elif i > 3:
            v = x[i]
        if i > 10:
            t += v
    return t


def of_the_turn_before(x):
    s = 0.0
    for i in range(len(x)):
        if i > 0:
            s += before * x[i]  # noqa: F821
        before = x[i]  # noqa: F841
    return s


def bisected(p, n):
    lo, hi = 0.0, 1.0
    for _ in range(n):
        y = 0.5 * (lo + hi)
        if y * y > p:
            hi = y
        else:
            lo = y
    return y


def in_a_function(x, n):
    out = np.empty(len(x))
    for k in range(len(x)):
        out[k] = bisected(x[k], n)
    return out


def first_above(row, t):
    for j in range(len(row)):
        if row[j] > t:
            at = j
            break
    return at


def places_above(x, t):
    out = np.empty(len(x), np.int64)
    for k in range(len(x)):
        out[k] = first_above(x[k], t)
    return out


def recursive(x, n):
    for i in range(3):
        if x[n] * 3 > i:
            v = i
    if n == 0:
        return v
    rest = recursive(x, n - 1)
    return v + rest


@pytest.mark.parametrize(
    "f, args",
    [
        (of_a_loop_within, (X, 40)), (of_a_loop_within, (X, 0)), (last_place, (X,)), (last_place, (NONE,)), (of_two_kinds, (X,)),
        (of_two_kinds, (NONE,)), (of_the_turn_before, (X,)), (in_a_function, (X, 40)), (in_a_function, (X, 0)), (places_above, (GRID, 0.5)),
        (places_above, (GRID, 2.0)), (recursive, (X, 40)), (recursive, (NONE, 40)),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)  # fmt: skip
def test_agrees(f, args):
    check(f, *args)
