"""Regions that are met again in a frame on operands of the same kinds are compiled once."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.higher_order.native_loops import compiling


def catalan(n, memo):
    if n <= 1:
        return 1
    if memo[n] >= 0:
        return memo[n]
    s = 0
    for i in range(n):
        s += catalan(i, memo) * catalan(n - 1 - i, memo)
    memo[n] = s
    return s


def catalans(n):
    memo = np.full(n + 1, -1, np.int64)
    return [catalan(i, memo) for i in range(n + 1)], memo


STEP = 2


def climbed(x, lo, hi, by):
    if hi - lo < STEP:
        return x[lo] * by
    middle = (lo + hi) // 2
    return climbed(x, lo, middle, by) + climbed(x, middle, hi, by)


def of_other_kinds(x, y):
    """Other numbers, the same number twice, other dtypes, one array in two places."""
    n = len(x)
    a = climbed(x, 0, n, 2.0) + climbed(x, 0, n // 2, 2.0) + climbed(x, 3, 7, 2.0)
    b = climbed(y, 0, n, 2.0) + climbed(y, 5, 9, 3)
    return a, b


def mixed(x, y, i):
    if i <= 0:
        return x[0] - y[0]
    x[i] += 1.0
    return mixed(x, y, i - 1) + y[i]


def one_or_two_arrays(x, y):
    return mixed(x, y, 5), mixed(y, x, 6), mixed(x, x.copy(), 7), x, y


@pytest.fixture
def compilations(monkeypatch):
    compile, seen = compiling.compile_region, []

    def counted(*args, **kwargs):
        seen.append(args)
        return compile(*args, **kwargs)

    monkeypatch.setattr(compiling, "compile_region", counted)
    return seen


def test_one_compilation_for_many_calls(compilations):
    fast = torch.compile(catalans)
    for n in (25, 25, 12):
        got, want = fast(n), catalans(n)
        assert got[0] == want[0]
        np.testing.assert_array_equal(got[1], want[1])
    assert 0 < len(compilations) < 8


X = np.random.default_rng(9).random(12)
Y = np.arange(12)


@pytest.mark.parametrize("fn, given", [(of_other_kinds, (X, Y)), (one_or_two_arrays, (X, X[::-1].copy()))])
def test_operands_of_other_kinds(fn, given):
    fast = torch.compile(fn)
    for _ in range(2):
        want, got = fn(*map(np.copy, given)), fast(*map(np.copy, given))
        for a, b in zip(want, got):
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_array_equal(a, b)
