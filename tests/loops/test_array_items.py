"""Arrays that native loops put into lists: their values behind the loop, which are one object, and what stays Python."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing.loops import check

X = np.random.default_rng(1).random((50, 3))


def trajectory(x):
    y, out = x[0] * 1.0, []
    for _ in range(200):
        y = y + 0.01 * np.array([y[1], -y[0], y[2] * 0.5])
        out.append(y)
    return out


def trajectory_from_a_point(x):
    y = x[0] * 1.0
    out = [y]
    for _ in range(200):
        y = y + 0.01 * np.array([y[1], -y[0], y[2] * 0.5])
        out.append(y)
    return np.array(out), len(out), out[0] is out[1]


def copies(x):
    a, out = x[0].copy(), []
    for _ in range(200):
        a[0] += 0.01 * a[1]
        a[1] -= 0.01 * a[0]
        out.append(a.copy())
    return np.array(out)


def one_object_twice(x):
    y, out = x[0] * 2.0, []
    for i in range(200):
        if i % 3 == 0:
            y = y * 1.01
        out.append(y)
    out[0][0] = 7.0
    return out, out[0] is out[1], out[0] is out[3]


def written_later(x):
    y, out = x[0] * 2.0, []
    for i in range(200):
        if i % 3 == 0:
            y = y * 1.01
        y[0] += 1
        out.append(y)
    return out


def read_in_the_loop(x):
    out, t = [], 0.0
    for i in range(50):
        out.append(x[i] * 2)
        if i > 2:
            t += out[-2][1] * out[-3][0]
            out[len(out) // 2] = out[-1] - out[-2]
            out[-1][0] += 1.0
        for r in out[-3:]:
            t += r[2]
        if i % 7 == 6:
            t += out.pop()[0]
    return t, out


def matrices(x):
    out, others = [], []
    for i in range(50):
        m = np.outer(x[i], x[i])
        out.append(m)
        others.append(m.T.copy())
    return out, others


def with_numbers(x):
    out, d = [], {}
    for i in range(50):
        y = x[i] * 2
        out.append((i, y))
        d[i % 7] = y * 1.0
    return out, d


def window(x):
    y, out = x[0] * 1.0, []
    for _ in range(3000):
        y = y * 0.999
        out.append(y)
        if len(out) > 10:
            out.pop(0)
    return out


def of_different_lengths(x):
    out = []
    for i in range(60):
        out.append(x[i % 50][: i % 4] * 1.0)
    return out


NATIVE = [
    *(trajectory, trajectory_from_a_point, copies, one_object_twice, written_later, read_in_the_loop, matrices),
    *(with_numbers, window, of_different_lengths),
]


@pytest.mark.parametrize("fn", NATIVE)
def test_native(fn):
    check(fn, X)


def rows_from_outside(x):
    out = []
    for i in range(50):
        out.append(x[i])
    out[0][0] = 5.0
    return out


def views_of_one(x):
    out = []
    for i in range(50):
        y = x[i] * 2
        out.append(y)
        out.append(y[::-1])
    out[0][0] = 5
    return out


def variable_behind(x):
    y, out = x[0] * 1.0, []
    for _ in range(200):
        y = y * 0.99
        out.append(y)
    y[0] = 3.0
    return out, y


def two_lists(x):
    a, b = [], []
    for i in range(50):
        m = x[i] * 1.0
        a.append(m)
        b.append(m)
    a[0][0] = 9
    return a, b


def items_before_are_read(x):
    out, t = [x[0] * 2, "text"], 0
    for i in range(50):
        out.append(x[i] * 2)
        t += len(out)
    return out, t


@pytest.mark.parametrize("fn", [rows_from_outside, views_of_one, variable_behind, two_lists, items_before_are_read])
def test_shared_memory_stays_shared(fn):
    check(fn, X, native=None)


def test_other_items_stay_what_they_were():
    first = object()

    def add(x):
        out = [first, "a", [1]]
        for i in range(len(x)):
            out.append(x[i, 0])
        return out

    compiled = torch.compile(add)
    for _ in range(2):
        got, want = compiled(X), add(X)
        assert got[0] is first and got == want and [*map(type, got)] == [*map(type, want)]
