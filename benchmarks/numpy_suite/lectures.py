"""Exercises of lectures: interpolation, filters, sequences, small models. Nothing was tuned for them."""

import numpy as np

from . import program


@program(lambda rng, n: (rng.random((n, n)), rng.random((5, 5))), 12, 120)
def convolution_by_elements(image, kernel):
    h, w = kernel.shape
    out = np.zeros((image.shape[0] - h + 1, image.shape[1] - w + 1))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for k in range(h):
                for m in range(w):
                    total += image[i + k, j + m] * kernel[h - 1 - k, w - 1 - m]
            out[i, j] = total
    return out


@program(lambda rng, n: (rng.random((n, n)), 2, 0.1, 1.5), 12, 70)
def bilateral_filter(image, radius, tone, space):
    out = np.zeros_like(image)
    rows, columns = image.shape
    for i in range(rows):
        for j in range(columns):
            weights = 0.0
            total = 0.0
            for k in range(max(i - radius, 0), min(i + radius + 1, rows)):
                for m in range(max(j - radius, 0), min(j + radius + 1, columns)):
                    d = ((i - k) ** 2 + (j - m) ** 2) / (2 * space**2) + (image[i, j] - image[k, m]) ** 2 / (
                        2 * tone**2
                    )
                    w = np.exp(-d)
                    weights += w
                    total += w * image[k, m]
            out[i, j] = total / weights
    return out


@program(lambda rng, n: (rng.integers(0, 3, n),), 30, 100000)
def run_lengths(a):
    """Where runs of equal elements begin, and how long they are."""
    starts = np.flatnonzero(np.concatenate((np.array([True]), a[1:] != a[:-1])))
    lengths = np.diff(np.concatenate((starts, np.array([len(a)]))))
    return a[starts], lengths


@program(lambda rng, n: (rng.random(20), rng.random(n)), 30, 50000, functional=True)
def horner(coefficients, x):
    y = np.zeros_like(x)
    for k in range(20):
        y = y * x + coefficients[k]
    return y


@program(lambda rng, n: (np.linspace(-1, 1, 12), rng.random(12), rng.random(n) * 2 - 1), 20, 20000)
def lagrange_interpolation(nodes, values, x):
    out = np.zeros_like(x)
    for i in range(len(nodes)):
        basis = np.ones_like(x)
        for j in range(len(nodes)):
            if i != j:
                basis *= (x - nodes[j]) / (nodes[i] - nodes[j])
        out += values[i] * basis
    return out


@program(lambda rng, n: (np.cumsum(rng.random(n) + 0.1), rng.random(n)), 10, 20000)
def natural_spline(x, y):
    """Second derivatives at the nodes."""
    n = len(x)
    second = np.zeros(n)
    u = np.zeros(n)
    for i in range(1, n - 1):
        s = (x[i] - x[i - 1]) / (x[i + 1] - x[i - 1])
        p = s * second[i - 1] + 2.0
        second[i] = (s - 1.0) / p
        d = (y[i + 1] - y[i]) / (x[i + 1] - x[i]) - (y[i] - y[i - 1]) / (x[i] - x[i - 1])
        u[i] = (6.0 * d / (x[i + 1] - x[i - 1]) - s * u[i - 1]) / p
    for k in range(n - 2, -1, -1):
        second[k] = second[k] * second[k + 1] + u[k]
    return second


@program(lambda rng, n: (rng.random(n) + 1, 14), 40, 100000)
def relative_strength(prices, width):
    change = np.diff(prices)
    gain = np.where(change > 0, change, 0.0)
    loss = np.where(change < 0, -change, 0.0)
    out = np.zeros(len(change))
    up, down = gain[:width].mean(), loss[:width].mean()
    for i in range(width, len(change)):
        up = (up * (width - 1) + gain[i]) / width
        down = (down * (width - 1) + loss[i]) / width
        out[i] = 100.0 - 100.0 / (1.0 + up / (down + 1e-12))
    return out


@program(lambda rng, n: (rng.random((8, 8)) + 0.1, rng.random((8, 5)) + 0.1, rng.integers(0, 5, n)), 20, 3000)
def hidden_markov_forward(transition, emission, seen):
    """The log-likelihood of what was seen."""
    transition = transition / transition.sum(axis=1)[:, None]
    emission = emission / emission.sum(axis=1)[:, None]
    alpha = np.full(8, 1 / 8) * emission[:, seen[0]]
    total = 0.0
    for t in range(1, len(seen)):
        c = alpha.sum()
        total += np.log(c)
        alpha = (alpha / c) @ transition * emission[:, seen[t]]
    return total + np.log(alpha.sum())


@program(lambda rng, n: (n,), 40, 200000)
def totients(n):
    phi = np.arange(n)
    for p in range(2, n):
        if phi[p] == p:
            for k in range(p, n, p):
                phi[k] -= phi[k] // p
    return phi


