"""Turns of a loop that have nothing to do with each other are spread over threads; others are not, and both give NumPy's results."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing.loops import check, run, same

R = np.random.RandomState(5)
N = 400


def rows(a, out):
    for i in range(a.shape[0]):
        s = 0.0
        for j in range(a.shape[1]):
            s += a[i, j] * a[i, j]
        out[i] = s


def stencil(a, out):
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            out[i, j] = a[i - 1, j] + a[i + 1, j] - 4.0 * a[i, j]
            if out[i, j] > 1.0:
                out[i, j] -= 1.0


def own_rows(a, b):
    for i in range(len(a)):
        row = a[i]
        row *= 2.0
        row[b[i] > 0.5] = 0.0
        a[i, 3] = np.sum(b[i]) + row.max()
        b[i, ::2] += a[i, 1::2]


def columns(a, b):
    for k in range(a.shape[1] - 1, 0, -2):
        t = k
        while t > 0:
            a[t % a.shape[0], k] += b[t % len(b), 0]
            t //= 2
        a[:, k] *= 0.5


def shifted(a, out):
    for i in range(len(a) - 1):
        out[i + 1] = a[i, 1] * 2
        out[i + 1] += a[i + 1, 1]


def last_value(a, out):
    for i in range(len(a)):
        t = a[i, 2]
        out[i] = t
    return t, i


def symmetric(a, out):
    n = min(a.shape)
    for i in range(n):
        a[i, i:n] = out[i:n] * i
        a[i:n, i] = a[i, i:n]


def below_the_diagonal(a, out):
    n = min(a.shape)
    for i in range(1, n):
        a[:i, i] = out[:i] * i
        a[i, :i] = a[:i, i] + a[i, i]


def two_dimensions_after_the_turn(a, out):
    for i in range(min(a.shape) - 1):
        a[i + 1 :, i] = out[i] + i
        a[i, i + 1 :] -= out[i]


SPREAD = [
    rows, stencil, own_rows, columns, shifted, last_value, symmetric, below_the_diagonal, two_dimensions_after_the_turn,
]  # fmt: skip


def carried(a, out):
    s = 0.0
    for i in range(len(a)):
        s += a[i, 0]
        out[i] = s


def neighbours(a, out):
    for i in range(1, len(a)):
        a[i] = a[i - 1] * 0.5 + a[i]


def one_place(a, out):
    for i in range(len(a)):
        out[i // 2] = a[i, 0]


def by_index(a, out):
    for i in range(len(a)):
        out[int(a[i, 0] * 7) % len(out)] += i


def from_the_end(a, out):
    for i in range(-len(a) + 1, len(a)):
        out[i] += a[i, 0] * i


def leaves(a, out):
    for i in range(len(a)):
        out[i] = a[i, 1]
        if a[i, 1] > 2.5:
            break


def both_dimensions(a, out):
    for i in range(min(a.shape)):
        a[i, 0] = a[0, i] + 1


def transposed(a, out):
    for i in range(min(a.shape)):
        a.T[i] += a[i, 0] * 0.1


def symmetric_from_before(a, out):
    n = min(a.shape)
    for i in range(1, n):
        a[i, i - 1 : n] = out[i] + i
        a[i - 1 : n, i] += a[i, i - 1 : n]


def smaller_and_larger(a, out):
    n = min(a.shape)
    for i in range(n):
        a[i, i:n] = out[i] + i
        a[i, :i] += a[:i, i]


def from_a_number(a, out):
    n = min(a.shape)
    for i in range(n):
        a[i, 2:n] = out[i] + i
        a[2:n, i] += a[i, 2:n]


NOT = [
    carried, neighbours, one_place, by_index, from_the_end, leaves, both_dimensions, transposed, symmetric_from_before,
    smaller_and_larger, from_a_number,
]  # fmt: skip


@pytest.mark.parametrize("f", SPREAD + NOT, ids=lambda f: f.__name__)
def test_what_is_spread(f, texts):
    check(f, R.randn(N, 60), R.rand(N, 60) if f in (stencil, own_rows, columns) else R.rand(N))
    assert [("KERNEL.turns" in t) for t in texts] == [f in SPREAD] * len(texts) and texts


def test_errors_of_memory_do_not_keep_turns_in_order(texts):
    """After something that can't be done twice: with arrays of its own, which there may be no memory for, and sizes that are seen to be equal."""

    def f(a, out):
        a *= 2.0
        n = a.shape[1]
        for i in range(n - 1):
            out[i + 1 : n, i] = out[i, i + 1 : n] = a[:, i] @ a[:, i + 1 : n]

    check(f, R.randn(30, 90), np.zeros((90, 90)))
    assert all("KERNEL.turns" in t for t in texts) and texts


def test_results_do_not_depend_on_the_number_of_threads():
    def f(a, out):
        for i in range(a.shape[0]):
            s = 0.0
            for j in range(a.shape[1]):
                s += np.sin(a[i, j]) * 0.1
            out[i] = s

    a, results = R.randn(3000, 200), []
    before = torch.get_num_threads()
    try:
        for n in (1, 2, 3, 2):
            torch.set_num_threads(n)
            out = np.zeros(3000)
            torch.compile(f)(a, out)
            results.append(out)
    finally:
        torch.set_num_threads(before)
    assert all(np.array_equal(r, results[0]) for r in results)


def test_it_can_be_turned_off(texts):
    torch._dynamo.reset()
    torch.compile(rows, options={"parallel": False})(R.randn(N, 60), np.zeros(N))
    assert texts and not any("KERNEL.turns" in t for t in texts)


def test_errors_of_a_turn():
    def f(a, index, out):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                out[i] += a[i, index[j]]

    a, index = R.randn(3000, 50), np.arange(50)
    torch._dynamo.reset()
    compiled = torch.compile(f)
    for bad in (None, 7, 49):
        index[:] = np.arange(50)
        if bad is not None:
            index[bad] = 50 + bad
        got, want = np.zeros(3000), np.zeros(3000)
        same(run(compiled, a, index, got), run(f, a, index, want))
        np.testing.assert_array_equal(got, want)


def test_one_array_twice():
    """Arguments that share memory are no reason for other results."""

    def f(a, b):
        for i in range(len(a) - 1):
            b[i] = a[i + 1] * 0.5 + b[i]

    for shift in (0, 1, 2):
        results = []
        for g in (torch.compile(f), f):
            x = np.arange(40000.0)
            g(x[: 30000 + shift], x[shift : 30000 + 2 * shift])
            results.append(x)
        np.testing.assert_array_equal(*results)
