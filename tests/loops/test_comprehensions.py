"""Comprehensions over ranges and arrays as native loops, and generator expressions that a function consumes at once."""

import math
import time

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.utils import counters
from flambeau.testing.loops import check

R = np.random.default_rng(3)
X, N = R.random(400), R.integers(-20, 20, 400)


def of_elements(x, n):
    return np.array([math.sin(v) + 1 for v in x])


def of_a_range(x, n):
    return [x[i] * x[i - 1] for i in range(1, len(x))]


def windows(x, n):
    return np.array([np.sum(x[i : i + 10]) for i in range(0, len(x) - 10, 3)])


def with_a_condition(x, n):
    return [i for i, v in enumerate(x) if v > 0.5 if n[i] > 0], [int(v) % 7 for v in n]


def none_is_left(x, n):
    return [v for v in x if v > 5], {v for v in n if v > 100}, {v: 1 for v in n if v > 100}


def pairs(x, n):
    return [(i, a, b, a > 0.5) for i, (a, b) in enumerate(zip(x, n))]


def nested_loops(x, n):
    return [x[i] - n[j] for i in range(0, len(x), 20) for j in range(i, len(n), 50) if i != j]


def dicts_and_sets(x, n):
    return {i: x[i] for i in range(len(x))}, {int(v) // 3 for v in n}, {(int(v), 1): 2.5 for v in n}


def outer_names(x, n):
    k = 3
    f = lambda v: v * k + len(x)  # noqa: E731
    return [f(v) for v in x], k


def shadowed(x, n):
    v = "kept"
    out = [v * 2 for v in x]
    return v, out


def sums(x, n):
    return sum(v * v for v in x), sum((a * b for a, b in zip(x, n)), 10), math.fsum(v for v in x)


def extremes(x, n):
    return (
        max(abs(x[i] - x[i - 1]) for i in range(1, len(x))),
        min(int(v) for v in n),
        max((v for v in n if v > 99), default=-1),
    )


def as_containers(x, n):
    return list(v + 1 for v in x), tuple(v > 0 for v in n), set(v for v in n), sorted((v for v in n), reverse=True)


def fromiter(x, n):
    return np.fromiter((v * 2 for v in x), float), np.fromiter((v for v in n), dtype=np.int64, count=len(n))


def written_meanwhile(x, n):
    return [x.__setitem__(i, 0.0) or n[i] for i in range(len(x))], x


def index_error(x, n):
    return [x[i + 1] for i in range(len(x))]


def overflow(x, n):
    return [int(v) ** 40 for v in n]


def division(x, n):
    return [1 // int(v) for v in n]


PROGRAMS = [
    (of_elements, True),
    (of_a_range, True),
    (windows, True),
    (with_a_condition, True),
    (none_is_left, True),
    (pairs, True),
    (nested_loops, True),
    (dicts_and_sets, True),
    (outer_names, True),
    (shadowed, True),
    (sums, True),
    (extremes, True),
    (as_containers, True),
    (fromiter, True),
    (written_meanwhile, None),
    (index_error, True),
    (overflow, None),
    (division, None),
]


@pytest.mark.parametrize("f, native", PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_comprehension(f, native):
    check(f, X, N, native=native)


def test_an_iterator_that_is_used_again():
    def f(x):
        it, pairs = iter(range(400)), zip(x, x)
        first = [x[i] for i in it]
        second = [a + b for a, b in pairs]
        return first, list(it), second, list(pairs)

    check(f, X, native=None)


def test_sizes_that_vary_are_one_graph():
    torch._dynamo.reset()
    f = torch.compile(lambda x: [v * 2 + x[0] for v in x])
    before = counters["frames"]["total"]
    for n in (300, 301, 305, 400, 350):
        x = R.random(n)
        assert f(x) == [v * 2 + x[0] for v in x]
    assert counters["frames"]["total"] - before <= 4


def rows(x):
    return np.array([[x[i] * x[j] for j in range(60)] for i in range(60)])


def test_long_ones_that_stay_python_are_not_unrolled():
    torch._dynamo.reset()
    start = time.process_time()
    f = torch.compile(rows)
    for _ in range(2):
        np.testing.assert_array_equal(f(X), rows(X))
    assert time.process_time() - start < 3.0


def test_short_ones_are_part_of_the_graph():
    torch._dynamo.reset()
    f = torch.compile(lambda x: np.array([x[i] + x[i + 1] for i in range(5)]).sum(), fullgraph=True)
    np.testing.assert_allclose(f(X), X[:5].sum() + X[1:6].sum())


def test_gradients_go_through_them():
    f = lambda x: sum(v * v for v in x)  # noqa: E731
    x = np.arange(5.0)
    np.testing.assert_allclose(torch.func.grad(torch.compile(f))(x), 2 * x)


def of_tensors(t):
    return torch.stack([t[i] * i for i in range(100)])


def test_comprehensions_over_tensors_are_traced():
    torch._dynamo.reset()
    t = torch.arange(100.0)
    assert torch.equal(torch.compile(of_tensors, fullgraph=True)(t), of_tensors(t))
