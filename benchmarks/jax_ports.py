"""The programs of benchmarks/numpy_suite that write in place or loop on data, as one writes them in JAX: arrays are values, loops are
``lax.fori_loop``, ``scan`` or ``while_loop``, what NumPy does by elements is done on whole arrays where that is the natural form.

A port has its program's arguments and returns what the program returns, then the arrays that it changes, in the order of the arguments.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

PORTS = {}


def port(fn):
    PORTS[fn.__name__] = fn
    return fn


def times(n, body, carry):
    return lax.fori_loop(0, n, lambda _, c: body(*c), carry)


# ---- dynamic programming, graphs -----------------------------------------------------------------------------------------------
@port
def nussinov(seq):
    n = seq.shape[0]
    at = jnp.arange(n)

    def cell(i, j, table):
        pair = (seq[i] + seq[j] == 3).astype(jnp.int64)
        inner = table[jnp.minimum(i + 1, n - 1), jnp.maximum(j - 1, 0)]
        best = jnp.maximum(jnp.maximum(table[i, j - 1], table[i + 1, j]), jnp.where(i < j - 1, inner + pair, inner))
        below = jnp.concatenate([table[1:, j], jnp.zeros(1, table.dtype)])
        splits = jnp.where((at > i) & (at < j), table[i] + below, 0)
        return table.at[i, j].set(jnp.maximum(best, splits.max()))

    def row(k, table):
        i = n - 1 - k
        return lax.fori_loop(i + 1, n, lambda j, t: cell(i, j, t), table)

    return lax.fori_loop(0, n, row, jnp.zeros((n, n), jnp.int64))[0, n - 1]


@port
def edit_distance(a, b):
    m = b.shape[0]
    first = jnp.arange(m + 1)

    def row(above, x):
        cost = (b != x).astype(above.dtype)
        least = jnp.minimum(above[1:] + 1, above[:-1] + cost)

        def cell(left, v):
            left = jnp.minimum(left + 1, v)
            return left, left

        start = above[0] + 1
        return jnp.concatenate([start[None], lax.scan(cell, start, least)[1]]), None

    return lax.scan(row, first, a)[0][m]


@port
def knapsack(weights, values, capacity):
    at = jnp.arange(capacity + 1)

    def item(best, wv):
        w, v = wv
        return jnp.where(at >= w, jnp.maximum(best, best[jnp.maximum(at - w, 0)] + v), best), None

    return lax.scan(item, jnp.zeros(capacity + 1), (weights, values))[0][capacity]


@port
def floyd_warshall(path):
    return lax.fori_loop(0, path.shape[0], lambda k, p: jnp.minimum(p, p[:, k, None] + p[k]), path)


@port
def viterbi(start, transition, emission, observed):
    def step(score, o):
        candidates = score[:, None] + jnp.log(transition)
        return jnp.max(candidates, axis=0) + jnp.log(emission[:, o]), jnp.argmax(candidates, axis=0)

    score, back = lax.scan(step, jnp.log(start) + jnp.log(emission[:, observed[0]]), observed[1:])
    return jnp.max(score), jnp.concatenate([jnp.zeros((1, len(start)), back.dtype), back])


@port
def crc16(data):
    def bit(_, crc):
        return jnp.where(crc & 0x8000, ((crc << 1) ^ 0x1021) & 0xFFFF, (crc << 1) & 0xFFFF)

    def byte(crc, x):
        return lax.fori_loop(0, 8, bit, crc ^ (x.astype(jnp.int64) << 8)), None

    return lax.scan(byte, jnp.int64(0xFFFF), data)[0]


@port
def sparse_product(starts, columns, values, x):
    rows = jnp.searchsorted(starts, jnp.arange(columns.shape[0]), side="right") - 1
    return jax.ops.segment_sum(values * x[columns], rows, len(starts) - 1, indices_are_sorted=True)


# ---- factorisations ------------------------------------------------------------------------------------------------------------
@port
def lu(a):
    n = a.shape[0]
    at = jnp.arange(n)

    def step(k, a):
        factors = jnp.where(at > k, a[:, k] / a[k, k], 0.0)
        a = a - factors[:, None] * jnp.where(at > k, a[k], 0.0)
        return a.at[:, k].set(jnp.where(at > k, factors, a[:, k]))

    return lax.fori_loop(0, n, step, a)


@port
def cholesky(a):
    n = a.shape[0]
    at = jnp.arange(n)

    def column(j, a):
        row = jnp.where(at < j, a[j], 0.0)
        new = a[:, j] - a @ row
        pivot = jnp.sqrt(new[j])
        return a.at[:, j].set(jnp.where(at > j, new / pivot, jnp.where(at == j, pivot, a[:, j])))

    return lax.fori_loop(0, n, column, a)


@port
def gram_schmidt(a):
    n = a.shape[1]
    at = jnp.arange(n)

    def step(k, carry):
        a, q, r = carry
        norm = jnp.sqrt(a[:, k] @ a[:, k])
        column = a[:, k] / norm
        row = jnp.where(at > k, column @ a, 0.0)
        return a - column[:, None] * row, q.at[:, k].set(column), r.at[k].set(row.at[k].set(norm))

    a, q, r = lax.fori_loop(0, n, step, (a, jnp.zeros_like(a), jnp.zeros((n, n), a.dtype)))
    return q, r, a


@port
def triangular_solve(low, x, b):
    at = jnp.arange(low.shape[0])

    def row(i, x):
        return x.at[i].set((b[i] - jnp.where(at < i, low[i], 0.0) @ x) / low[i, i])

    return lax.fori_loop(0, low.shape[0], row, x)


@port
def thomas(d, low, diagonal, up):
    def down(carry, row):
        c, x = carry
        d, low, diagonal, up = row
        m = 1.0 / (diagonal - low * c)
        return (up * m, (d - low * x) * m), (up * m, (d - low * x) * m)

    _, (c, x) = lax.scan(down, (0.0, 0.0), (d, low, diagonal, up))

    def back(x, row):
        x = row[1] - row[0] * x
        return x, x

    return lax.scan(back, 0.0, (c.at[-1].set(0.0), x), reverse=True)[1]


@port
def conjugate_gradient(a, b, steps):
    def step(x, r, p, rs):
        ap = a @ p
        alpha = rs / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        new = r @ r
        return x, r, r + (new / rs) * p, new

    return times(steps, step, (jnp.zeros_like(b), b, b, b @ b))[0]


@port
def matrix_product_by_elements(a, b, c):
    out = a @ b
    return out, out


@port
def adi(steps, u):
    n = u.shape[0]
    a, b, d, f = -0.4, 1.8, -0.3, -0.2

    def sweep(_, carry):
        u, v, p, q = carry
        v = v.at[0, 1 : n - 1].set(1.0)
        p = p.at[1 : n - 1, 0].set(0.0)
        q = q.at[1 : n - 1, 0].set(v[0, 1 : n - 1])

        def forward(j, pq):
            p, q = pq
            row, before = u[j], p[1 : n - 1, j - 1]
            below = -d * row[: n - 2] + (1.0 + 2.0 * d) * row[1 : n - 1] - f * row[2:]
            new = (below - a * q[1 : n - 1, j - 1]) / (a * before + b)
            return p.at[1 : n - 1, j].set(-a / (a * before + b)), q.at[1 : n - 1, j].set(new)

        p, q = lax.fori_loop(1, n - 1, forward, (p, q))
        v = v.at[n - 1, 1 : n - 1].set(1.0)

        def backward(k, v):
            j = n - 1 - k
            return v.at[j, 1 : n - 1].set(p[1 : n - 1, j] * v[j + 1, 1 : n - 1] + q[1 : n - 1, j])

        v = lax.fori_loop(1, n - 1, backward, v)
        return u.at[1 : n - 1, 1 : n - 1].set(v[1 : n - 1, 1 : n - 1]), v, p, q

    zero = jnp.zeros_like(u)
    return lax.fori_loop(0, steps, sweep, (u, zero, zero, zero))[0]


# ---- physics -------------------------------------------------------------------------------------------------------------------
@port
def nbody(mass, pos, vel, steps):
    dt, softening = 0.01, 0.1

    def step(pos, vel):
        x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
        dx, dy, dz = x.T - x, y.T - y, z.T - z
        inv = (dx**2 + dy**2 + dz**2 + softening**2) ** -1.5
        vel = vel + jnp.hstack([(dx * inv) @ mass, (dy * inv) @ mass, (dz * inv) @ mass]) * dt
        return pos + vel * dt, vel

    return times(steps, step, (pos, vel))


@port
def lennard_jones_by_pairs(r, force):
    n = r.shape[0]
    d = r[:, None, :] - r[None, :, :]
    d2 = (d * d).sum(axis=-1)
    near = (d2 < 1.0) & ~jnp.eye(n, dtype=bool)
    s6 = 1.0 / (d2 + 0.01) ** 3
    energy = 0.5 * jnp.where(near, 4.0 * (s6 * s6 - s6), 0.0).sum()
    f = jnp.where(near, 24.0 * (2.0 * s6 * s6 - s6) / (d2 + 0.01), 0.0)
    return energy, force + (f[:, :, None] * d).sum(axis=1)


@port
def lattice_boltzmann(f, steps):
    velocities = np.array([[1, 1], [1, 0], [1, -1], [0, 1], [0, 0], [0, -1], [-1, 1], [-1, 0], [-1, -1]])
    weights = np.array([1 / 36, 1 / 9, 1 / 36, 1 / 9, 4 / 9, 1 / 9, 1 / 36, 1 / 9, 1 / 36])

    def step(_, f):
        rho = jnp.sum(f, axis=0)
        ux = jnp.tensordot(velocities[:, 0].astype(float), f, axes=1) / rho
        uy = jnp.tensordot(velocities[:, 1].astype(float), f, axes=1) / rho
        square = 1.5 * (ux**2 + uy**2)
        out = []
        for (vx, vy), weight, g in zip(velocities.tolist(), weights, f):
            cu = 3.0 * (vx * ux + vy * uy)
            g = g + 0.6 * (rho * weight * (1 + cu + 0.5 * cu**2 - square) - g)
            out.append(jnp.roll(g, (vx, vy), axis=(0, 1)))
        return jnp.stack(out)

    f = lax.fori_loop(0, steps, step, f)
    return jnp.sum(f, axis=0), f


@port
def pi_by_points(points):
    return 4.0 * (points[:, 0] ** 2 + points[:, 1] ** 2 <= 1.0).sum() / points.shape[0]


@port
def spiking_network(weights, current):
    n = current.shape[1]

    def step(carry, given):
        v, spikes, count = carry
        v = 0.9 * v + given * 0.2 + weights @ spikes
        fired = v > 1.0
        spikes = fired.astype(v.dtype)
        return (jnp.where(fired, 0.0, v), spikes, count + spikes), None

    return lax.scan(step, (jnp.zeros(n),) * 3, current)[0][2]


@port
def ising(spins, draws, beta):
    n = spins.shape[0]

    def site(k, spins):
        sweep, i, j = k // (n * n), k // n % n, k % n
        around = spins[i - 1, j] + spins[(i + 1) % n, j] + spins[i, j - 1] + spins[i, (j + 1) % n]
        change = 2 * spins[i, j] * around
        flip = (change <= 0) | (draws[sweep, i, j] < jnp.exp(-beta * change))
        return spins.at[i, j].set(jnp.where(flip, -spins[i, j], spins[i, j]))

    spins = lax.fori_loop(0, draws.shape[0] * n * n, site, spins)
    return spins.sum(), spins


@port
def lorenz(x, y, z, steps):
    dt = 0.001

    def step(x, y, z):
        dx, dy, dz = 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z
        return x + dt * dx, y + dt * dy, z + dt * dz

    return times(steps, step, (x, y, z))


# ---- signals -------------------------------------------------------------------------------------------------------------------
@port
def mandelbrot(x0, x1, y0, y1, nx, ny, limit):
    cr = (x0 + (x1 - x0) * jnp.arange(nx) / nx)[None, :]
    ci = (y0 + (y1 - y0) * jnp.arange(ny) / ny)[:, None]

    def step(_, carry):
        zr, zi, k, going = carry
        going = going & (zr * zr + zi * zi <= 4.0)
        zr, zi = jnp.where(going, zr * zr - zi * zi + cr, zr), jnp.where(going, 2.0 * zr * zi + ci, zi)
        return zr, zi, k + going, going

    zero = jnp.zeros((ny, nx))
    return lax.fori_loop(0, limit, step, (zero, zero, jnp.zeros((ny, nx), jnp.int64), zero == 0))[2]


@port
def gaussian_blur(image, sigma):
    r = 6
    taps = jnp.exp(-0.5 * (jnp.arange(-r, r + 1) / sigma) ** 2)
    taps = taps / taps.sum()
    padded = jnp.pad(image, r, mode="edge")
    rows = sum(taps[k] * padded[k : k + image.shape[0]] for k in range(2 * r + 1))
    return sum(taps[k] * rows[:, k : k + image.shape[1]] for k in range(2 * r + 1))


@port
def convolution_with_bias(x, weights, bias):
    return lax.conv_general_dilated(x, weights, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias


@port
def fir_filter(signal, taps):
    return jnp.convolve(signal, taps[::-1], mode="valid")


@port
def iir_filter(signal):
    def step(carry, x):
        x1, x2, y1, y2 = carry
        y = 0.2 * x + 0.4 * x1 + 0.2 * x2 + 0.5 * y1 - 0.3 * y2
        return (x, x1, y, y1), y

    return lax.scan(step, (0.0,) * 4, signal)[1]


@port
def histogram_equalisation(image):
    cdf = jnp.cumsum(jnp.bincount(image.reshape(-1), length=256))
    return (255.0 * cdf / cdf[-1]).astype(jnp.uint8)[image]


@port
def fft_by_butterflies(x, stages):
    y = x.reshape((1, -1))
    for _ in range(stages):
        half, m = y.shape[1] // 2, y.shape[0]
        even, odd = y[:, :half], y[:, half:]
        twiddle = jnp.exp(-1j * jnp.pi * jnp.arange(m) / m)[:, None]
        y = jnp.vstack([even + twiddle * odd, even - twiddle * odd])
    return y.reshape(-1)


# ---- statistics ----------------------------------------------------------------------------------------------------------------
@port
def covariance_by_columns(data):
    centred = data - jnp.mean(data, axis=0)
    return centred.T @ centred / (data.shape[0] - 1.0)


@port
def k_means(points, centres, steps):
    def step(_, centres):
        distance = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        mine = jnp.argmin(distance, axis=1)[:, None] == jnp.arange(centres.shape[0])
        count = mine.sum(axis=0)[:, None]
        return jnp.where(count > 0, (mine.T.astype(points.dtype) @ points) / jnp.maximum(count, 1), centres)

    return lax.fori_loop(0, steps, step, centres)


@port
def moving_average(x, width):
    def step(total, pair):
        total = total + pair[0] - pair[1]
        return total, total

    total = x[:width].sum()
    rest = lax.scan(step, total, (x[width:], x[: len(x) - width]))[1]
    return jnp.concatenate([total[None], rest]) / width


# ---- stencils ------------------------------------------------------------------------------------------------------------------
@port
def jacobi_1d(steps, a, b):
    def step(a, b):
        b = b.at[1:-1].set(0.33333 * (a[:-2] + a[1:-1] + a[2:]))
        return a.at[1:-1].set(0.33333 * (b[:-2] + b[1:-1] + b[2:])), b

    return times(steps - 1, step, (a, b))


@port
def jacobi_2d(steps, a, b):
    def half(a, b):
        inner = a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        return b.at[1:-1, 1:-1].set(0.2 * inner)

    def step(a, b):
        b = half(a, b)
        return half(b, a), b

    return times(steps - 1, step, (a, b))


@port
def heat_3d(steps, a):
    def step(_, a):
        inner = a[1:-1, 1:-1, 1:-1]
        return a.at[1:-1, 1:-1, 1:-1].set(
            0.125 * (a[2:, 1:-1, 1:-1] - 2.0 * inner + a[:-2, 1:-1, 1:-1])
            + 0.125 * (a[1:-1, 2:, 1:-1] - 2.0 * inner + a[1:-1, :-2, 1:-1])
            + 0.125 * (a[1:-1, 1:-1, 2:] - 2.0 * inner + a[1:-1, 1:-1, :-2])
            + inner
        )

    return lax.fori_loop(0, steps, step, a)


@port
def seidel_2d(steps, a):
    n = a.shape[0]

    def row(i, a):
        around = (a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:] + a[i, 1:-1] + a[i, 2:]) + (
            a[i + 1, :-2] + a[i + 1, 1:-1] + a[i + 1, 2:]
        )

        def cell(left, v):
            left = (left + v) / 9.0
            return left, left

        return a.at[i, 1:-1].set(lax.scan(cell, a[i, 0], around)[1])

    return lax.fori_loop(0, steps, lambda _, a: lax.fori_loop(1, n - 1, row, a), a)


@port
def fdtd_2d(steps, ex, ey, hz, fict):
    def step(carry, given):
        ex, ey, hz = carry
        ey = ey.at[0, :].set(given)
        ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        hz = hz.at[:-1, :-1].add(-0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]))
        return (ex, ey, hz), None

    return lax.scan(step, (ex, ey, hz), fict[:steps])[0]


@port
def horizontal_diffusion(field, out, coefficient):
    i, j = out.shape[0], out.shape[1]
    lap = 4.0 * field[1 : i + 3, 1 : j + 3, :] - (
        field[2 : i + 4, 1 : j + 3, :] + field[0 : i + 2, 1 : j + 3, :] + field[1 : i + 3, 2 : j + 4, :]
        + field[1 : i + 3, 0 : j + 2, :]
    )  # fmt: skip
    flux = lap[1:, 1 : j + 1, :] - lap[:-1, 1 : j + 1, :]
    fx = jnp.where(flux * (field[2 : i + 3, 2 : j + 2, :] - field[1 : i + 2, 2 : j + 2, :]) > 0, 0, flux)
    flux = lap[1 : i + 1, 1:, :] - lap[1 : i + 1, :-1, :]
    fy = jnp.where(flux * (field[2 : i + 2, 2 : j + 3, :] - field[2 : i + 2, 1 : j + 2, :]) > 0, 0, flux)
    return field[2 : i + 2, 2 : j + 2, :] - coefficient * (fx[1:] - fx[:-1] + fy[:, 1:] - fy[:, :-1])


@port
def game_of_life(steps, z):
    def step(_, z):
        n = z[:-2, :-2] + z[:-2, 1:-1] + z[:-2, 2:] + z[1:-1, :-2] + z[1:-1, 2:] + z[2:, :-2] + z[2:, 1:-1] + z[2:, 2:]
        alive = z[1:-1, 1:-1] == 1
        return jnp.zeros_like(z).at[1:-1, 1:-1].set(((n == 3) | ((n == 2) & alive)).astype(z.dtype))

    z = lax.fori_loop(0, steps, step, z)
    return z.sum(), z


@port
def gray_scott(steps, u, v):
    def around(u):
        return u[:-2, 1:-1] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1] + u[1:-1, 2:] + u[2:, 1:-1]

    def step(u, v):
        lu, lv = around(u), around(v)
        uvv = u[1:-1, 1:-1] * v[1:-1, 1:-1] ** 2
        new = 0.16 * lu - uvv + 0.035 * (1 - u[1:-1, 1:-1])
        return u.at[1:-1, 1:-1].add(new), v.at[1:-1, 1:-1].add(0.08 * lv + uvv - 0.1 * v[1:-1, 1:-1])

    return times(steps, step, (u, v))


@port
def laplace_until_still(u, tolerance, limit):
    def cells(above, row, below):
        def cell(left, given):
            up, here, right, down = given
            new = 0.25 * (up + down + left + right)
            return new, (new, jnp.abs(new - here))

        new, change = lax.scan(cell, row[0], (above[1:-1], row[1:-1], row[2:], below[1:-1]))[1]
        return row.at[1:-1].set(new), change.max()

    def sweep(carry):
        u, _, sweeps = carry

        def row(i, uc):
            u, change = uc
            new, most = cells(u[i - 1], u[i], u[i + 1])
            return u.at[i].set(new), jnp.maximum(change, most)

        u, change = lax.fori_loop(1, u.shape[0] - 1, row, (u, 0.0))
        return u, change, sweeps + 1

    u, _, sweeps = lax.while_loop(lambda c: (c[1] > tolerance) & (c[2] < limit), sweep, (u, 1.0, 0))
    return sweeps, u
