"""collections.deque in native loops: the plain function beside the compiled one, errors in the middle of a loop and what came before them too."""

import collections
import copy
from collections import deque

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.utils import counters

RNG = np.random.default_rng(11)
GRID = (RNG.random((40, 50)) < 0.75).astype(np.int64)
GRID[0, 0] = 1
X = RNG.random(3000)


def distances(grid):
    n, m = grid.shape
    far = np.full((n, m), -1)
    far[0, 0] = 0
    q = deque([(0, 0)])
    while q:
        i, j = q.popleft()
        for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            a, b = i + di, j + dj
            if 0 <= a < n and 0 <= b < m and grid[a, b] and far[a, b] < 0:
                far[a, b] = far[i, j] + 1
                q.append((a, b))
    return far


def window_maxima(x, k):
    out = np.zeros(len(x) - k + 1)
    q = collections.deque()
    for i in range(len(x)):
        while q and x[q[-1]] <= x[i]:
            q.pop()
        q.append(i)
        if q[0] <= i - k:
            q.popleft()
        if i >= k - 1:
            out[i - k + 1] = x[q[0]]
    return out


def both_ends(x):
    q = deque()
    for i in range(len(x)):
        if x[i] < 0.4:
            q.appendleft(i)
        elif x[i] < 0.8:
            q.append(i)
        elif len(q) > 2:
            q[0] = q.pop() + q[1]
        if i % 501 == 500 and q:
            q.extend([1, 2])
    return q, len(q)


def left_for_later(x):
    q = deque()
    for i in range(len(x)):
        q.append(x[i] + 1.0)
        if len(q) > 20:
            q.popleft()
    return q, sum(q)


def looked_through(x):
    q, s, n = deque(), 0.0, 0
    for i in range(len(x)):
        q.append(i % 97)
        if len(q) > 50:
            q.popleft()
        if i % 100 == 0:
            for y in q:
                s += y * x[i]
            n += 13 in q
    q.clear()
    q.append(n)
    return s, q


def zero_one(grid):
    """Paths by a queue whose front takes what costs nothing (0-1 breadth-first search)."""
    n, m = grid.shape
    cost = np.full(n * m, 1 << 40)
    cost[0] = 0
    q = deque([0])
    while q:
        at = q.popleft()
        i, j = at // m, at % m
        for k in range(4):
            a, b = i + (k == 0) - (k == 1), j + (k == 2) - (k == 3)
            if 0 <= a < n and 0 <= b < m:
                c = 1 - grid[a, b]
                if cost[at] + c < cost[a * m + b]:
                    cost[a * m + b] = cost[at] + c
                    if c:
                        q.append(a * m + b)
                    else:
                        q.appendleft(a * m + b)
    return cost


def of_bounded_length(x):
    q = deque(maxlen=5)
    for i in range(len(x)):
        q.append(x[i])
    return list(q)


def rotated(x):
    q = deque([1, 2, 3])
    for i in range(len(x)):
        q.rotate(1)
        x[i] += q[0]
    return q


def refilled(x):
    q, out = deque(), np.zeros(len(x))
    for i in range(len(x)):
        q.appendleft(i)
        q.appendleft(-i)
        while len(q) > 7 * (i % 5):
            out[i] += q.popleft() if i % 2 else q.pop()
    return out, q


@pytest.mark.parametrize(
    "fn, given",
    [
        (distances, (GRID,)),
        (window_maxima, (X, 25)),
        (both_ends, (X,)),
        (left_for_later, (X,)),
        (looked_through, (X,)),
        (zero_one, (GRID,)),
        (refilled, (X,)),
        (of_bounded_length, (X,)),
        (rotated, (X[:50],)),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_programs(fn, given):
    want = copy.deepcopy(given)
    plain, fast, before = fn(*want), torch.compile(fn), counters["stats"]["native_loops"]
    for _ in range(2):
        got = copy.deepcopy(given)
        assert repr(fast(*got)) == repr(plain)
        for a, b in zip(want, got):
            np.testing.assert_array_equal(a, b)
    if fn not in (of_bounded_length, rotated):
        assert counters["stats"]["native_loops"] > before


def empty_in_the_end(x):
    q = deque([1, 2, 3])
    for i in range(len(x)):
        x[i] = q.popleft()
    return q


def beyond(x):
    q = deque()
    for i in range(len(x)):
        q.append(i)
        x[i] = q[i // 2]
        if i == 70:
            x[i] = q[71]
    return q


def changed_meanwhile(x):
    q = deque()
    for i in range(len(x)):
        q.append(i)
        if i == 80:
            for y in q:
                x[y] += 1.0
                if y == 40:
                    q.append(3)
    return q


def in_place_while_looked_through(x):
    q = deque([0, 1, 2])
    for i in range(len(x)):
        for y in q:
            q[0] = y + i
        x[i] = q[0]
    return q


@pytest.mark.parametrize("fn", [empty_in_the_end, beyond, changed_meanwhile, in_place_while_looked_through])
def test_errors(fn):
    fast, results = torch.compile(fn), []
    for f in (fn, fast, fast):
        x = np.zeros(100)
        try:
            results.append((repr(f(x)), x.tolist()))
        except Exception as e:
            results.append((type(e), str(e), x.tolist()))
    assert results[0] == results[1] == results[2]
