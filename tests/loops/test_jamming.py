"""Turns of loops within a loop that are taken several at a time, since their elements lie side by side: NumPy's results, whatever the sizes are."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.loops.threads import inner
from flambeau.testing.loops import check

R = np.random.RandomState(17)
SIZES = [0, 1, 2, 3, 4, 5, 15, 16, 17, 20, 31, 33, 70]
FEW = [0, 1, 5, 16, 33]  # no turn, less than a vector, vectors alone, and with turns left over


def sized(functions, every):
    """All sizes of ``every``, few of the other functions: the rest is slow."""
    return [
        pytest.param(f, n, id=f"{f.__name__}-{n}", marks=() if f is every or n in FEW else pytest.mark.slow)
        for f in functions
        for n in SIZES
    ]


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


def product_by_elements(a, b):
    for i in range(b.shape[0]):
        for j in range(a.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += b[i, k] * a[k, j]
            b[i, j] = s


def product_of_elements(a, b):
    c = np.zeros_like(b)
    for i in range(b.shape[0]):
        for j in range(a.shape[1]):
            s = 0.0
            for k in range(b.shape[1]):
                s += b[i, k] * a[k, j]
            c[i, j] = s - c[i, j]
    return c


def two_loops_of_turns(a, b):
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            s, t = 0.0, 1.0
            for k in range(a.shape[0]):
                s += a[k, j] * 0.5
                for m in range(9):
                    t = t * 0.5 + a[k, j] * m
            b[i, j] = s + t


def one_after_the_other(a, b):
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            for k in range(0, a.shape[0], 3):
                b[i, j] -= a[k, j] * i
            for k in range(a.shape[0] - 1, 0, -1):
                b[i, j] += a[k, j]


def in_time_steps(a, b):
    for step in range(3):
        for i in range(min(b.shape)):
            for j in range(b.shape[1]):
                s = 0.0
                for k in range(a.shape[0]):
                    s += a[k, i] * a[k, j]
                b[i, j] = s + step
        a[0] += b[0]


def counted_by_hand(a, b):
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            s, n = 0.0, 0
            for k in range(a.shape[0]):
                s += a[n, j] - a[k, j] * 0.5
                n = (k + 1) % a.shape[0]
            b[i, j] = s


def of_squares(a, b):
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * a[k, j]
            b[i, j] = s


NESTS = [product_of_elements, two_loops_of_turns, one_after_the_other]


def of_the_row_that_is_written(a, b):
    product_by_elements(a[: a.shape[1]], b)


def as_long_as_the_turn(a, b):
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(j):
                s += a[k % 60, j]
            b[i, j] = s


def as_long_as_a_number_of_the_turn(a, b):
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            n, s = 0, 0.0
            for _ in range(3):
                for k in range(n):
                    s += a[k % 60, j]
                n += j % 4
            b[i, j] = s


def turns_that_know_the_last_one(a, b):
    t = 0.0
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            s = t
            for k in range(a.shape[0]):
                s += a[k, j]
            t = s * 0.5
            b[i, j] = s


def read_behind(a, b):
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[0]):
                s += a[k, j]
            b[i, j] = s
        b[i, 0] += s


def left_of_it(a, b):
    for i in range(b.shape[0]):
        for j in range(1, b.shape[1]):
            s = b[i, j - 1]
            for k in range(a.shape[0]):
                s += a[k, j]
            b[i, j] = s


def ended_early(a, b):
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[0]):
                s += a[k, j]
                if s > 20:
                    break
            b[i, j] = s


def along_rows(a, b):
    for i in range(b.shape[0]):
        for j in range(min(b.shape[1], a.shape[0])):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[j, k] * b[i, k]
            a[j, 0] = s


def outside(a, b):
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[0]):
                s += a[k, j + i]
            b[i, j] = s


NESTS_BY_ONE = [
    of_the_row_that_is_written, as_long_as_the_turn, as_long_as_a_number_of_the_turn, turns_that_know_the_last_one, left_of_it,
    ended_early, along_rows, outside,
]  # fmt: skip
NESTS_BY_ANY = [in_time_steps, read_behind, counted_by_hand]

ONE = [largest_of_columns, columns_before, one_column, rows, triangles, every_other, backwards, conditions, carried]


@pytest.fixture
def taken(monkeypatch):
    """For each loop within that is a function of its own, whether it takes several turns at a time."""
    out, known = [], inner.jam
    monkeypatch.setattr(inner, "jam", lambda *args: out.append(known(*args)) or out[-1])
    return out


@pytest.mark.parametrize("f, n", sized(SEVERAL + ONE, two_loops_and_numbers))
def test_beside_numpy(f, n):
    with torch._dynamo.config.patch(error_on_recompile=False):
        check(f, R.rand(80, n) + np.eye(80, n), R.rand(80, n), native=None)


@pytest.mark.parametrize("f, n", sized(NESTS + NESTS_BY_ONE + NESTS_BY_ANY, product_of_elements))
def test_nests_beside_numpy(f, n):
    with torch._dynamo.config.patch(error_on_recompile=False):
        check(f, R.rand(80, n), R.rand(7, n), native=None)


@pytest.mark.parametrize("f", NESTS + NESTS_BY_ONE, ids=lambda f: f.__name__)
def test_which_nests_are(f, taken):
    """None whose loops differ in length, with branches, or that are left; and whose turns may be in error."""
    check(f, R.rand(60, 50), R.rand(7, 50), native=None)
    assert any(taken) == (f in NESTS), taken


@pytest.mark.parametrize("f", NESTS, ids=lambda f: f.__name__)
def test_the_same_bits(f):
    """Each sum in its order."""
    a, b = R.rand(60, 50), R.rand(7, 50)
    copies = a.copy(), b.copy()
    got, want = torch.compile(f)(a, b), f(*copies)
    assert np.array_equal(a, copies[0]) and np.array_equal(b, copies[1])
    assert got is want or np.array_equal(got, want)


def test_nests_of_sizes_that_vary(taken):
    compiled = torch.compile(of_squares)
    for n in (50, 17, 64, 3, 0, 1, 23):
        a, b = R.rand(n, n), R.rand(n, n)
        want = b.copy()
        of_squares(a, want)
        compiled(a, b)
        np.testing.assert_array_equal(b, want)
    assert taken[0]  # of sizes that are known


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.complex128])
@pytest.mark.parametrize("f", NESTS, ids=lambda f: f.__name__)
def test_dtypes_of_nests(f, dtype):
    check(f, *((R.randint(1, 9, s)).astype(dtype) for s in ((60, 35), (7, 35))), native=None)


@pytest.mark.parametrize("order", ["C", "F"])
def test_nests_in_other_orders_of_memory(order):
    a, b = np.array(R.rand(50, 50), order=order), np.array(R.rand(7, 50), order=order)
    check(product_of_elements, a, b)
    check(two_loops_of_turns, a[::2, ::-1], b[:, ::-1])
    check(two_loops_of_turns, a.T, a[:30, 10:])
    square = R.rand(50, 50)
    check(two_loops_of_turns, square, square, native=None)


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
