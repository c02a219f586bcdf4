"""Indexing with arrays, masks and slices that go down, functions made in the frame, and more of NumPy's functions, in native loops."""

import math

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing.loops import check

RNG = np.random.default_rng(0)
A = RNG.random(300)
M = RNG.random((40, 30))
I = RNG.integers(-300, 300, 300)  # noqa: E741
U = RNG.integers(0, 30, 40).astype(np.uint8)


def down(a, idx):
    s, out = 0.0, np.zeros(len(a))
    for i in range(5, 200):
        s += a[: i + 1][::-1][0] + a[-1:-4:-1].sum() + a[i::-3][0]
        out[i] = np.sum(a[i : i - 5 : -1] * a[:5])
        out[::-1][i] += a[3:900:-1].sum() + a[2::-1][1]
    return s, out


def reversed_in_place(a, idx):
    for i in range(150):
        a[:] = a[::-1]
        a[i] += 1
    return a


def read(a, idx):
    s = 0.0
    for i in range(200):
        s += a[idx[i : i + 5]].sum() + a[idx][i] + (a * 2)[idx[:3]][1]
    return s


def write(a, idx):
    for i in range(200):
        a[idx[i : i + 5]] = i
        a[idx[i : i + 3]] = a[:3]
        a[idx[i : i + 7]] += 1.0
    return a


def doubled_indices(a, idx):
    where = np.array([1, 1, 2])
    for i in range(200):
        a[where] += i
        a[where] = a[:3] * 0.5
    return a


def mask(a, idx):
    s = 0.0
    for i in range(200):
        s += a[a > i / 200].sum() + np.count_nonzero(a > 0.5) + np.nonzero(a > 0.3)[0][0]
        m = a > 0.5
        a[m] = a[m] * 0.99
        a[a < 0.01] = 0.02
    return s, a


def rows(m, idx):
    s, at = np.zeros(30), np.array([0, 3, -5])
    out = np.zeros((40, 30))
    for i in range(150):
        s += m[at].sum(axis=0) + m[:, at][i % 40, 1] + m[at, 2].sum() + m[i % 40, at][1] + m[at, at][2]
        out[at] += m[at] * i
        out[1:3, at] = i
        m[at, :2] = 0.5
    return s, out


def small_indices(m, u):
    s = 0.0
    for i in range(len(u)):
        s += m[i, u[i : i + 3]].sum()
    for i in range(200):
        s += m[u][i % 40, 0]
    return s


def inner(a, idx):
    k = 3.0

    def two(x, y=2.0):
        return x * k + y, x - y

    p = q = 0.0
    for i in range(299):
        s, d = two(a[i], a[i + 1])
        p, q = p + s, q + d + two(a[i])[1]
    return p, q


def more(a, idx):
    s = 0.0
    for i in range(1, 200):
        s += (
            np.clip(a[i], 0.2, 0.8)
            + np.sign(a[i] - 0.5)
            + np.std(a[i : i + 10])
            + np.var(a[:i])
            + np.cumsum(a[i : i + 4])[-1]
        )
        s += np.outer(a[:3], a[i : i + 2])[2, 1] + a[i] ** a[-i] + 2.0**i * 1e-60 + math.sqrt(i) ** 1.5 + np.cbrt(a[i])
        if np.isnan(a[i]) or not np.isfinite(a[i]) or math.isinf(s) or np.logical_and(a[i] > 2, i):
            s += 1000
    return s


@pytest.mark.parametrize("fn", [down, reversed_in_place, read, write, doubled_indices, mask, inner, more])
def test_native(fn):
    check(fn, A, I)


def lists_of_rows(m, n):
    """A list picks rows, a tuple an element."""
    for i in range(n):
        m[[i, 0]] = m[[0, i]]
        m[:, [i % 3, 4]] += m[[i, 1], 0][0]
    return m


def list_in_a_variable(m, n):
    s = np.zeros(m.shape[1])
    for i in range(n):
        rows, place = [i, 0], (i, 0)
        s += m[rows].sum(axis=0) + m[place] + m[rows[::-1]][1]
    return s


def list_that_is_returned(m, n):
    for i in range(n):
        if m[i, 0] > 1.0:
            return [i, 0.5], (i, [i])
        m[i, 0] += 1.0
    return [0, 1.5], (n, [n])


@pytest.mark.parametrize("fn", [lists_of_rows, list_in_a_variable, list_that_is_returned])
def test_lists_are_no_tuples(fn):
    check(fn, M, 30)


def test_rows():
    check(rows, M, I)
    check(small_indices, M, U)


def outside(a, idx):
    for i in range(200):
        a[idx[i : i + 5]] = i
    return a


def wrong_count(a, idx):
    for _ in range(200):
        a[a > 0.5] = a[:7]
    return a


def complex_power(a, idx):
    s = 0.0
    for i in range(200):
        s += float(a[i] - 0.5) ** float(a[i])
    return s


@pytest.mark.parametrize("fn", [outside, wrong_count, complex_power])
def test_errors(fn):
    far = I.copy()
    far[120] = 300
    a, b = A.copy(), A.copy()
    results = []
    for f, x in ((fn, a), (torch.compile(fn), b)):
        try:
            results.append(f(x, far))
        except (IndexError, ValueError) as e:
            results.append((type(e), str(e)))
    assert results[0] == results[1]
    np.testing.assert_array_equal(a, b)


def orthogonal(a, q):
    for k in range(1, a.shape[1]):
        for j in range(k, a.shape[1]):
            a[:, j] -= q[:, k] * 2.0
            a[j, k:] += q[j, k:]
    return a


def test_rows_and_columns_change_in_place(monkeypatch):
    """What ``a[:, j] -= b`` stores at the end is the view that it has changed: nothing is copied."""
    from flambeau.inductor.machine import cache, llvm

    texts, compile_text = [], llvm.compile_text
    monkeypatch.setattr(llvm, "compile_text", lambda text, *rest: (texts.append(text), compile_text(text, *rest))[1])
    monkeypatch.setattr(cache, "read", lambda name: None)
    a, q = RNG.random((40, 40)), RNG.random((40, 40))
    check(orthogonal, a, q)
    assert texts and not any("call ptr @flb_new" in text for text in texts)
