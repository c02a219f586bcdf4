"""Reductions in loops that keep the last dimension, beside NumPy's: rows of few elements, which stay in registers, and longer ones."""

import numpy as np
import pytest

from flambeau.testing.loops import check

R = np.random.RandomState(11)


def totals(a, w, out):
    for i in range(len(a)):
        out[i] = np.sum(a[i] * w, axis=(0, 1))


def products(a, w, out):
    for i in range(len(a)):
        out[i] = np.prod(a[i, 0] - w[0], axis=0)


def means(a, w, out):
    for i in range(len(a)):
        out[i] = np.mean(a[i] + w, axis=(0, 1))


def largest(a, w, out):
    for i in range(len(a)):
        out[i] = np.max(a[i], axis=(0, 1)) - a[i].min(axis=(0, 1))


def of_several_rows(a, w, out):
    for i in range(len(a)):
        t = np.sum(a[i] * w, axis=1)
        out[i] = t[0] + t[-1] * i


def of_what_is_written(a, w, out):
    for i in range(len(a)):
        out[i] = np.sum(a[i], axis=(0, 1))
        a[i, 0] = np.sum(a[i], axis=0)


PROGRAMS = [totals, products, means, largest, of_several_rows, of_what_is_written]


# All lengths for one function, three of them for each other one.
@pytest.mark.parametrize("f, n", [
    pytest.param(f, n, id=f"{f.__name__}-{n}", marks=() if f is totals or n in (1, 8, 17) else pytest.mark.slow)
    for f in PROGRAMS for n in (1, 2, 7, 8, 16, 17, 40)
])  # fmt: skip
def test_beside_numpy(f, n):
    check(f, R.randn(60, 3, 4, n), R.randn(3, 4, n), np.zeros((60, n)))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, bool])
@pytest.mark.parametrize("f", [totals, products, means, of_several_rows], ids=lambda f: f.__name__)
def test_dtypes(f, dtype):
    a, w = ((R.randint(0, 4, shape)).astype(dtype) for shape in ((60, 2, 3, 5), (2, 3, 5)))
    out = np.zeros((60, 5), np.result_type(dtype, np.float32 if f is means else np.int64 if f is not totals else dtype))
    check(f, a, w, out, native=None)  # some of these are left to NumPy


@pytest.mark.parametrize("f", [f for f in PROGRAMS if f is not means], ids=lambda f: f.__name__)
def test_rows_of_nothing(f):
    """No row is summed; no element is the largest of none."""
    check(f, np.zeros((60, 2, 0, 5)), np.zeros((2, 0, 5)), np.zeros((60, 5)), native=None)
    check(f, np.zeros((60, 2, 3, 0)), np.zeros((2, 3, 0)), np.zeros((60, 0)), native=None)
