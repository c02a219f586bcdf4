"""Turns of loops within a loop that are taken several at a time, since their elements lie side by side: NumPy's results, whatever the sizes are."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.loops import inner
from flambeau.testing.loops import check

R = np.random.RandomState(17)
SIZES = [0, 1, 2, 15, 16, 17, 31, 33, 70]


def orthogonal(a, b):
    for k in range(a.shape[1]):
        b[:, k] = a[:, k] / np.sqrt(np.dot(a[:, k], a[:, k]))
        for j in range(k + 1, a.shape[1]):
            s = np.dot(b[:, k], a[:, j])
            a[:, j] -= b[:, k] * s


def scaled_columns(a, b):
    for k in range(3):
        for j in range(a.shape[1]):
            a[:, j] = a[:, j] * b[k, j] + k
        b[0] += a[0]


def largest_of_columns(a, b):
    for k in range(3):
        for j in range(a.shape[1]):
            b[k, j] = np.max(a[:, j]) - np.min(b[:, j])
        a[k] *= 0.5


def two_loops_and_numbers(a, b):
    for k in range(4):
        for j in range(1, a.shape[1]):
            s = np.sum(a[:, j]) * 0.5 + k
            t = a[0, j] + s
            b[:, j] += a[:, j] * t
            a[1, j] = np.sum(b[:, j] * a[:, j]) + t
        b[0, 0] += a[1, 0]


def blocks_of_columns(a, b):
    for k in range(3):
        for j in range(a.shape[1]):
            b[1:, j] = a[:-1, j] + a[1:, j] * k
            a[2, j] += b[1, j]
        a[0] += b[0]


SEVERAL = [orthogonal, scaled_columns, two_loops_and_numbers, blocks_of_columns]


def columns_before(a, b):
    for k in range(3):
        for j in range(1, a.shape[1]):
            a[:, j] += a[:, j - 1] * b[k, j]
        b[0] += a[0]


def one_column(a, b):
    for _ in range(3):
        for j in range(a.shape[1]):
            a[:, 0] += b[:, j] * 0.5
        b[0] += a[0]


def rows(a, b):
    for _ in range(3):
        for j in range(min(a.shape)):
            a[j] += b[j] * np.sum(a[j])
        b[0] += a[0]


def triangles(a, b):
    for k in range(3):
        for j in range(min(a.shape)):
            a[:j, j] += b[:j, j] * k
        b[0] += a[0]


def every_other(a, b):
    for k in range(3):
        for j in range(0, a.shape[1], 2):
            a[:, j] += b[:, j] * k
        b[0] += a[0]


def backwards(a, b):
    for _ in range(3):
        for j in range(a.shape[1] - 1, -1, -1):
            a[:, j] -= b[:, j] * np.mean(a[:, j])
        b[0] += a[0]


def conditions(a, b):
    for k in range(3):
        for j in range(a.shape[1]):
            if a[0, j] > 0.5:
                a[:, j] -= b[:, j] * k
        b[0] += a[0]


def carried(a, b):
    s = 0.0
    for _ in range(3):
        for j in range(a.shape[1]):
            s += np.sum(a[:, j])
            b[:, j] += s
        a[0] += b[0]


ONE = [largest_of_columns, columns_before, one_column, rows, triangles, every_other, backwards, conditions, carried]


@pytest.fixture
def taken(monkeypatch):
    """For each loop within that is a function of its own, whether it takes several turns at a time."""
    out, known = [], inner.jam
    monkeypatch.setattr(inner, "jam", lambda *args: out.append(known(*args)) or out[-1])
    return out


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("f", SEVERAL + ONE, ids=lambda f: f.__name__)
def test_beside_numpy(f, n):
    with torch._dynamo.config.patch(error_on_recompile=False):
        check(f, R.rand(80, n) + np.eye(80, n), R.rand(80, n), native=None)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex128])
@pytest.mark.parametrize("f", [f for f in SEVERAL if f is not orthogonal], ids=lambda f: f.__name__)
def test_dtypes(f, dtype):
    if dtype is np.int64 and f is not scaled_columns:
        f = one_column
    check(f, *((R.randint(1, 9, (60, 35)) + 30 * np.eye(60, 35)).astype(dtype) for _ in range(2)), native=None)


@pytest.mark.parametrize("f", SEVERAL + ONE, ids=lambda f: f.__name__)
def test_which_are(f, taken):
    """None that a turn writes what another reads, whose loops differ in length, or that has branches."""
    check(f, R.rand(60, 50) + np.eye(60, 50), R.rand(60, 50))
    assert any(taken) == (f in SEVERAL), taken


@pytest.mark.parametrize("order", ["C", "F"])
def test_other_orders_of_memory(order):
    check(orthogonal, np.array(R.rand(40, 40) + np.eye(40), order=order), np.zeros((40, 40)))
    check(orthogonal, R.rand(90, 80)[:, ::2], np.zeros((90, 40)))
    check(orthogonal, R.rand(160, 40)[::2], np.zeros((40, 160), order=order).T[::2])


def test_columns_that_overlap():
    """Arrays of which one is the other, moved by a column: turns aren't independent."""

    def f(a, b):
        for k in range(3):
            for j in range(b.shape[1]):
                b[:, j] += a[:, j] * 0.5
            b[0] += k

    for moved in (0, 1, 3):
        wide = R.rand(20, 43)
        copies = [wide.copy() for _ in range(2)]
        f(copies[0][:, : 43 - moved], copies[0][:, moved:])
        torch.compile(f)(copies[1][:, : 43 - moved], copies[1][:, moved:])
        np.testing.assert_allclose(copies[1], copies[0], rtol=1e-12)
