"""The programs of numpy_suite/texts.py and lectures.py in JAX, see jax_ports.py."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax_ports import port, times


# ---- numbers and sequences -----------------------------------------------------------------------------------------------------
@port
def collatz(n):
    def length(s):
        def step(carry):
            k, c = carry
            return jnp.where(k % 2 == 0, k // 2, 3 * k + 1), c + 1

        return lax.while_loop(lambda carry: carry[0] != 1, step, (s, 0))[1]

    counts = jax.vmap(length)(jnp.arange(1, n))
    best = jnp.argmax(counts)
    return counts[best], best + 1


def alignment(a, b, cell, start):
    """A table of a dynamic program with zeros above and to the left: ``cell(diagonal, above, left, x, y)``."""

    def row(above, x):
        def column(left, given):
            diagonal, up, y = given
            new = cell(diagonal, up, left, x, y)
            return new, new

        new = jnp.concatenate([start[None], lax.scan(column, start, (above[:-1], above[1:], b))[1]])
        return new, new

    first = jnp.full(len(b) + 1, start)
    return jnp.concatenate([first[None], lax.scan(row, first, a)[1]])


@port
def smith_waterman(a, b, match, mis, gap):
    def cell(diagonal, up, left, x, y):
        return jnp.maximum(
            jnp.maximum(0.0, diagonal + jnp.where(x == y, match, mis)), jnp.maximum(up - gap, left - gap)
        )

    table = alignment(a, b, cell, jnp.float64(0.0))
    i, j = jnp.unravel_index(jnp.argmax(table), table.shape)
    return table.max(), (i, j)


@port
def longest_common_subsequence(a, b):
    def cell(diagonal, up, left, x, y):
        return jnp.where(x == y, diagonal + 1, jnp.maximum(up, left))

    return alignment(a, b, cell, jnp.int64(0))[-1, -1]


@port
def dijkstra_by_scanning(W):
    n = len(W)

    def step(d, done):
        u = jnp.argmin(jnp.where(done, jnp.inf, d))
        done = done.at[u].set(True)
        return jnp.where(done, d, jnp.minimum(d, d[u] + W[u])), done

    return times(n, step, (jnp.full(n, jnp.inf).at[0].set(0.0), jnp.zeros(n, bool)))[0]


@port
def pascal_triangle(n):
    def row(before, i):
        new = jnp.where(jnp.arange(n) <= i, before + jnp.roll(before, 1).at[0].set(0), 0)
        return new, new

    first = jnp.zeros(n, jnp.int64).at[0].set(1)
    return jnp.concatenate([first[None], lax.scan(row, first, jnp.arange(1, n))[1]])


@port
def magic_square(n):
    def step(k, carry):
        m, i, j = carry
        m = m.at[i, j].set(k)
        a, b = (i - 1) % n, (j + 1) % n
        full = m[a, b] != 0
        return m, jnp.where(full, (i + 1) % n, a), jnp.where(full, j, b)

    return lax.fori_loop(1, n * n + 1, step, (jnp.zeros((n, n), jnp.int64), 0, n // 2))[0]


@port
def spiral_matrix(n):
    def step(k, carry):
        A, x, y, dx, dy = carry
        A = A.at[y, x].set(k)
        inside = (x + dx >= 0) & (x + dx < n) & (y + dy >= 0) & (y + dy < n)
        turn = ~inside | (A[y + dy, x + dx] != 0)
        dx, dy = jnp.where(turn, -dy, dx), jnp.where(turn, dx, dy)
        return A, x + dx, y + dy, dx, dy

    return lax.fori_loop(0, n * n, step, (jnp.zeros((n, n), jnp.int64), 0, 0, 1, 0))[0]


@port
def n_queens(n):
    at = jnp.arange(n)

    def step(carry):
        columns, r, count = carry
        columns = columns.at[r].add(1)
        c = columns[r]
        clash = (at < r) & ((columns == c) | (jnp.abs(columns - c) == r - at))
        placed = (c < n) & ~clash.any()
        last = r == n - 1
        deeper = placed & ~last
        columns = columns.at[jnp.minimum(r + 1, n - 1)].set(jnp.where(deeper, -1, columns[jnp.minimum(r + 1, n - 1)]))
        r = jnp.where(c >= n, r - 1, jnp.where(deeper, r + 1, jnp.where(placed, r - 1, r)))
        return columns, r, count + (placed & last)

    start = jnp.zeros(n, jnp.int64).at[0].set(-1), jnp.int64(0), jnp.int64(0)
    return lax.while_loop(lambda carry: carry[1] >= 0, step, start)[2]


@port
def hamming_weights(a):
    return jnp.bitwise_count(a).astype(jnp.int64).sum()


@port
def shortest_paths_by_outer_sums(path):
    return lax.fori_loop(0, path.shape[0], lambda k, p: jnp.minimum(p, p[:, k, None] + p[k]), path)


@port
def largest_drawdown(p):
    peak = lax.cummax(p)
    return jnp.maximum(((peak - p) / peak).max(), 0.0)


@port
def binomial_option(S, K, T, r, sig, N):
    dt = T / N
    u = jnp.exp(sig * jnp.sqrt(dt))
    d = 1 / u
    p = (jnp.exp(r * dt) - d) / (u - d)
    discount = jnp.exp(-r * dt)
    prices = S * u ** jnp.arange(N, -1, -1) * d ** jnp.arange(N + 1)

    def step(v, prices):
        prices = jnp.append(prices[:-1], 0.0) * d
        v = discount * (p * v + (1 - p) * jnp.append(v[1:], 0.0))
        return jnp.maximum(v, K - prices), prices

    # What is behind the tree's end is never read by what is asked for: a node reads itself and the one behind it.
    return times(N, step, (jnp.maximum(K - prices, 0.0), prices))[0][0]


@port
def garch_likelihood(r, w, a, b):
    def step(s, x):
        s = w + a * x**2 + b * s
        return s, s

    first = jnp.var(r)
    s = jnp.concatenate([first[None], lax.scan(step, first, r[:-1])[1]])
    return -0.5 * jnp.sum(jnp.log(2 * jnp.pi * s) + r**2 / s)


# ---- lectures ------------------------------------------------------------------------------------------------------------------
@port
def convolution_by_elements(image, kernel):
    h, w = kernel.shape
    rows, columns = image.shape[0] - h + 1, image.shape[1] - w + 1
    return sum(image[k : k + rows, m : m + columns] * kernel[h - 1 - k, w - 1 - m] for k in range(h) for m in range(w))


@port
def bilateral_filter(image, radius, tone, space):
    rows, columns = image.shape
    padded = jnp.pad(image, radius, constant_values=jnp.nan)
    weights = total = 0.0
    for k in range(2 * radius + 1):
        for m in range(2 * radius + 1):
            near = padded[k : k + rows, m : m + columns]
            d = ((k - radius) ** 2 + (m - radius) ** 2) / (2 * space**2) + (image - near) ** 2 / (2 * tone**2)
            w = jnp.where(jnp.isnan(near), 0.0, jnp.exp(-d))
            weights, total = weights + w, total + w * jnp.nan_to_num(near)
    return total / weights


@port
def lagrange_interpolation(nodes, values, x):
    n = len(nodes)
    distance = jnp.where(jnp.eye(n, dtype=bool), 1.0, nodes[:, None] - nodes)
    factors = jnp.where(jnp.eye(n, dtype=bool)[:, :, None], 1.0, (x - nodes[:, None])[None] / distance[:, :, None])
    return values @ jnp.prod(factors, axis=1)


@port
def natural_spline(x, y):
    slope = jnp.diff(y) / jnp.diff(x)
    width = x[2:] - x[:-2]
    s = (x[1:-1] - x[:-2]) / width
    d = 6.0 * jnp.diff(slope) / width

    def down(carry, row):
        second, u = carry
        s, d = row
        p = s * second + 2.0
        new = (s - 1.0) / p, (d - s * u) / p
        return new, new

    _, (second, u) = lax.scan(down, (0.0, 0.0), (s, d))

    def up(below, row):
        new = row[0] * below + row[1]
        return new, new

    inner = lax.scan(up, 0.0, (second, u), reverse=True)[1]
    return jnp.concatenate([(0.0 * inner[0])[None], inner, jnp.zeros(1)])


@port
def relative_strength(prices, width):
    change = jnp.diff(prices)
    gain, loss = jnp.maximum(change, 0.0), jnp.maximum(-change, 0.0)

    def step(carry, row):
        up, down = ((mean * (width - 1) + new) / width for mean, new in zip(carry, row))
        return (up, down), 100.0 - 100.0 / (1.0 + up / (down + 1e-12))

    start = gain[:width].mean(), loss[:width].mean()
    return jnp.concatenate([jnp.zeros(width), lax.scan(step, start, (gain[width:], loss[width:]))[1]])


@port
def hidden_markov_forward(transition, emission, seen):
    transition = transition / transition.sum(axis=1)[:, None]
    emission = emission / emission.sum(axis=1)[:, None]

    def step(carry, o):
        alpha, total = carry
        c = alpha.sum()
        return ((alpha / c) @ transition * emission[:, o], total + jnp.log(c)), None

    alpha, total = lax.scan(step, (emission[:, seen[0]] / 8, 0.0), seen[1:])[0]
    return total + jnp.log(alpha.sum())


@port
def totients(n):
    at = jnp.arange(n)

    def step(p, phi):
        prime = phi[p] == p
        return jnp.where(prime & (at % p == 0), phi - phi // p, phi)

    return lax.fori_loop(2, n, step, at)


@port
def greatest_common_divisors(n):
    at = jnp.arange(1, n + 1)
    return jnp.gcd(at[:, None], at)


@port
def cellular_automaton(rule, n):
    table = jnp.array([(rule >> k) & 1 for k in range(8)])

    def row(before, _):
        new = jnp.pad(table[4 * before[:-2] + 2 * before[1:-1] + before[2:]], 1)
        return new, new

    first = jnp.zeros(2 * n + 1, jnp.int64).at[n].set(1)
    return jnp.concatenate([first[None], lax.scan(row, first, None, length=n - 1)[1]])


@port
def haar_wavelet(signal):
    details = []
    while len(signal) > 1:
        even, odd = signal[::2], signal[1::2]
        details.insert(0, (even - odd) / jnp.sqrt(2.0))
        signal = (even + odd) / jnp.sqrt(2.0)
    return jnp.concatenate([signal, *details])


@port
def hamming_distances(sequences):
    return lax.map(lambda row: (sequences != row).sum(axis=1), sequences)


@port
def words_of_letters(sequence, k):
    code = sum(sequence[i : len(sequence) - k + 1 + i] * 4 ** (k - 1 - i) for i in range(k))
    return jnp.bincount(code, length=4**k)


@port
def perceptron(points, labels):
    def step(carry, row):
        w, mistakes = carry
        point, label = row
        wrong = (w @ point) * label <= 0
        return (jnp.where(wrong, w + label * point, w), mistakes + wrong), None

    def epoch(w, mistakes):
        return lax.scan(step, (w, mistakes), (points, labels))[0]

    return times(5, epoch, (jnp.zeros(points.shape[1]), jnp.int64(0)))


@port
def gaussian_naive_bayes(train, labels, points):
    mine = (labels[:, None] == jnp.arange(3)).astype(float)
    count = mine.sum(axis=0)[:, None]
    mean = mine.T @ train / count
    var = jnp.einsum("nc,ncd->cd", mine, (train[:, None] - mean) ** 2) / count + 1e-9
    spread = jnp.log(2 * jnp.pi * var) + (points[:, None] - mean) ** 2 / var
    return jnp.argmax(jnp.log(count[:, 0] / len(train)) - 0.5 * spread.sum(axis=2), axis=1)


@port
def over_relaxation(u, f, omega, sweeps):
    n, m = u.shape

    def row(i, carry):
        u, worst = carry

        def cell(left, given):
            here, up, down, right, f = given
            d = 0.25 * (up + down + left + right - f) - here
            return here + omega * d, (here + omega * d, abs(d))

        inner = slice(1, m - 1)
        new, change = lax.scan(cell, u[i, 0], (u[i, inner], u[i - 1, inner], u[i + 1, inner], u[i, 2:], f[i, inner]))[1]
        return u.at[i, inner].set(new), jnp.maximum(worst, change.max())

    def sweep(u, worst):
        return lax.fori_loop(1, n - 1, row, (u, 0.0))

    u, worst = times(sweeps, sweep, (u, 0.0))
    return worst, u


@port
def fermi_pasta_ulam(x, steps):
    h, alpha = 0.02, 0.25

    def kick(x, v):
        d = jnp.diff(jnp.pad(x, 1))
        return v + 0.5 * h * (d[1:] - d[:-1] + alpha * (d[1:] ** 2 - d[:-1] ** 2))

    def step(x, v):
        v = kick(x, v)
        x = x + h * v
        return x, kick(x, v)

    x, v = times(steps, step, (x, jnp.zeros_like(x)))
    d = jnp.diff(jnp.pad(x, 1))
    return 0.5 * jnp.sum(v**2) + jnp.sum(d**2 / 2 + alpha * d**3 / 3), x


@port
def nearest_pair(x, y):
    n = len(x)
    d = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2
    d = jnp.where(jnp.arange(n)[:, None] < jnp.arange(n), d, jnp.inf)
    best = jnp.argmin(d)
    return jnp.sqrt(d.reshape(-1)[best]), best // n, best % n
