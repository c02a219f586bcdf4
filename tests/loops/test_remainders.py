"""Remainders of Python's integers by a number that they are near to, as of the places around one in a ring, which need no division."""

import re

import numpy as np
import pytest

import flambeau as torch
from flambeau.loops.interpreter import compiler
from flambeau.testing.loops import check

R = np.random.RandomState(5)


def rings(a, out):
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            out[i, j] = a[(i - 1) % n, j] - a[(i + 1) % n, j] * 2 + a[i, (j - 1) % n] + a[i, (j + 1) % n] * 3


def rolled(a, out):
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            out[i, j] = a[(i + j) % n, (i - j) % n]


def backwards(a, out):
    n = a.shape[0]
    for i in range(n - 1, -1, -1):
        out[i, 0] += a[(-i) % n, 0] + a[(i - n) % n, 0] + a[(n - i) % n, 0]


NEAR = [rings, rolled, backwards]


def far(a, out):
    n = a.shape[0]
    for i in range(n):
        out[i, 0] = a[(3 * i) % n, 0]
        out[0, i] = a[(i - n - 1) % n, 0] + a[(i + n + 1) % n, 0]


def of_negative_numbers(a, out):
    n = a.shape[0]
    for i in range(n):
        out[i, 0] = (i - 2) % -n + (i + 1) % -3


@pytest.fixture
def divisions(monkeypatch):
    """The number of remainders that are divided for in each kernel."""
    made, module = [], compiler.module

    def noted(*given, **more):
        text = module(*given, **more)
        made.append(len(re.findall(r"= [su]rem ", text)))
        return text

    monkeypatch.setattr(compiler, "module", noted)
    return made


@pytest.mark.parametrize("n", [1, 2, 3, 4, 17, 40])
@pytest.mark.parametrize("f", [*NEAR, far, of_negative_numbers], ids=lambda f: f.__name__)
def test_beside_plain(f, n):
    with torch._dynamo.config.patch(error_on_recompile=False):
        check(f, R.rand(n, n), R.rand(n, n), native=None)


@pytest.mark.parametrize("f", [*NEAR, far, of_negative_numbers], ids=lambda f: f.__name__)
def test_which_divide(f, divisions):
    check(f, R.rand(40, 40), R.rand(40, 40))
    assert divisions and all((n == 0) == (f in NEAR) for n in divisions), divisions


@pytest.mark.parametrize("f", NEAR, ids=lambda f: f.__name__)
def test_sizes_that_vary(f):
    compiled = torch.compile(f)
    for n in (40, 21, 1, 2, 57):
        a, out = R.rand(n, n), R.rand(n, n)
        want = out.copy()
        f(a, want)
        compiled(a, out)
        np.testing.assert_array_equal(out, want)


def test_a_number_that_may_be_zero():
    def f(a, out, m):
        for i in range(len(a)):
            out[i] = a[i % m]

    with torch._dynamo.config.patch(error_on_recompile=False):
        for m in (3, 1, 0, -2):
            check(f, R.rand(30), R.rand(30), m, native=None)
