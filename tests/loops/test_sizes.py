"""Indices below sizes that differ between calls: they need no check where that is told by the text, and have one where it isn't."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.loops.interpreter import compiler
from flambeau.testing.loops import run

R = np.random.RandomState(2)


def products(a, b):
    n = a.shape[0]
    for i in range(n):
        for k in range(n):
            for j in range(n):
                b[i, j] += a[i, k] * a[k, j]


def elimination(a, b):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            f = a[i, k] / (a[k, k] + 9)
            for j in range(k, n):
                a[i, j] -= f * a[k, j]


def neighbours(a, b):
    for _ in range(3):
        for i in range(1, len(a) - 1):
            for j in range(1, a.shape[1] - 1):
                b[i, j] = a[i - 1, j + 1] + a[i + 1, j - 1]


def downwards(a, b):
    n = len(a)
    for i in range(n - 2, -1, -1):
        for j in range(n - 1, 0, -2):
            b[i, j] = b[i + 1, j] * 0.5 + a[i, j - 1]


def around(a, b):
    n = len(a)
    for i in range(n):
        for j in range(n):
            b[i, j] = a[(i + 3) % n, (j * j + i) % n] + a[i // 2, j % (i + 1)]


def windows(a, b):
    n = len(a)
    for i in range(n):
        for j in range(n):
            for k in range(max(j - 2, 0), min(j + 3, n)):
                b[i, j] += a[i, k]


def compared(a, b):
    n = len(a)
    for i in range(n):
        j, k = i + 2, 0
        if j < n:
            b[i, j] = a[j, i]
        while k < n:
            b[k, i] += a[i, k]
            k += 2


def neighbours_that_there_are(a, b):
    n = len(a)
    for i in range(n):
        for j in range(n):
            if j + 1 < n:
                b[i, j + 1] += a[i, j] * 2
            if i + 1 < n:
                if j > 0:
                    b[i + 1, j - 1] += a[i, j]
                b[i + 1, j] -= a[i, j]
                if j + 2 < n:
                    b[i + 1, j + 2] += a[i + 1, j]


def of_the_other_size(a, b):
    m = b.shape[1]
    for i in range(len(b)):
        for j in range(m):
            b[i, j] += b[i, j // 2]
    for j in range(m - 2):
        for i in range(len(b)):
            b[i, j] += b[i, j + 2]


UNCHECKED = [
    products,
    elimination,
    neighbours,
    downwards,
    around,
    windows,
    compared,
    neighbours_that_there_are,
    of_the_other_size,
]


def one_too_far(a, b):
    n = len(a)
    for i in range(n):
        b[i, 0] = a[i + 1, 0] if i < n - 1 else a[i + n // 40, 0]


def left_of_the_first(a, b):
    n = len(a)
    for i in range(n):
        for j in range(n):
            b[i, j] = a[i - 1, j] + a[i, j - 2]


def grows(a, b):
    n = len(a)
    k = n - 4
    for i in range(n):
        b[i, 0] = a[k, 0]
        k += i % 2 - (1 if k > n // 2 else 0)


def passes_the_end(a, b):
    n = len(a)
    k = n - 5
    for i in range(n):
        b[i, 1] = a[k, 1]
        if i % 10 == 9:
            k += 1


def up_to_the_end(a, b):
    n = len(a)
    for i in range(n):
        for j in range(n):
            if j <= n - i:
                b[i, j] = a[i, n - 1 - j] + a[j - 1 if j == n else j, i]


def past_a_condition(a, b):
    n = len(a)
    for i in range(n):
        if i - 1 < n - 1 and i + 1 < n + n // 40:
            b[i, 0] = a[i + 1, 0] + a[i - 1, 0]


CHECKED = [past_a_condition, one_too_far, left_of_the_first, grows, passes_the_end, up_to_the_end]
SIZES = (24, 31, 45, 0, 3, 57)


@pytest.fixture
def checks(monkeypatch):
    """The numbers of texts of IndexErrors in the kernels that are made."""
    made, module = [], compiler.module

    def noted(e, *given, **more):
        made.append(sum(fault.kind == "IndexError" for fault in e.errors))
        return module(e, *given, **more)

    monkeypatch.setattr(compiler, "module", noted)
    return made


@pytest.mark.parametrize("f", UNCHECKED + CHECKED, ids=lambda f: f.__name__)
def test_other_sizes(f, checks):
    compiled, made = torch.compile(f), []
    for n in SIZES:
        args = R.rand(n, n), R.rand(n, n if f is not of_the_other_size else n + 3)
        copies = [a.copy() for a in args]
        want = run(f, *copies)
        got = run(compiled, *args)
        assert repr((got, args)) == repr((want, tuple(copies)))
        made.append(list(checks))
        checks.clear()
    # The second call's kernels are for all sizes but very small ones.
    assert made[1] and (sum(made[1]) == 0) == (f in UNCHECKED), made
    assert not made[2] and not made[5], made


def test_new_arrays_of_such_sizes(checks):
    """They are no reason to be compiled again."""

    def f(a):
        n = len(a)
        out, ones = np.zeros((n, n - 1)), np.ones(n)
        for i in range(n):
            for j in range(n - 1):
                out[i, j] = a[i] * ones[j] - a[j + 1]
        return out

    compiled, made = torch.compile(f), []
    for n in SIZES[:3]:
        a = R.rand(n)
        np.testing.assert_array_equal(compiled(a), f(a))
        made.append(list(checks))
        checks.clear()
    assert made[0] and made[1] == [0] and not made[2], made
