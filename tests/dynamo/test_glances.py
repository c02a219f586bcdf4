"""Functions that plain code calls and that only look at NumPy arrays run plainly; those that compute are captured, and so is all that is compiled itself."""

import numpy as np
import pytest
from helpers import Graphs

import flambeau as torch
from flambeau import _frame


def turned(x):
    return x.T


def inner(x):
    return x[1:-1, 1:-1]


def element(x):
    return x[1, 2]


def first_rows(x):
    x[0] = 1.0
    return x[1]


def taken(x):
    return x[-1][::2]


def added(x):
    x += 1.0
    return x


def scaled(x):
    return x[1:] * 2.0


def branches(x):
    if x.shape[0] > 5:
        return x.sum()
    return x[0]


@torch.compiler.disable(recursive=False, reason="a test")
def call(f, x):
    return f(x)


def driver(f, x):
    return call(f, x), x


def run(f, x, backend):
    torch._dynamo.reset()
    compiled = torch.compile(driver, backend=backend)
    for _ in range(2):
        got = compiled(f, x.copy())
    want = driver(f, x.copy())
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w)
        assert type(g) is type(w)


X = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("f", [turned, inner, element, first_rows, taken])
def test_looking_is_plain(f):
    graphs = Graphs()
    run(f, X, graphs)
    assert not graphs.gms


@pytest.mark.parametrize("f", [added, scaled])
def test_computing_is_captured(f):
    graphs = Graphs()
    run(f, X, graphs)
    assert graphs.gms


def test_a_branch_may_compute_at_another_call():
    graphs = Graphs()
    compiled = torch.compile(driver, backend=graphs)
    for x in (X, np.arange(24.0).reshape(6, 4)):
        np.testing.assert_array_equal(compiled(branches, x)[0], branches(x))
    assert graphs.gms


def test_what_is_compiled_itself_is_captured():
    compiled = torch.compile(turned)
    np.testing.assert_array_equal(compiled(X), X.T)
    (cache,) = _frame.caches(turned.__code__).values()
    assert cache.entries and not cache.skip
