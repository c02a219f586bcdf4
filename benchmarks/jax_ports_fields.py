"""The programs of numpy_suite/fields.py and numerics.py in JAX, see jax_ports.py. Of metropolis there is none: it draws NumPy's numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax_ports import port, times


# ---- images and signals --------------------------------------------------------------------------------------------------------
@port
def game_of_life_by_rolls(b, n):
    def turn(_, b):
        s = sum(
            jnp.roll(jnp.roll(b, i, 0), j, 1).astype(jnp.int64)
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i, j) != (0, 0)
        )
        return (s == 3) | b & (s == 2)

    return lax.fori_loop(0, n, turn, b)


@port
def floyd_steinberg(img):
    h, w = img.shape

    def pixel(k, padded):
        y, x = k // w, k % w + 1
        old = padded[y, x]
        new = jnp.round(old)
        e = old - new
        return (
            padded.at[y, x].set(new)
            .at[y, x + 1].add(e * 7 / 16)
            .at[y + 1, x - 1].add(e * 3 / 16)
            .at[y + 1, x].add(e * 5 / 16)
            .at[y + 1, x + 1].add(e / 16)
        )  # fmt: skip

    out = lax.fori_loop(0, h * w, pixel, jnp.pad(img, ((0, 1), (1, 1))))[:h, 1 : w + 1]
    return out, out


@port
def otsu_threshold(img):
    hist, _ = jnp.histogram(img, bins=64, range=(0, 1))
    p = hist / hist.sum()
    at = jnp.arange(64)
    w0 = jnp.cumsum(p) - p
    m = jnp.cumsum(p * at) - p * at
    w1 = 1.0 - w0
    v = jnp.where((w0 > 0) & (w1 > 1e-15), w0 * w1 * (m / w0 - ((p * at).sum() - m) / w1) ** 2, -1.0)
    return jnp.argmax(v)


@port
def dft_by_loops(x):
    k = jnp.arange(len(x))
    return jnp.exp(-2j * jnp.pi * k[:, None] * k / len(x)) @ x.astype(complex)


@port
def autocorrelation(x, m):
    x = x - x.mean()
    return jnp.stack([jnp.sum(x[: len(x) - k] * x[k:]) for k in range(m)]) / jnp.sum(x * x)


@port
def least_mean_squares(x, d, mu, n):
    def step(w, i):
        u = lax.dynamic_slice(x, (i - n,), (n,))[::-1]
        e = d[i] - w @ u
        return w + mu * e * u, e

    w, e = lax.scan(step, jnp.zeros(n), jnp.arange(n, len(x)))
    return w, jnp.concatenate([jnp.zeros(n), e])


@port
def kalman_filter_1d(z, q, r):
    def step(carry, z):
        x, p = carry
        p = p + q
        gain = p / (p + r)
        x = x + gain * (z - x)
        return (x, p * (1 - gain)), x

    return lax.scan(step, (0.0, 1.0), z)[1]


@port
def mandelbrot_by_compaction(xmin, xmax, ymin, ymax, xn, yn, maxiter):
    c = jnp.linspace(xmin, xmax, xn) + jnp.linspace(ymin, ymax, yn)[:, None] * 1j

    def step(n, carry):
        z, counts = carry
        near = abs(z) < 2.0
        return jnp.where(near, z * z + c, z), jnp.where(near, n, counts)

    z, counts = lax.fori_loop(0, maxiter, step, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int64)))
    return z, jnp.where(counts == maxiter - 1, 0, counts)


@port
def azimuthal_integration(data, radius, npt):
    counts = jnp.histogram(radius, npt)[0]
    return jnp.histogram(radius, npt, weights=data)[0] / counts


@port
def contour_integral(NR, NM, slab, Ham, int_pts, Y):
    def point(z):
        powers = z ** (slab / 2 - jnp.arange(slab + 1))
        T = jnp.tensordot(powers, Ham[: slab + 1], axes=1)
        X = jnp.linalg.inv(T) if NR == NM else jnp.linalg.solve(T, Y)
        X = jnp.where(abs(z) < 1.0, -X, X)
        return X, z * X

    P0, P1 = jax.vmap(point)(int_pts)
    return P0.sum(axis=0), P1.sum(axis=0)


@port
def vertical_advection(utens_stage, u_stage, wcon, u_pos, utens, dtr_stage):
    K = utens_stage.shape[2]
    moved = [jnp.moveaxis(a, 2, 0) for a in (utens_stage, u_stage, wcon, u_pos, utens)]
    stage, u, w, pos, tens = moved
    mean = 0.25 * (w[:, 1:] + w[:, :-1])
    above = jnp.concatenate([mean[1:], jnp.zeros_like(mean[:1])])
    below = jnp.concatenate([jnp.zeros_like(mean[:1]), -mean[1:]])
    a, c = below * 0.5, above * 0.5
    at = jnp.arange(K)[:, None, None]
    up = jnp.where(at < K - 1, jnp.roll(u, -1, 0) - u, 0.0)
    down = jnp.where(at > 0, jnp.roll(u, 1, 0) - u, 0.0)
    b = dtr_stage - a - c
    d = dtr_stage * pos + tens + stage - a * down - c * up

    def forward(carry, row):
        cc, dd = carry
        a, b, c, d = row
        divided = 1.0 / (b - cc * a)
        cc, dd = c * divided, (d - dd * a) * divided
        return (cc, dd), (cc, dd)

    zero = jnp.zeros_like(stage[0])
    _, (cc, dd) = lax.scan(forward, (zero, zero), (a, b, c, d))

    def backward(column, row):
        c, d, pos = row
        column = d - c * column
        return column, dtr_stage * (column - pos)

    out = lax.scan(backward, zero, (cc.at[-1].set(0.0), dd, pos), reverse=True)[1]
    return jnp.moveaxis(out, 0, 2)


@port
def cavity_flow(nx, ny, nt, nit, u, v, dt, dx, dy, p, rho, nu):
    inner = (slice(1, -1), slice(1, -1))

    def across(a):
        return a[1:-1, 2:] - a[1:-1, :-2]

    def along(a):
        return a[2:, 1:-1] - a[:-2, 1:-1]

    def pressure(_, p, b):
        new = ((p[1:-1, 2:] + p[1:-1, :-2]) * dy**2 + (p[2:, 1:-1] + p[:-2, 1:-1]) * dx**2) / (2 * (dx**2 + dy**2))
        p = p.at[inner].set(new - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[inner])
        p = p.at[:, -1].set(p[:, -2])
        p = p.at[0].set(p[1])
        p = p.at[:, 0].set(p[:, 1])
        return p.at[-1].set(0.0)

    def moved(a, u, v, force):
        c = a[inner]
        return a.at[inner].set(
            c
            - u[inner] * dt / dx * (c - a[1:-1, :-2])
            - v[inner] * dt / dy * (c - a[:-2, 1:-1])
            - force
            + nu * dt / dx**2 * (a[1:-1, 2:] - 2 * c + a[1:-1, :-2])
            + nu * dt / dy**2 * (a[2:, 1:-1] - 2 * c + a[:-2, 1:-1])
        )

    def step(u, v, p, b):
        ux, vy = across(u) / (2 * dx), along(v) / (2 * dy)
        cross = along(u) / (2 * dy) * across(v) / (2 * dx)
        b = b.at[inner].set(rho * (1 / dt * (ux + vy) - ux**2 - 2 * cross - vy**2))
        p = lax.fori_loop(0, nit, lambda i, p: pressure(i, p, b), p)
        u, v = (
            moved(u, u, v, dt / (2 * rho * dx) * across(p)),
            moved(v, u, v, dt / (2 * rho * dy) * along(p)),
        )
        u = u.at[0].set(0.0).at[:, 0].set(0.0).at[:, -1].set(0.0).at[-1].set(1.0)
        return u, v.at[0].set(0.0).at[-1].set(0.0).at[:, 0].set(0.0).at[:, -1].set(0.0), p, b

    return times(nt, step, (u, v, p, jnp.zeros((ny, nx))))[:3]


# ---- numerics ------------------------------------------------------------------------------------------------------------------
@port
def pendulum_by_runge_kutta(f0, n, h):
    def f(y):
        return jnp.stack([y[1], -jnp.sin(y[0]) - 0.1 * y[1]])

    def step(y, _):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        k4 = f(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y

    return lax.scan(step, f0, None, length=n)[1]


@port
def lorenz_by_rows(n, dt):
    def step(r, _):
        x, y, z = r
        new = r + dt * jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 2.667 * z])
        return new, new

    start = jnp.array([0.0, 1.0, 1.05])
    return jnp.concatenate([start[None], lax.scan(step, start, None, length=n)[1]])


@port
def power_iteration(A, n):
    def step(b):
        b = A @ b
        return (b / jnp.linalg.norm(b),)

    (b,) = times(n, step, (jnp.ones(A.shape[0]),))
    return b @ A @ b


@port
def simpson(n):
    y = jnp.sin(jnp.linspace(0, jnp.pi, n + 1))
    return jnp.pi / n / 3 * (y[0] + y[-1] + 4 * y[1:-1:2].sum() + 2 * y[2:-2:2].sum())


@port
def romberg(n):
    column = [0.5 * (jnp.exp(0.0) + jnp.exp(1.0))]
    for i in range(1, n):
        h = 1.0 / 2**i
        column.append(0.5 * column[-1] + h * jnp.exp((2 * jnp.arange(1, 2 ** (i - 1) + 1) - 1) * h).sum())
    row = jnp.stack(column)
    for j in range(1, n):
        row = row[1:] + (row[1:] - row[:-1]) / (4.0**j - 1)
    return row[-1]


@port
def gaussian_elimination(A, b):
    n = len(b)
    at = jnp.arange(n)

    def step(k, m):
        p = jnp.argmax(jnp.where(at >= k, jnp.abs(m[:, k]), -1.0))
        m = m.at[k].set(m[p]).at[p].set(m[k])
        factors = jnp.where(at > k, m[:, k] / m[k, k], 0.0)
        # What is left of the pivot stays as it was.
        return m - factors[:, None] * jnp.where(jnp.arange(n + 1) >= k, m[k], 0.0)

    m = lax.fori_loop(0, n, step, jnp.concatenate([A, b[:, None]], axis=1))

    def back(k, x):
        i = n - 1 - k
        return x.at[i].set((m[i, n] - jnp.where(at > i, m[i, :n], 0.0) @ x) / m[i, i])

    return lax.fori_loop(0, n, back, jnp.zeros(n)), m[:, :n], m[:, n]


@port
def jacobi_eigenvalues(A, sweeps):
    n = A.shape[0]
    first, second = jnp.triu_indices(n, 1)

    def rotate(k, A):
        p, q = first[k % len(first)], second[k % len(first)]
        angle = 0.5 * jnp.arctan2(2 * A[p, q], A[q, q] - A[p, p])
        c, s = jnp.cos(angle), jnp.sin(angle)
        new = A.at[p].set(c * A[p] - s * A[q]).at[q].set(s * A[p] + c * A[q])
        new = new.at[:, p].set(c * new[:, p] - s * new[:, q]).at[:, q].set(s * new[:, p] + c * new[:, q])
        return jnp.where(abs(A[p, q]) < 1e-12, A, new)

    A = lax.fori_loop(0, sweeps * len(first), rotate, A)
    return jnp.sort(jnp.diag(A)), A


@port
def heat_by_lines(u, n, r):
    N = u.shape[0]
    a = jnp.full(N, -r).at[-1].set(0.0)
    b = jnp.full(N, 1 + 2 * r).at[0].set(1.0).at[-1].set(1.0)
    c = jnp.full(N, -r).at[0].set(0.0)

    def column(k, u):
        j = k % (N - 2) + 1
        d = u[:, j] + r * (u[:, j - 1] - 2 * u[:, j] + u[:, j + 1])

        def down(carry, row):
            cp, dp = carry
            a, b, c, d = row
            m = b - a * cp
            return (c / m, (d - a * dp) / m), (c / m, (d - a * dp) / m)

        _, (cp, dp) = lax.scan(down, (0.0, 0.0), (a.at[0].set(0.0), b, c, d))

        def up(x, row):
            x = row[1] - row[0] * x
            return x, x

        return u.at[:, j].set(lax.scan(up, 0.0, (cp.at[-1].set(0.0), dp), reverse=True)[1])

    out = lax.fori_loop(0, n * (N - 2), column, u)
    return out, out


@port
def wave_1d(u, um, c, n):
    def step(u, um):
        return jnp.pad(2 * u[1:-1] - um[1:-1] + c * (u[2:] - 2 * u[1:-1] + u[:-2]), 1), u

    return times(n, step, (u, um))[0]


@port
def burgers_1d(u, n, dt, dx, nu):
    def step(u):
        inner = u[1:-1] - u[1:-1] * dt / dx * (u[1:-1] - u[:-2]) + nu * dt / dx**2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        end = u[0] - u[0] * dt / dx * (u[0] - u[-2]) + nu * dt / dx**2 * (u[1] - 2 * u[0] + u[-2])
        return (jnp.concatenate([end[None], inner, end[None]]),)

    (u,) = times(n, step, (u,))
    return u, u


@port
def epidemic(n, b, g, dt):
    def step(carry, _):
        S, I, R = carry
        dS, dR = -b * S * I, g * I
        new = S + dS * dt, I + (-dS - dR) * dt, R + dR * dt
        return new, jnp.stack(new)

    return lax.scan(step, (0.99, 0.01, 0.0), None, length=n)[1]


@port
def durbin(r):
    n = len(r)
    at = jnp.arange(n)

    def step(k, carry):
        y, alpha, beta = carry
        beta = beta * (1.0 - alpha * alpha)
        flipped = jnp.where(at < k, y[jnp.maximum(k - 1 - at, 0)], 0.0)
        alpha = -(r[k] + r @ jnp.where(at < k, flipped, 0.0)) / beta
        return (y + alpha * flipped).at[k].set(alpha), alpha, beta

    return lax.fori_loop(1, n, step, (jnp.zeros(n).at[0].set(-r[0]), -r[0], 1.0))[0]


@port
def correlation_by_rows(M, float_n, data):
    stddev = jnp.std(data, axis=0)
    data = (data - jnp.mean(data, axis=0)) / (jnp.sqrt(float_n) * jnp.where(stddev <= 0.1, 1.0, stddev))
    return jnp.fill_diagonal(data.T @ data, 1.0, inplace=False), data


@port
def cholesky_by_columns(A):
    at = jnp.arange(A.shape[0])

    def column(j, L):
        new = A[:, j] - L @ L[j]
        pivot = jnp.sqrt(new[j])
        return L.at[:, j].set(jnp.where(at > j, new / pivot, jnp.where(at == j, pivot, 0.0)))

    return lax.fori_loop(0, A.shape[0], column, jnp.zeros_like(A))


@port
def sum_of_outer_products(X, Y):
    return jnp.sum(X[:, :, None] * Y[:, None, :])
