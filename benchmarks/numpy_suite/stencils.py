"""Stencils: array slices, and loops over elements."""

import numpy as np

from . import program


def _field(rng, n):
    return rng.random((n, n))


@program(lambda rng, n: (50, rng.random(n), rng.random(n)), 20, 100_000)
def jacobi_1d(steps, a, b):
    for _ in range(1, steps):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])


@program(lambda rng, n: (20, _field(rng, n), _field(rng, n)), 12, 700)
def jacobi_2d(steps, a, b):
    for _ in range(1, steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])


@program(lambda rng, n: (10, rng.random((n, n, n))), 8, 70)
def heat_3d(steps, a):
    for _ in range(steps):
        inner = a[1:-1, 1:-1, 1:-1]
        a[1:-1, 1:-1, 1:-1] = (
            0.125 * (a[2:, 1:-1, 1:-1] - 2.0 * inner + a[:-2, 1:-1, 1:-1])
            + 0.125 * (a[1:-1, 2:, 1:-1] - 2.0 * inner + a[1:-1, :-2, 1:-1])
            + 0.125 * (a[1:-1, 1:-1, 2:] - 2.0 * inner + a[1:-1, 1:-1, :-2])
            + inner
        )


@program(lambda rng, n: (4, _field(rng, n)), 6, 120)
def seidel_2d(steps, a):
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = (
                    a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1] + a[i, j - 1] + a[i, j]
                    + a[i, j + 1] + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                ) / 9.0  # fmt: skip


@program(lambda rng, n: (20, _field(rng, n), _field(rng, n), _field(rng, n), rng.random(20)), 10, 500)
def fdtd_2d(steps, ex, ey, hz, fict):
    for t in range(steps):
        ey[0, :] = fict[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


@program(lambda rng, n: (rng.random((n + 4, n + 4, 32)), np.empty((n, n, 32)), rng.random((n, n, 32))), 6, 96)
def horizontal_diffusion(field, out, coefficient):
    i, j = out.shape[0], out.shape[1]
    lap = 4.0 * field[1 : i + 3, 1 : j + 3, :] - (
        field[2 : i + 4, 1 : j + 3, :] + field[0 : i + 2, 1 : j + 3, :] + field[1 : i + 3, 2 : j + 4, :]
        + field[1 : i + 3, 0 : j + 2, :]
    )  # fmt: skip
    flux = lap[1:, 1 : j + 1, :] - lap[:-1, 1 : j + 1, :]
    fx = np.where(flux * (field[2 : i + 3, 2 : j + 2, :] - field[1 : i + 2, 2 : j + 2, :]) > 0, 0, flux)
    flux = lap[1 : i + 1, 1:, :] - lap[1 : i + 1, :-1, :]
    fy = np.where(flux * (field[2 : i + 2, 2 : j + 3, :] - field[2 : i + 2, 1 : j + 2, :]) > 0, 0, flux)
    out[:, :, :] = field[2 : i + 2, 2 : j + 2, :] - coefficient * (fx[1:] - fx[:-1] + fy[:, 1:] - fy[:, :-1])


@program(lambda rng, n: (5, (rng.random((n, n)) < 0.3).astype(np.uint8)), 12, 800)
def game_of_life(steps, z):
    for _ in range(steps):
        n = z[:-2, :-2] + z[:-2, 1:-1] + z[:-2, 2:] + z[1:-1, :-2] + z[1:-1, 2:] + z[2:, :-2] + z[2:, 1:-1] + z[2:, 2:]
        birth = (n == 3) & (z[1:-1, 1:-1] == 0)
        survive = ((n == 2) | (n == 3)) & (z[1:-1, 1:-1] == 1)
        z[...] = 0
        z[1:-1, 1:-1][birth | survive] = 1
    return int(z.sum())


@program(lambda rng, n: (20, _field(rng, n), _field(rng, n)), 10, 300)
def gray_scott(steps, u, v):
    for _ in range(steps):
        lu = u[:-2, 1:-1] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1] + u[1:-1, 2:] + u[2:, 1:-1]
        lv = v[:-2, 1:-1] + v[1:-1, :-2] - 4 * v[1:-1, 1:-1] + v[1:-1, 2:] + v[2:, 1:-1]
        uvv = u[1:-1, 1:-1] * v[1:-1, 1:-1] ** 2
        u[1:-1, 1:-1] += 0.16 * lu - uvv + 0.035 * (1 - u[1:-1, 1:-1])
        v[1:-1, 1:-1] += 0.08 * lv + uvv - 0.1 * v[1:-1, 1:-1]


@program(lambda rng, n: (_field(rng, n), 1e-9, 60), 6, 50)
def laplace_until_still(u, tolerance, limit):
    """Sweeps until the largest change is small: a while loop on data."""
    n = u.shape[0]
    change, sweeps = 1.0, 0
    while change > tolerance and sweeps < limit:
        change = 0.0
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        sweeps += 1
    return sweeps
