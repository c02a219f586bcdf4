"""Sampling and data: Markov chains, windows, groups."""

import math

import numpy as np

# ---- chance


def metropolis(n, width, seed):
    np.random.seed(seed)
    x, accepted = 0.0, 0
    samples = np.empty(n)
    for i in range(n):
        candidate = x + np.random.uniform(-width, width)
        if np.log(np.random.random()) < (x * x - candidate * candidate) / 2:
            x = candidate
            accepted += 1
        samples[i] = x
    return samples, accepted / n


def gibbs(n, rho, rng):
    out = np.empty((n, 2))
    x = y = 0.0
    s = math.sqrt(1 - rho * rho)
    for i in range(n):
        x = rng.normal(rho * y, s)
        y = rng.normal(rho * x, s)
        out[i, 0], out[i, 1] = x, y
    return out


def gillespie(n0, birth, death, end, rng):
    t, n, events = 0.0, n0, 0
    while t < end and n > 0:
        rate = (birth + death) * n
        t += rng.exponential(1 / rate)
        if rng.random() * (birth + death) < birth:
            n += 1
        else:
            n -= 1
        events += 1
    return n, events


def reservoir(x, k, rng):
    out = x[:k].copy()
    for i in range(k, len(x)):
        j = rng.integers(0, i + 1)
        if j < k:
            out[j] = x[i]
    return out


def simulated_annealing(d, tour, steps, rng):
    n = len(tour)
    t = 1.0
    for _ in range(steps):
        i, j = rng.integers(0, n), rng.integers(0, n)
        if i > j:
            i, j = j, i
        if j - i < 2 or j - i == n - 1:
            continue
        a, b, c, e = tour[i], tour[i + 1], tour[j], tour[(j + 1) % n]
        change = d[a, c] + d[b, e] - d[a, b] - d[c, e]
        if change < 0 or rng.random() < math.exp(-change / t):
            k, m = i + 1, j
            while k < m:
                tour[k], tour[m] = tour[m], tour[k]
                k += 1
                m -= 1
        t *= 0.999
    length = 0.0
    for k in range(n):
        length += d[tour[k], tour[(k + 1) % n]]
    return length


# ---- data


def rolling_min(x, width):
    out = np.empty(len(x) - width + 1)
    queue = np.empty(len(x), np.int64)
    head = tail = 0
    for i in range(len(x)):
        while tail > head and x[queue[tail - 1]] >= x[i]:
            tail -= 1
        queue[tail] = i
        tail += 1
        if queue[head] <= i - width:
            head += 1
        if i >= width - 1:
            out[i - width + 1] = x[queue[head]]
    return out


def group_by_sum(keys, values, groups):
    sums, counts = np.zeros(groups), np.zeros(groups, np.int64)
    least, most = np.full(groups, np.inf), np.full(groups, -np.inf)
    for k, v in zip(keys, values):
        sums[k] += v
        counts[k] += 1
        least[k] = min(least[k], v)
        most[k] = max(most[k], v)
    return sums / np.maximum(counts, 1), least, most


def ewm(x, alpha):
    out = np.empty_like(x)
    out[0] = x[0]
    for i in range(1, len(x)):
        out[i] = out[i - 1] if np.isnan(x[i]) else alpha * x[i] + (1 - alpha) * out[i - 1]
    return out


def welford(x):
    n, mean, m2 = 0, 0.0, 0.0
    for v in x:
        n += 1
        delta = v - mean
        mean += delta / n
        m2 += delta * (v - mean)
    return mean, m2 / (n - 1)


def pairs_within(points, r):
    count = 0
    for i in range(points.shape[0]):
        for j in range(i + 1, points.shape[0]):
            d = 0.0
            for k in range(points.shape[1]):
                d += (points[i, k] - points[j, k]) ** 2
            if d < r * r:
                count += 1
    return count


def point_in_polygon(x, y, px, py):
    inside = np.zeros(len(x), np.bool_)
    for k in range(len(x)):
        j = len(px) - 1
        for i in range(len(px)):
            if (py[i] > y[k]) != (py[j] > y[k]) and x[k] < (px[j] - px[i]) * (y[k] - py[i]) / (py[j] - py[i]) + px[i]:
                inside[k] = not inside[k]
            j = i
    return inside


def decision_stump(x, y):
    best = (np.inf, -1, 0.0)
    for f in range(x.shape[1]):
        order = np.argsort(x[:, f])
        left, right = 0.0, y.sum()
        square = (y**2).sum()
        for k in range(len(order) - 1):
            left += y[order[k]]
            right -= y[order[k]]
            error = square - left * left / (k + 1) - right * right / (len(order) - k - 1)
            if error < best[0]:
                best = (error, f, (x[order[k], f] + x[order[k + 1], f]) / 2)
    return best
