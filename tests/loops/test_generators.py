"""Generator expressions, lists and rows that sum(), min(), max(), any() and all() consume within a native loop."""

import numpy as np
import pytest

from flambeau.testing.loops import check

X = np.random.default_rng(0).random(100)


def least(x, out):
    for i in range(len(x)):
        out[i] = min(x[i] * k for k in range(i + 1))


def largest_of_two_loops(x, out):
    for i in range(len(x)):
        out[i] = max(x[i] * k - j for k in range(i + 1) if x[k] < 0.9 or k == 0 for j in range(k + 1))


def summed(x, out):
    for i in range(len(x)):
        out[i] = sum(x[i] * k for k in range(i + 1) if x[k] > 0.5)


def counted(x, out):
    for i in range(len(x)):
        out[i] = sum(1 for v in x[:i] if v > 0.5) + sum(x[k] > 0.5 for k in range(i + 1))


def over_pairs(x, out):
    for i in range(len(x)):
        out[i] = sum(a * b for a, b in zip(x[:i], x[i:]))


def some_of_two_loops(x, out):
    for i in range(len(x)):
        out[i] = any(x[i] > x[k] * j for k in range(i) for j in (1, 2))


def every(x, out):
    for i in range(len(x)):
        out[i] = all(x[i] > v for v in x[:i])


def stops_before_the_end(x, out):
    for i in range(len(x)):
        out[i] = any(k >= i or x[k] > 2 for k in range(i + 1000))


def of_rows(x, out):
    for i in range(1, len(x)):
        out[i] = max(x[i:]) + min(x[: i + 1]) + sum(x[:i]) + any(x[:i] > 0.9)


def of_lists(x, out):
    for i in range(len(x)):
        made = [x[i] - x[k] for k in range(i + 1)]
        out[i] = max(made) + min([x[i] - x[k] for k in range(i + 1)]) + sum(made) + all([x[i] > x[k] for k in range(i)])


def of_nothing(x, out):
    for i in range(len(x)):
        out[i] = min(x[i] * k for k in range(i))


def past_the_end(x, out):
    for i in range(len(x)):
        out[i] = any(x[i + k] > 0.99 for k in range(i))


def cheapest_products(dims, m):
    n = len(dims) - 1
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            m[i, j] = min(m[i, k] + m[k + 1, j] + dims[i] * dims[k + 1] * dims[j + 1] for k in range(i, j))


@pytest.mark.parametrize(
    "f",
    [least, largest_of_two_loops, summed, counted, over_pairs, some_of_two_loops, every, stops_before_the_end, of_rows, of_lists, of_nothing, past_the_end],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_agrees(f):
    check(f, X, np.zeros(len(X)))


def test_chain_of_products():
    check(cheapest_products, np.random.default_rng(1).integers(5, 50, 12), np.zeros((11, 11), np.int64))


def nearest_pairs(x, n):
    merges = []
    for i in range(n):
        j, k = np.unravel_index(np.argmin(x[:, i:]), x[:, i:].shape)
        merges.append((int(j), int(k), np.ravel_multi_index((j, k), x.shape) * 1.0))
    return merges


def numbered_past_the_end(out):
    for i in range(len(out)):
        out[i] = np.unravel_index(i, (3, 15))[0]


def test_places_of_elements():
    check(nearest_pairs, X[:96].reshape(4, 24), 24)
    check(numbered_past_the_end, np.zeros(60, np.int64))
