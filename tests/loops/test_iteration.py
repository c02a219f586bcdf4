"""Loops over arrays, enumerate() and zip(): elements are read when their turn comes."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing.loops import check

R = np.random.RandomState(2)
N = 300


def total(x):
    s = 0.0
    for v in x:
        if v > 0.25:
            s += v * 2
    return s


def sees_writes(x):
    s, k = 0.0, 0
    for v in x:
        s += v
        k += 1
        if k < len(x):
            x[k] += v * 0.5
    return s


def rows(x):
    s = np.zeros(x.shape[1])
    for row in x:
        x[-1] += row * 0.01
        s += row
    return s


def numbered(x):
    at, most = -1, -1.0
    for i, v in enumerate(x):
        if v > most:
            at, most = i, v
    return at, most


def numbered_from(x, start):
    s = 0.0
    for i, v in enumerate(x, start):
        s += i * v
    for i, v in enumerate(x, start=3):
        s += i * v
    return s


def together(x, y):
    s = 0.0
    for a, b in zip(x, y):
        s += a * b
    return s


def numbered_pairs(x, y, out):
    for i, (a, b) in enumerate(zip(x, y)):
        if a > b:
            out[i] = a - b
            continue
        out[-1] += 1
    return out


def inside(x, y):
    s = 0.0
    for i in range(len(x)):
        for v in y:
            s += v * i
        for j, v in enumerate(y[1:5] * 2):
            s -= v * j
        for a, k in zip(y, range(10, 0, -3)):
            s += a * k
    return s


def matrix_entries(m):
    s = 0.0
    for row in m:
        for v in row:
            s += v
    return s


def returns_from_it(x, want):
    for i, v in enumerate(x):
        if v >= want:
            return i
    return -1


def breaks(x):
    last = 0.0
    for v in x:
        if v > 0.9:
            break
        last = v
    else:
        last = -1.0
    return last


def kept_iterator(x):
    it = enumerate(x)
    s = 0.0
    for i, v in it:
        s += v
        if i == 150:
            break
    return s, next(it)[0]


STEPS = ((1, 0), (-1, 0), (0, 2))
WEIGHTS = (0.25, 0.5, 0.25)


def neighbours(a):
    s = 0
    for i in range(1, a.shape[0] - 1):
        for di, dj in STEPS:
            for k in (1, -1):
                s += a[i + di, dj] * k + dj
    return s


def weighted(x):
    out = np.zeros(len(x))
    for k in range(1, len(x) - 1):
        for j, w in enumerate(WEIGHTS):
            out[k] += w * x[k + j - 1]
    return out


def different_things(x):
    s = 0
    for k in range(len(x)):
        for w in (1, 0.5, x[k]):
            s += w
    return s


def steps_of_its_own(steps, x):
    s = 0.0
    for step in steps:
        for k in range(0, len(x), step):
            s += x[k]
        for k in range(len(x) - 1, -1, -step):
            s -= k * x[k]
        for k in range(3, 3, step):
            s += 100 + k
    return s


def least(x):
    best = (np.inf, -1, 0.0)
    for k in range(len(x)):
        if x[k] < best[0]:
            best = (x[k], k, 2 * x[k])
    return best


def fibonacci(x):
    pair = (0, 1)
    for i in range(300):
        pair = (pair[1], (pair[0] + pair[1]) % 1000)
        x[i] += pair[0]
    return pair


def no_step(x, step):
    s = 0.0
    for i in range(len(x)):
        for j in range(0, 5, step):
            s += x[i] * j
    return s


X, Y = R.rand(N), R.rand(N - 7)


@pytest.mark.parametrize(
    "f, args",
    [
        (total, (X,)),
        (total, (X[::-1],)),
        (total, (R.randint(-5, 5, N),)),
        (sees_writes, (X,)),
        (rows, (R.rand(60, 9),)),
        (rows, (R.rand(9, 60).T,)),
        (numbered, (X,)),
        (numbered_from, (X, 7)),
        (together, (X, Y)),
        (together, (Y, X)),
        (numbered_pairs, (X, Y, np.zeros(N))),
        (inside, (Y[:40], X)),
        (inside, (X, Y[:3])),
        (matrix_entries, (R.rand(40, 30),)),
        (returns_from_it, (X, 0.99)),
        (neighbours, (R.randint(0, 9, (40, 3)),)),
        (weighted, (X,)),
        (steps_of_its_own, (np.array([1, 2, 7, 400, 3]), X)),
        (steps_of_its_own, (np.array([1, 2, -7, 3]), X)),
        (steps_of_its_own, (np.array([1, 2, 0, 3]), X)),
        (least, (X,)),
        (least, (X + np.inf,)),
        (fibonacci, (X,)),
        (breaks, (X,)),
        (breaks, (X * 0.5,)),
        (total, (R.rand(N).astype(np.float32),)),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_agrees(f, args):
    check(f, *args)


@pytest.mark.parametrize(
    "f, args",
    [
        (total, (np.zeros(0),)),
        (different_things, (X,)),
        (no_step, (X, 0)),
        (kept_iterator, (X,)),
        (together, (X, [1.0, 2.0])),
        (returns_from_it, (X, 5.0)),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_agrees_native_or_not(f, args):
    check(f, *args, native=None)


def summed(x):
    s = 0
    for v in x:
        s += v
    return s


def largest(x, start):
    m = start
    for v in x:
        if v > m:
            m = v
    return m


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int16", "uint8", "int64"])
def test_a_python_number_at_first_and_numpys_later(dtype):
    x = (R.rand(400) * 100).astype(dtype)
    check(summed, x)
    check(largest, x, 0)
    check(largest, x, 1000)  # stays Python's
    check(largest, x, -1)
    check(largest, x, 0.1, native=None)
    check(largest, x, 1 << 40, native=None)
    check(total, x)


def leaves(x, eps):
    y = x
    for _ in range(400):
        new = y * 0.5 + x * 0.25
        if np.abs(new - y).max() < eps:
            break
        y = new
    return y


def leaves_twice(x, low, high):
    s = 0.0
    for v in x:
        if v < low:
            break
        s += v
        if s > high:
            break
    return s


def leaves_an_inner_loop(x):
    s = 0.0
    for i in range(len(x)):
        for j in range(i, len(x)):
            if x[j] > 0.9:
                break
            s += x[j]
        if s > 400:
            break
    return s


def leaves_while(x):
    i = 0
    while i < len(x):
        if x[i] > 2:
            break
        x[i] += 1
        i += 1
    return x


def leaves_while_true(x):
    i = 0
    while True:
        x[i] += 1
        i += 1
        if i >= len(x):
            break
    return x


def leaves_or_ends(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            break
    else:
        return -1.0
    return x[i]


def goes_on_or_leaves(x, limit):
    s = 0.0
    for v in x:
        if v < 0.1:
            continue
        if v > limit:
            return s
        s += v
    return s


@pytest.mark.parametrize(
    "f, args",
    [
        (leaves, (X, 1e-8)),
        (leaves, (X, 0.0)),
        (leaves_twice, (X, 0.01, 1e9)),
        (leaves_twice, (X, -1.0, 20.0)),
        (leaves_an_inner_loop, (X,)),
        (leaves_while, (X,)),
        (leaves_while, (X * 3,)),
        (leaves_while_true, (X,)),
        (leaves_or_ends, (X, 0.99)),
        (leaves_or_ends, (X, 99.0)),
        (goes_on_or_leaves, (X, 0.99)),
        (goes_on_or_leaves, (X, 99.0)),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_a_return_behind_the_loop_stands_in_place_of_break(f, args):
    """From CPython 3.12 on."""
    check(f, *args)


def test_the_argument_itself_may_be_what_is_returned():
    assert torch.compile(leaves)(X, 1e9) is X
