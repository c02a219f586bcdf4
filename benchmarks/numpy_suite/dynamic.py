"""Dynamic programming and graphs."""

import numpy as np

from . import program


@program(lambda rng, n: (rng.integers(0, 4, n),), 10, 120)
def nussinov(seq):
    """Base pairs of a folded RNA."""
    n = len(seq)
    table = np.zeros((n, n), np.int64)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            best = max(table[i, j - 1], table[i + 1, j])
            pair = 1 if seq[i] + seq[j] == 3 else 0
            if i < j - 1:
                best = max(best, table[i + 1, j - 1] + pair)
            else:
                best = max(best, table[i + 1, j - 1])
            for k in range(i + 1, j):
                best = max(best, table[i, k] + table[k + 1, j])
            table[i, j] = best
    return table[0, n - 1]


@program(lambda rng, n: (rng.integers(0, 4, n), rng.integers(0, 4, n)), 8, 300)
def edit_distance(a, b):
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1), np.int64)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[n, m]


@program(lambda rng, n: (rng.integers(1, 30, 60), rng.random(60), n), 50, 20_000)
def knapsack(weights, values, capacity):
    best = np.zeros(capacity + 1)
    for i in range(len(weights)):
        w = weights[i]
        best[w:] = np.maximum(best[w:], best[:-w] + values[i])
    return best[capacity]


@program(lambda rng, n: (rng.random((n, n)) * 10,), 8, 250)
def floyd_warshall(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path, path[:, k : k + 1] + path[k : k + 1, :])


@program(lambda rng, n: (rng.random(32), rng.random((32, 32)), rng.random((32, 16)), rng.integers(0, 16, n)), 12, 1000)
def viterbi(start, transition, emission, observed):
    score = np.log(start) + np.log(emission[:, observed[0]])
    back = np.zeros((len(observed), len(start)), np.int64)
    for t in range(1, len(observed)):
        candidates = score[:, None] + np.log(transition)
        back[t] = np.argmax(candidates, axis=0)
        score = np.max(candidates, axis=0) + np.log(emission[:, observed[t]])
    return np.max(score), back


@program(lambda rng, n: (rng.integers(0, 256, n, dtype=np.uint8),), 20, 100_000)
def crc16(data):
    crc = 0xFFFF
    for i in range(len(data)):
        crc ^= int(data[i]) << 8
        for _ in range(8):
            if crc & 0x8000:
                crc = ((crc << 1) ^ 0x1021) & 0xFFFF
            else:
                crc = (crc << 1) & 0xFFFF
    return crc


@program(lambda rng, n: ((rng.random((n, n)) < 0.05).astype(float), 30), 10, 600, functional=True)
def pagerank(adjacency, steps):
    n = adjacency.shape[0]
    degree = np.maximum(adjacency.sum(axis=1), 1.0)
    transition = (adjacency / degree[:, None]).T
    rank = np.full(n, 1.0 / n)
    for _ in range(steps):
        rank = 0.15 / n + 0.85 * (transition @ rank)
    return rank


def _sparse(rng, n):
    counts = rng.integers(1, 20, n)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return starts, rng.integers(0, n, starts[-1]), rng.random(starts[-1]), rng.random(n)


@program(_sparse, 10, 20_000)
def sparse_product(starts, columns, values, x):
    """y = A x with A in rows: slices whose bounds are data."""
    y = np.empty(len(starts) - 1)
    for i in range(len(starts) - 1):
        s = 0.0
        for k in range(starts[i], starts[i + 1]):
            s += values[k] * x[columns[k]]
        y[i] = s
    return y
