"""Loops whose turns are taken in order, run by blocks of rows that take all turns each: NumPy's results, and which loops are."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import _runtime
from flambeau.testing.loops import check

R = np.random.RandomState(23)


def last_axis(a, b, c):
    for k in range(1, a.shape[2]):
        t = b[:, :, k] * 0.5 + c
        a[:, :, k] = a[:, :, k - 1] * t - b[:, :, k - 1]


def and_back(a, b, c):
    for k in range(a.shape[2] - 2, -1, -1):
        t = a[:, :, k] - b[:, :, k] * c
        c[:] = t
        b[:, :, k] = t + a[:, :, k + 1]


def steps(a, b, c):
    for k in range(200):
        z = c * 0.5 + a[:, :, 0]
        c[:, :] = np.where(z > 0.7, z - k * 0.001, c * 1.01)
        b[:, :, k % 3] += c


def broadcast_rows(a, b, c):
    for k in range(1, a.shape[2]):
        a[:, :, k] += b[0, :, k] * a[:, :, k - 1]


def neighbours_along_the_row(a, b, c):
    for k in range(1, a.shape[2]):
        a[:, 1:, k] = a[:, :-1, k - 1] + b[:, 1:, k]


def cuts_of_the_row(a, b, c):
    for k in range(1, a.shape[2]):
        a[:, 1:-1, k] += a[:, :-2, k] + a[:, 2:, k - 1] * 0.5
        a[:, 0, k] = a[:, 1, k - 1]


def products_of_turns(a, b, c):
    """A loop in the loop, over buffers that go from turn to turn."""
    for i in range(5):
        t = np.ones_like(c)
        for k in range(a.shape[2]):
            if i != k:
                t *= (c - k) / (i - k)
        a[:, :, i] += t * 0.01


def until_small(a, b, c):
    for i in range(a.shape[2]):
        n = i
        while n > 0:
            c += a[:, :, n] * 0.1
            n //= 2
        b[:, :, i] -= c


def taken_over(a, b, c):
    """A variable that is one of two arrays."""
    for i in range(4):
        t = c
        for k in range(a.shape[2]):
            t = t * 0.5 + a[:, :, k]
        b[:, :, i] += t


BLOCKS = [
    products_of_turns,
    until_small,
    taken_over,
    last_axis,
    and_back,
    steps,
    broadcast_rows,
    neighbours_along_the_row,
    cuts_of_the_row,
]


def neighbouring_rows(a, b, c):
    for k in range(1, a.shape[2]):
        a[1:, :, k] = a[:-1, :, k - 1] + b[1:, :, k]


def rows_of_what_was_written(a, b, c):
    for k in range(1, a.shape[2]):
        a[:, :, k] += a[0, :, k - 1] * 0.1


def upside_down(a, b, c):
    for k in range(1, a.shape[2]):
        a[:, :, k] += a[::-1, :, k - 1] * 0.1


def sums_of_all(a, b, c):
    for k in range(1, a.shape[2]):
        a[:, :, k] += np.sum(a[:, :, k - 1]) * 0.01


def transposed(a, b, c):
    for k in range(1, a.shape[2]):
        a[:, :, k] += a[:, :, k - 1].T * 0.1


def transposed_buffer(a, b, c):
    for k in range(1, a.shape[2]):
        t = a[:, :, k - 1] * 0.1
        a[:, :, k] += t.T


def one_element(a, b, c):
    for k in range(1, a.shape[2]):
        a[:, :, k] += b[:, :, k] * a[3, 2, k - 1]


def condition(a, b, c):
    for k in range(1, a.shape[2]):
        if a[0, 0, k - 1] > 0.4:
            a[:, :, k] -= b[:, :, k] * 0.5


def moved_buffer(a, b, c):
    for k in range(1, a.shape[2]):
        t = a[:, :, k - 1] * 0.5
        a[1:, :, k] += t[:-1]


def overlapping_parts(a, b, c):
    for k in range(1, a.shape[2]):
        a[1:, :, k] = a[:-1, :, k]
        a[:, :, k] += a[:, :, k - 1]


def rolled(a, b, c):
    for k in range(1, a.shape[2]):
        a[:, :, k] += np.roll(a[:, :, k - 1], 1, axis=0)


def product(a, b, c):
    for k in range(1, a.shape[2]):
        a[:, :, k] += a[:, :, k - 1] @ c * 0.01


def other_first_axis(a, b, c):
    for k in range(1, a.shape[0]):
        a[k] += a[k - 1] * 0.5


def fewer_dimensions(a, b, c):
    for k in range(1, a.shape[2]):
        c[0] += a[0, :, k]
        a[:, :, k] += c


def swapped_axes(a, b, c):
    for k in range(1, a.shape[2]):
        a[:, 0, k] = a[0, :, k - 1] * 0.5


def number_used_later(a, b, c):
    s = 0.0
    for k in range(1, a.shape[2]):
        s = s * 0.5 + k
        a[:, :, k] += a[:, :, k - 1] * s
    return s


def turned_within(a, b, c):
    for _i in range(3):
        t = c * 1.0
        for _k in range(a.shape[2]):
            t = t.T * 0.5
        c += t


def moved_within(a, b, c):
    for _i in range(3):
        t = c * 1.0
        for _k in range(5):
            t[1:] += t[:-1] * 0.5
        c += t


def one_of_two(a, b, c):
    for i in range(3):
        t = c
        for k in range(a.shape[2]):
            c[:] = t * 0.5 + a[:, :, k]
            t = c[::-1]
        b[:, :, i] += t


def sum_within(a, b, c):
    for i in range(3):
        for k in range(a.shape[2]):
            if c[0, 0] < 5:
                c += a[:, :, k]
        b[:, :, i] += c


IN_ORDER = [
    turned_within, moved_within, one_of_two, sum_within,
    neighbouring_rows, rows_of_what_was_written, upside_down, sums_of_all, transposed, transposed_buffer, one_element, condition,
    moved_buffer, overlapping_parts, rolled, product, other_first_axis, fewer_dimensions, swapped_axes,
    number_used_later,
]  # fmt: skip


def arrays(rows, columns=None, turns=30):
    columns = rows if columns is None else columns
    return R.rand(rows, columns, turns), R.rand(rows, columns, turns), R.rand(rows, columns)


@pytest.mark.parametrize("threads", ["one", "two"])
@pytest.mark.parametrize("f", BLOCKS + IN_ORDER, ids=lambda f: f.__name__)
def test_beside_numpy(f, threads, texts):
    before = _runtime.loops_worth(0 if threads == "two" else 10**12)
    try:
        check(f, *arrays(60), native=None)
    finally:
        _runtime.loops_worth(before)
    assert [("KERNEL.turns" in t) for t in texts] == [f in BLOCKS] * len(texts) and texts


ROWS = [0, 1, 15, 17, 409, 420]


# All numbers of rows for one function; none, few and many for each other one.
@pytest.mark.parametrize("f, rows", [
    pytest.param(f, n, id=f"{f.__name__}-{n}", marks=() if f is last_axis or n in (0, 17, 420) else pytest.mark.slow)
    for f in BLOCKS for n in ROWS
])  # fmt: skip
def test_sizes(f, rows):
    check(f, *arrays(rows, 5), native=None)
    check(f, *arrays(rows, 1), native=None)


@pytest.mark.parametrize("f", BLOCKS, ids=lambda f: f.__name__)
def test_sizes_that_vary(f):
    compiled = torch.compile(f, dynamic=True)
    for rows in (330, 290, 400):
        given = arrays(rows, 7)
        plain = [a.copy() for a in given]
        f(*plain)
        compiled(*given)
        for a, b in zip(given, plain):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_orders_of_memory():
    for f in BLOCKS:
        a, b, c = arrays(60)
        check(f, np.asfortranarray(a), b.transpose(1, 0, 2), c.T, native=None)
        check(f, a[::2], b[::2, ::-1], c[::2], native=None)


def test_rows_that_are_too_few_or_lie_together(texts):
    """Elements of a turn that lie side by side are worth blocks where there are many of them."""

    def f(a, b):
        for k in range(1, 60):
            a[:, :] = a * b[0] + k

    check(f, R.rand(60, 60), R.rand(60, 60))
    check(last_axis, *arrays(30))
    assert not any("KERNEL.turns" in t for t in texts)
    texts.clear()
    check(f, R.rand(600, 60), R.rand(600, 60))
    assert all("KERNEL.turns" in t for t in texts) and texts


def test_one_array_under_two_names():
    def f(a, b):
        for k in range(1, a.shape[1]):
            a[:, k] += b[:, k - 1] * 0.5

    for moved in (0, 1):
        wide = R.rand(41, 30)
        copies = [wide.copy() for _ in range(2)]
        f(copies[0][moved:], copies[0][: 41 - moved])
        torch.compile(f)(copies[1][moved:], copies[1][: 41 - moved])
        np.testing.assert_allclose(copies[1], copies[0], rtol=1e-12)
