"""A number for the elements that a mask chooses: the others keep their bits, whatever they are."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing.loops import check

R = np.random.RandomState(41)


def zeros(a, m, v):
    for k in range(3):
        a[m > k] = v


def own_mask(a, m, v):
    for k in range(3):
        a[a == m] = v
        a[1:][m[1:] == k] = v


def neighbours(a, m, v):
    for k in range(1, 4):
        a[1:][a[:-1] == k] = v


def rows(a, m, v):
    for k in range(3):
        a[m[:, 0] > k] = v


PROGRAMS = [zeros, own_mask, neighbours, rows]


DTYPES = [np.uint8, np.int16, np.int64, np.float32, np.float64, np.complex128, np.bool_]
SHAPES = [(0, 3), (1, 1), (7, 5), (64, 33), (300, 260)]


# Every dtype in one shape, every shape in two dtypes: the rest is slow.
@pytest.mark.parametrize("shape, dtype", [
    pytest.param(s, t, marks=() if s == (64, 33) or t in (np.uint8, np.float64) else pytest.mark.slow)
    for s in SHAPES for t in DTYPES
])  # fmt: skip
def test_beside_numpy(shape, dtype):
    m = R.randint(0, 5, shape)
    for f in PROGRAMS:
        check(f, R.randint(0, 5, shape).astype(dtype), m, 3, native=None)
        check(f, R.randint(0, 5, shape[::-1]).astype(dtype).T, m, 3, native=None)
        check(f, R.randint(0, 5, (2 * shape[0], shape[1])).astype(dtype)[::2], m, 3, native=None)


def test_bits_of_the_others():
    a = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 1.0] * 50)
    a.view(np.int64)[::6] = 0x7FF4000000000123  # a signalling NaN with a payload
    m = R.randint(0, 5, a.shape)
    plain, ours = a.copy(), a.copy()
    zeros(plain, m, 2.5)
    torch.compile(zeros)(ours, m, 2.5)
    np.testing.assert_array_equal(plain.view(np.int64), ours.view(np.int64))


def test_elements_that_overlap():
    m = R.rand(300, 2) * 5
    for strides in ((8, 8), (0, 8), (8, 0)):
        plain, ours = np.arange(400.0), np.arange(400.0)
        for f, base in ((zeros, plain), (torch.compile(zeros), ours)):
            f(np.lib.stride_tricks.as_strided(base, (300, 2), strides), m, 7.0)
        np.testing.assert_array_equal(plain, ours)


def test_errors():
    """A mask of another size, and numbers that don't fit, in the second turn."""

    def f(a, masks, numbers):
        for k in range(3):
            a[masks[k, : len(a) - k // 2]] = numbers[k]

    a, masks = R.rand(50), R.rand(3, 50) > 0.5
    plain, ours = a.copy(), a.copy()
    for g, given in ((f, plain), (torch.compile(f), ours)):
        with pytest.raises(IndexError):
            g(given, masks, np.arange(3.0))
    np.testing.assert_array_equal(plain, ours)