@program(lambda rng, n: (n,), 30, 400)
def greatest_common_divisors(n):
    out = np.zeros((n, n), np.int64)
    for i in range(n):
        for j in range(n):
            a, b = i + 1, j + 1
            while b:
                a, b = b, a % b
            out[i, j] = a
    return out


@program(lambda rng, n: (30, n), 20, 700)
def cellular_automaton(rule, n):
    """Rows of Wolfram's automaton from one cell."""
    table = np.array([(rule >> k) & 1 for k in range(8)])
    rows = np.zeros((n, 2 * n + 1), np.int64)
    rows[0, n] = 1
    for i in range(1, n):
        before = rows[i - 1]
        rows[i, 1:-1] = table[4 * before[:-2] + 2 * before[1:-1] + before[2:]]
    return rows


@program(lambda rng, n: (rng.random((n, n)),), 8, 256, functional=True)
def cosine_transform(image):
    """Type two, by a matrix, along both dimensions."""
    n = image.shape[0]
    k = np.arange(n)
    basis = np.cos(np.pi / n * (k[None, :] + 0.5) * k[:, None])
    return basis @ image @ basis.T


@program(lambda rng, n: (rng.random(2**n),), 5, 17)
def haar_wavelet(signal):
    out = signal.copy()
    n = len(out)
    while n > 1:
        half = n // 2
        even, odd = out[:n:2].copy(), out[1:n:2].copy()
        out[:half] = (even + odd) / np.sqrt(2.0)
        out[half:n] = (even - odd) / np.sqrt(2.0)
        n = half
    return out


@program(lambda rng, n: (rng.integers(0, 4, (n, 60)),), 8, 120)
def hamming_distances(sequences):
    n = len(sequences)
    out = np.zeros((n, n), np.int64)
    for i in range(n):
        for j in range(i + 1, n):
            d = 0
            for k in range(sequences.shape[1]):
                if sequences[i, k] != sequences[j, k]:
                    d += 1
            out[i, j] = out[j, i] = d
    return out


@program(lambda rng, n: (rng.integers(0, 4, n), 5), 40, 200000)
def words_of_letters(sequence, k):
    """How often each word of k letters occurs."""
    counts = np.zeros(4**k, np.int64)
    code = 0
    for i in range(len(sequence)):
        code = (code * 4 + sequence[i]) % 4**k
        if i >= k - 1:
            counts[code] += 1
    return counts


@program(lambda rng, n: (rng.standard_normal((n, 10)), rng.integers(0, 2, n) * 2 - 1), 20, 2000)
def perceptron(points, labels):
    w = np.zeros(points.shape[1])
    mistakes = 0
    for _ in range(5):
        for i in range(len(points)):
            s = 0.0
            for k in range(points.shape[1]):
                s += w[k] * points[i, k]
            if s * labels[i] <= 0:
                mistakes += 1
                for k in range(points.shape[1]):
                    w[k] += labels[i] * points[i, k]
    return w, mistakes


@program(lambda rng, n: (rng.standard_normal((n, 12)), rng.integers(0, 3, n), rng.standard_normal((n, 12))), 30, 3000)
def gaussian_naive_bayes(train, labels, points):
    scores = np.zeros((len(points), 3))
    for c in range(3):
        mine = train[labels == c]
        mean, var = mine.mean(axis=0), mine.var(axis=0) + 1e-9
        scores[:, c] = np.log(len(mine) / len(train)) - 0.5 * np.sum(
            np.log(2 * np.pi * var) + (points - mean) ** 2 / var, axis=1
        )
    return np.argmax(scores, axis=1)


@program(lambda rng, n: (np.zeros((n, n)), rng.random((n, n)), 1.7, 20), 8, 150)
def over_relaxation(u, f, omega, sweeps):
    n, m = u.shape
    worst = 0.0
    for _ in range(sweeps):
        worst = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                d = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j]) - u[i, j]
                u[i, j] += omega * d
                worst = max(worst, abs(d))
    return worst


@program(lambda rng, n: (rng.standard_normal(n) * 0.1, 400), 16, 500)
def fermi_pasta_ulam(x, steps):
    """A chain with cubic springs, by Verlet's method; its energy at the end."""
    v = np.zeros_like(x)
    h, alpha = 0.02, 0.25
    for _ in range(steps):
        for half in range(2):
            d = np.diff(np.concatenate((np.zeros(1), x, np.zeros(1))))
            v += 0.5 * h * (d[1:] - d[:-1] + alpha * (d[1:] ** 2 - d[:-1] ** 2))
            if half == 0:
                x += h * v
    d = np.diff(np.concatenate((np.zeros(1), x, np.zeros(1))))
    return 0.5 * np.sum(v**2) + np.sum(d**2 / 2 + alpha * d**3 / 3)


@program(lambda rng, n: (rng.random(n), rng.random(n)), 20, 400)
def nearest_pair(x, y):
    best, first, second = np.inf, -1, -1
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            d = (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2
            if d < best:
                best, first, second = d, i, j
    return np.sqrt(best), first, second
