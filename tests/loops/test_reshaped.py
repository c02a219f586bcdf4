"""Arrays that a loop leaves in another shape than they had before it: how many elements depends on the turns."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.utils import counters
from flambeau.loops import operator


def binomial(v, p):
    n = len(v) - 1
    for _ in range(n):
        v = 0.99 * (p * v[:-1] + (1 - p) * v[1:])
    return v[0]


def two(v, n):
    w = v * 2.0
    for i in range(n):
        v = v[1:] * 1.5
        w = w[:-1] + v + i
    v[0] += 1.0
    return v, w


def matrix(m, n):
    for _ in range(n):
        m = (m[1:, :-1] + m[:-1, 1:]) * 0.5
    return m


def given_back(v, n):
    for _ in range(n):
        v = v[1:] * 1.0
        if v[0] > 0.9:
            break
    return v


def shrinks(v, n):
    for _ in range(n):
        v = v[1:] * 0.5 + v[:-1]
    return v


def fails_late(v, n):
    seen = np.zeros(3)
    seen[0] = 7.0
    for i in range(n):
        v = v[1:] * 1.5
        seen[1] = v[i]
    return v, seen


def gives(fn, *args):
    try:
        return fn(*args)
    except Exception as e:
        return type(e), str(e)


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, tuple):
        assert len(a) == len(b)
        return all(map(same, a, b))
    assert getattr(a, "dtype", None) == getattr(b, "dtype", None) and np.shape(a) == np.shape(b)
    np.testing.assert_array_equal(a, b) if isinstance(a, np.ndarray | np.number) else None
    return True


V = np.random.default_rng(3).random(900)
CASES = [
    (binomial, [(V[:n].copy(), 0.4) for n in (600, 700, 301, 850)]),
    (two, [(V[:n].copy(), n // 3) for n in (600, 700, 333, 850)]),
    (matrix, [(np.outer(V[:n], V[-n:]), 90) for n in (100, 95, 120)]),
    (given_back, [(V[:n].copy(), 400) for n in (900, 500, 450)]),
]


@pytest.mark.parametrize("fn, calls", CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_shapes_that_change(fn, calls):
    """Every call after the first is the loop's, whatever the sizes are."""
    operator.SITES.clear()
    fast = torch.compile(fn)
    for args in calls:
        for _ in range(2):
            mine, theirs = ([np.array(a) if isinstance(a, np.ndarray) else a for a in args] for _ in range(2))
            assert same(fn(*mine), fast(*theirs)) and same(tuple(mine), tuple(theirs))
    assert counters["stats"]["native_loops"] > 0
    assert operator.SITES and all(site.native for site in operator.SITES.values())


def test_errors_after_turns():
    fast = torch.compile(fails_late)
    for n in (300, 400, 900):
        plain, compiled = gives(fails_late, V[:n].copy(), 200), gives(fast, V[:n].copy(), 200)
        assert (plain == compiled) if isinstance(plain[0], type) else same(plain, compiled)


def test_one_graph_is_unrolled():
    """Under fullgraph the loop stays part of the graph."""
    fast = torch.compile(shrinks, fullgraph=True)
    for n in (200, 200):
        assert same(shrinks(V[:n].copy(), 80), fast(V[:n].copy(), 80))


def of_numbers(x, a, b):
    return x * a + b


def test_one_number_given_twice():
    """What is captured for two numbers of NumPy's serves one object in both places."""
    fast, one = torch.compile(of_numbers, dynamic=True), np.float64(0.5)
    fast(V, np.float64(0.25), np.float64(0.75))
    fast(V, np.float64(0.35), np.float64(0.85))
    frames = counters["frames"]["total"]
    assert same(fast(V, one, one), of_numbers(V, one, one)) and same(fast(V, one, one), of_numbers(V, one, one))
    assert counters["frames"]["total"] == frames
