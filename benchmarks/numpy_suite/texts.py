"""Sequences, numbers and puzzles, as textbooks of algorithms have them."""

import numpy as np

from . import program


@program(lambda rng, n: (n,), 50, 20000)
def sieve_by_slices(n):
    """Primes below n."""
    p = np.ones(n, dtype=bool)
    p[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if p[i]:
            p[i * i :: i] = False
    return np.flatnonzero(p)


@program(lambda rng, n: (n,), 30, 2000)
def collatz(n):
    """The start below n with the longest way to one."""
    best, arg = (0, 0)
    for s in range(1, n):
        k, c = (s, 0)
        while k != 1:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            c += 1
        if c > best:
            best, arg = (c, s)
    return (best, arg)


@program(lambda rng, n: (rng.integers(0, 4, n), rng.integers(0, 4, n), 2.0, -1.0, 1.0), 10, 150)
def smith_waterman(a, b, match, mis, gap):
    """The best local alignment, and where it ends."""
    H = np.zeros((len(a) + 1, len(b) + 1))
    best = 0.0
    pos = (0, 0)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            s = match if a[i - 1] == b[j - 1] else mis
            H[i, j] = max(0.0, H[i - 1, j - 1] + s, H[i - 1, j] - gap, H[i, j - 1] - gap)
            if H[i, j] > best:
                best = H[i, j]
                pos = (i, j)
    return (best, pos)


@program(lambda rng, n: (rng.integers(0, 4, n), rng.integers(0, 4, n)), 10, 150)
def longest_common_subsequence(a, b):
    L = np.zeros((len(a) + 1, len(b) + 1), int)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            L[i + 1, j + 1] = L[i, j] + 1 if x == y else max(L[i + 1, j], L[i, j + 1])
    return L[-1, -1]


@program(lambda rng, n: (rng.random((n, n)) * 10,), 8, 100)
def dijkstra_by_scanning(W):
    """Distances from the first node."""
    n = len(W)
    d = np.full(n, np.inf)
    d[0] = 0
    done = np.zeros(n, bool)
    for _ in range(n):
        u = np.argmin(np.where(done, np.inf, d))
        done[u] = True
        for v in range(n):
            if not done[v] and d[u] + W[u, v] < d[v]:
                d[v] = d[u] + W[u, v]
    return d


@program(lambda rng, n: (n,), 8, 60)
def pascal_triangle(n):
    P = np.zeros((n, n), dtype=np.int64)
    P[:, 0] = 1
    for i in range(1, n):
        for j in range(1, i + 1):
            P[i, j] = P[i - 1, j - 1] + P[i - 1, j]
    return P


@program(lambda rng, n: (n,), 5, 21)
def magic_square(n):
    """By the Siamese method, of odd order."""
    m = np.zeros((n, n), int)
    i, j = (0, n // 2)
    for k in range(1, n * n + 1):
        m[i, j] = k
        a, b = ((i - 1) % n, (j + 1) % n)
        if m[a, b]:
            i = (i + 1) % n
        else:
            i, j = (a, b)
    return m


@program(lambda rng, n: (n,), 5, 30)
def spiral_matrix(n):
    A = np.zeros((n, n), int)
    x = y = 0
    dx, dy = (1, 0)
    for k in range(n * n):
        A[y, x] = k
        if not (0 <= x + dx < n and 0 <= y + dy < n) or A[y + dy, x + dx] != 0:
            dx, dy = (-dy, dx)
        x += dx
        y += dy
    return A


@program(lambda rng, n: (n,), 4, 7)
def n_queens(n):
    """How many ways there are to place n queens."""
    cols = np.zeros(n, int)
    count = 0
    r = 0
    cols[0] = -1
    while r >= 0:
        cols[r] += 1
        while cols[r] < n:
            ok = True
            for p in range(r):
                if cols[p] == cols[r] or abs(cols[p] - cols[r]) == r - p:
                    ok = False
                    break
            if ok:
                break
            cols[r] += 1
        if cols[r] == n:
            r -= 1
        elif r == n - 1:
            count += 1
        else:
            r += 1
            cols[r] = -1
    return count


@program(lambda rng, n: (rng.integers(0, 1 << 40, n),), 20, 1000)
def hamming_weights(a):
    """Bits of all numbers."""
    c = 0
    for v in a:
        x = int(v)
        while x:
            x &= x - 1
            c += 1
    return c


@program(lambda rng, n: (rng.integers(1, 100, (n, n)),), 8, 200)
def shortest_paths_by_outer_sums(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


@program(lambda rng, n: (rng.random(n) + 1,), 20, 5000)
def largest_drawdown(p):
    peak = p[0]
    dd = 0.0
    for v in p:
        peak = max(peak, v)
        dd = max(dd, (peak - v) / peak)
    return dd


@program(lambda rng, n: (100.0, 100.0, 1.0, 0.05, 0.2, n), 10, 200)
def binomial_option(S, K, T, r, sig, N):
    """An American put on a binomial tree (Cox, Ross and Rubinstein 1979)."""
    dt = T / N
    u = np.exp(sig * np.sqrt(dt))
    d = 1 / u
    p = (np.exp(r * dt) - d) / (u - d)
    disc = np.exp(-r * dt)
    prices = S * u ** np.arange(N, -1, -1) * d ** np.arange(0, N + 1)
    v = np.maximum(K - prices, 0)
    for _i in range(N - 1, -1, -1):
        v = disc * (p * v[:-1] + (1 - p) * v[1:])
        prices = prices[:-1] * d
        v = np.maximum(v, K - prices)
    return v[0]


@program(lambda rng, n: (rng.standard_normal(n), 0.1, 0.1, 0.8), 20, 3000)
def garch_likelihood(r, w, a, b):
    s = np.zeros(len(r))
    s[0] = np.var(r)
    for t in range(1, len(r)):
        s[t] = w + a * r[t - 1] ** 2 + b * s[t - 1]
    return -0.5 * np.sum(np.log(2 * np.pi * s) + r**2 / s)
