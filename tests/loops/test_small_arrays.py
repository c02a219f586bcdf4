"""Arrays of a few elements inside loops: their code has no loops, their memory is used again, and all is as NumPy has it."""

import numpy as np
import pytest

from flambeau.testing.loops import check

X = np.random.RandomState(3).rand(60, 3)


def rows_of_numbers(x):
    out = np.zeros((len(x), 3), np.float32)
    whole = np.zeros((len(x), 2), np.int64)
    for i in range(len(x)):
        a, b, c = x[i]
        out[i] = (a + b, b - c, i)
        whole[-1 - i] = (i, 2.75 * a)
        out[i, :] = (out[i, 0], c, a)
    return out, whole


def kept_from_turn_to_turn(x):
    last = np.array([0.0, 1.0, 2.0])
    older = last
    for i in range(len(x)):
        older = last
        last = np.array([x[i, 0], last[0], older[1]]) + 0.5 * last
    return last, older


def swapped(x):
    for i in range(len(x)):
        x[i] = x[i, ::-1]
        x[i, 1:] = x[i, :2]
        x[i] = (x[i, 1], x[i, 0], x[i, 2] * 2)
    return x


def chosen(x):
    best = np.array([0.0, 0.0])
    for i in range(len(x)):
        pair = np.array([x[i, 0], x[i, 1]])
        if pair.sum() > best.sum():
            best = pair
        elif i % 3 == 0:
            best = best - pair
    return best, best.max(), np.argmax(best)


def matrices(x):
    total = np.eye(2)
    for i in range(len(x)):
        turn = np.array([[x[i, 0], x[i, 1]], [-x[i, 1], x[i, 0]]])
        total = turn @ total / np.sqrt((turn * turn).sum() / 2)
        total[0] = total[0] + total[1]
    return total


def masked(x):
    out = np.zeros((len(x), 3))
    for i in range(len(x)):
        r = x[i].copy()
        r[r > 0.5] = 0.0
        out[i] = np.where(r > 0.2, r, -r) + (x[i] > 0.4).all()
    return out


def step(v):
    return np.array([v[1], -v[0], v[2] * 0.5])


def called(x):
    v = np.array([1.0, 2.0, 3.0])
    out = np.zeros((len(x), 3))
    for i in range(len(x)):
        v = v + 0.1 * step(v + 0.5 * step(v))
        out[i] = v
    return out


@pytest.mark.parametrize(
    "f", [rows_of_numbers, kept_from_turn_to_turn, swapped, chosen, matrices, masked, called], ids=lambda f: f.__name__
)
def test_as_numpy(f):
    check(f, X)


def too_long(x, n):
    for i in range(len(x)):
        x[i, :n] = (1.0, 2.0)
    return x


def wrong_row(x):
    for i in range(len(x)):
        x[i, 0] = i
        x[i] = (i, i)
    return x


def beyond(x):
    for i in range(len(x) + 1):
        x[i] = (i, i, x[i, 0])
    return x


@pytest.mark.parametrize("f, args", [(wrong_row, ()), (beyond, ()), (too_long, (3,)), (too_long, (2,))])
def test_errors(f, args):
    check(f, X, *args)
