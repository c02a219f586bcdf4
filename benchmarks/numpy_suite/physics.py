"""Particles, waves, prices."""

import numpy as np

from . import program


@program(lambda rng, n: (rng.random((n, 1)), rng.random((n, 3)), rng.random((n, 3)), 10), 6, 250)
def nbody(mass, pos, vel, steps):
    dt, softening = 0.01, 0.1
    for _ in range(steps):
        x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
        dx, dy, dz = x.T - x, y.T - y, z.T - z
        inv = (dx**2 + dy**2 + dz**2 + softening**2) ** -1.5
        acc = np.hstack([(dx * inv) @ mass, (dy * inv) @ mass, (dz * inv) @ mass])
        vel += acc * dt
        pos += vel * dt


@program(lambda rng, n: (rng.random((n, 3)) * 3.0, np.zeros((n, 3))), 8, 400)
def lennard_jones_by_pairs(r, force):
    """Pairs of particles in a double loop, a cut-off as an if on data."""
    n, energy = r.shape[0], 0.0
    for i in range(n):
        for j in range(i + 1, n):
            dx, dy, dz = r[i, 0] - r[j, 0], r[i, 1] - r[j, 1], r[i, 2] - r[j, 2]
            d2 = dx * dx + dy * dy + dz * dz
            if d2 < 1.0:
                s6 = 1.0 / ((d2 + 0.01) * (d2 + 0.01) * (d2 + 0.01))
                energy += 4.0 * (s6 * s6 - s6)
                f = 24.0 * (2.0 * s6 * s6 - s6) / (d2 + 0.01)
                force[i, 0] += f * dx
                force[i, 1] += f * dy
                force[i, 2] += f * dz
                force[j, 0] -= f * dx
                force[j, 1] -= f * dy
                force[j, 2] -= f * dz
    return energy


_VELOCITIES = np.array([[1, 1], [1, 0], [1, -1], [0, 1], [0, 0], [0, -1], [-1, 1], [-1, 0], [-1, -1]])
_WEIGHTS = np.array([1 / 36, 1 / 9, 1 / 36, 1 / 9, 4 / 9, 1 / 9, 1 / 36, 1 / 9, 1 / 36])


@program(lambda rng, n: (1 + 0.1 * rng.random((9, n, n)), 10), 8, 160)
def lattice_boltzmann(f, steps):
    for _ in range(steps):
        rho = np.sum(f, axis=0)
        ux = np.tensordot(_VELOCITIES[:, 0].astype(f.dtype), f, axes=1) / rho
        uy = np.tensordot(_VELOCITIES[:, 1].astype(f.dtype), f, axes=1) / rho
        square = 1.5 * (ux**2 + uy**2)
        for i in range(9):
            cu = 3.0 * (_VELOCITIES[i, 0] * ux + _VELOCITIES[i, 1] * uy)
            equilibrium = rho * _WEIGHTS[i] * (1 + cu + 0.5 * cu**2 - square)
            f[i] += 0.6 * (equilibrium - f[i])
            f[i] = np.roll(np.roll(f[i], _VELOCITIES[i, 0], axis=0), _VELOCITIES[i, 1], axis=1)
    return np.sum(f, axis=0)


def _options(rng, n):
    return 10 + 20 * rng.random(n), 10 + 20 * rng.random(n), 0.5 + rng.random(n), 0.1, 0.2


def _normal_cdf(x):
    """Abramowitz and Stegun 26.2.17"""
    k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    poly = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    w = 1.0 - np.exp(-0.5 * x * x) * 0.3989422804014327 * poly
    return np.where(x < 0, 1.0 - w, w)


@program(_options, 16, 1_000_000, functional=True)
def black_scholes(price, strike, time, rate, volatility):
    root = volatility * np.sqrt(time)
    d1 = (np.log(price / strike) + (rate + 0.5 * volatility * volatility) * time) / root
    d2 = d1 - root
    discounted = strike * np.exp(-rate * time)
    call = price * _normal_cdf(d1) - discounted * _normal_cdf(d2)
    return call, call - price + discounted


@program(lambda rng, n: (rng.standard_normal((n, 64)), 100.0, 0.05, 0.2), 8, 20_000, functional=True)
def asian_option(z, start, rate, volatility):
    dt = 1.0 / z.shape[1]
    steps = (rate - 0.5 * volatility**2) * dt + volatility * np.sqrt(dt) * z
    paths = start * np.exp(np.cumsum(steps, axis=1))
    payoff = np.maximum(np.mean(paths, axis=1) - start, 0.0)
    return np.exp(-rate) * np.mean(payoff)


@program(lambda rng, n: (rng.random((n, 2)),), 50, 200_000)
def pi_by_points(points):
    inside = 0
    for i in range(points.shape[0]):
        x, y = points[i, 0], points[i, 1]
        if x * x + y * y <= 1.0:
            inside += 1
    return 4.0 * inside / points.shape[0]


@program(lambda rng, n: (rng.random((n, n)) * 0.02, rng.random((4 * n, n)) * 1.2), 5, 200)
def spiking_network(weights, current):
    """Leaky integrate-and-fire neurons: what fires depends on data, step by step."""
    steps, n = current.shape
    v, spikes, count = np.zeros(n), np.zeros(n), np.zeros(n)
    for t in range(steps):
        v = 0.9 * v + current[t] * 0.2 + weights @ spikes
        fired = v > 1.0
        spikes = fired.astype(v.dtype)
        v = np.where(fired, 0.0, v)
        count += spikes
    return count


@program(lambda rng, n: (np.where(rng.random((n, n)) < 0.5, -1, 1), rng.random((2, n, n)), 0.4), 6, 120)
def ising(spins, draws, beta):
    """Metropolis sweeps over a periodic lattice, random numbers given."""
    n = spins.shape[0]
    for sweep in range(draws.shape[0]):
        for i in range(n):
            for j in range(n):
                around = spins[(i - 1) % n, j] + spins[(i + 1) % n, j] + spins[i, (j - 1) % n] + spins[i, (j + 1) % n]
                change = 2 * spins[i, j] * around
                if change <= 0 or draws[sweep, i, j] < np.exp(-beta * change):
                    spins[i, j] = -spins[i, j]
    return spins.sum()


@program(lambda rng, n: (1.0, 1.0, 1.0, n), 20, 200_000)
def lorenz(x, y, z, steps):
    """Explicit Euler on three numbers: no arrays at all."""
    dt = 0.001
    for _ in range(steps):
        dx = 10.0 * (y - x)
        dy = x * (28.0 - z) - y
        dz = x * y - 8.0 / 3.0 * z
        x, y, z = x + dt * dx, y + dt * dy, z + dt * dz
    return x, y, z
