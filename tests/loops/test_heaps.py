"""heapq and comparisons of tuples in native loops, beside plain Python."""

import heapq
from heapq import heappop, heappush

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing.loops import check, run

RNG = np.random.default_rng(13)


def sorted_by_heap(a):
    heap = []
    for v in a:
        heapq.heappush(heap, int(v))
    left = len(heap)
    for i in range(len(a)):
        a[i] = heappop(heap)
    return a, left


def left_over(a):
    heap = []
    for k in range(len(a)):
        heappush(heap, (float(a[k]), k))
        if k % 3 == 2:
            first, at = heappop(heap)
            a[k] = first + at
    return a, heap


def dijkstra(weights):
    n = len(weights)
    far = np.full(n, np.inf)
    far[0] = 0.0
    heap = [(0.0, 0)]
    seen = 0
    while len(heap) > 0:
        d, at = heapq.heappop(heap)
        seen += 1
        if d > far[at]:
            continue
        for k in range(n):
            new = far[at] + weights[at, k]
            if new < far[k]:
                far[k] = new
                heapq.heappush(heap, (float(new), k))
    return far, seen


def a_star(walls, goal):
    n, m = walls.shape
    cost = np.full((n, m), np.inf)
    cost[0, 0] = 0.0
    heap = [(0, 0, 0)]
    seen = 0
    while heap:
        _, i, j = heappop(heap)
        seen += 1
        if (i, j) == goal:
            break
        for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            x, y = i + di, j + dj
            if 0 <= x < n and 0 <= y < m and walls[x, y] == 0 and cost[i, j] + 1 < cost[x, y]:
                cost[x, y] = cost[i, j] + 1
                heappush(heap, (int(cost[x, y]) + abs(goal[0] - x) + abs(goal[1] - y), x, y))
    return cost, seen


def orders(a):
    counts = np.zeros(9, np.int64)
    for i in range(len(a) - 2):
        p, q = (int(a[i]), int(a[i + 1])), (int(a[i + 1]), int(a[i + 2]))
        counts[0] += p == q
        counts[1] += p != q
        counts[2] += p < q
        counts[3] += p <= q
        counts[4] += p > q
        counts[5] += p >= q
        counts[6] += p < (q[0], q[1], 1)
        counts[7] += ((p, 1), 2) <= ((q, 1), 3)
        counts[8] += p == [1, 2]
    return counts


def nans(a):
    n = 0
    for i in range(len(a)):
        p = (float(a[i]), i)
        n += p == p
    return n


WALLS = (RNG.random((15, 18)) < 0.25).astype(np.int64)
WALLS[0, 0] = WALLS[14, 17] = 0
PROGRAMS = [
    (sorted_by_heap, lambda: (RNG.integers(0, 50, 300),)),
    (left_over, lambda: (RNG.random(200),)),
    (dijkstra, lambda: (RNG.random((30, 30)) + np.where(RNG.random((30, 30)) < 0.5, np.inf, 0),)),
    (a_star, lambda: (WALLS, (14, 17))),
    (orders, lambda: (RNG.integers(0, 3, 300),)),
]


@pytest.mark.parametrize("f, arguments", PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_programs(f, arguments):
    check(f, *arguments())


def test_a_nan_is_equal_to_itself_in_a_tuple():
    check(nans, np.where(np.arange(200) % 50 == 7, np.nan, 1.0), native=None)


def hits(a):
    out = np.zeros(4)
    whole = np.zeros(2, np.int32)
    for i in range(len(a)):
        k = i % 4
        out[k] += k < 2
        whole[k % 2] += k == 3
        out[k] = out[k] * (i > 5) - (i == 9)
    return out, whole


def test_pythons_truth_values_join_numpys_numbers():
    check(hits, np.zeros(300))


def empty(a):
    heap = [1]
    for i in range(len(a)):
        a[i] += 1
        if i > 70:
            a[i] = heappop(heap)
            heappush(heap, 2)
            heappop(heap)
    return a


def test_an_empty_heap_is_an_index_error():
    """With another text than heapq's where it isn't C's."""
    compiled, want = torch.compile(empty), run(empty, np.zeros(150))
    assert want[0] is IndexError and run(compiled, np.zeros(150))[0] is IndexError
