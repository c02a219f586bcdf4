"""Linear algebra written out in loops."""

import numpy as np

from . import program


def _positive_definite(rng, n):
    a = rng.random((n, n))
    return a @ a.T + n * np.eye(n)


@program(lambda rng, n: (_positive_definite(rng, n),), 6, 200)
def lu(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]


@program(lambda rng, n: (_positive_definite(rng, n),), 8, 250)
def cholesky(a):
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, a.shape[0]):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])


@program(lambda rng, n: (rng.random((n, n)) + np.eye(n),), 6, 160)
def gram_schmidt(a):
    q, r = np.zeros_like(a), np.zeros((a.shape[1], a.shape[1]), dtype=a.dtype)
    for k in range(a.shape[1]):
        norm = np.dot(a[:, k], a[:, k])
        r[k, k] = np.sqrt(norm)
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


@program(lambda rng, n: (np.tril(rng.random((n, n))) + n * np.eye(n), np.zeros(n), rng.random(n)), 8, 1500)
def triangular_solve(low, x, b):
    for i in range(low.shape[0]):
        x[i] = (b[i] - low[i, :i] @ x[:i]) / low[i, i]


@program(lambda rng, n: (rng.random(n), 0.5 + rng.random(n), 2.5 + rng.random(n), 0.5 * rng.random(n)), 10, 200_000)
def thomas(d, low, diagonal, up):
    """A tridiagonal system: two scalar recurrences."""
    n = len(d)
    c, x = np.empty(n), np.empty(n)
    c[0] = up[0] / diagonal[0]
    x[0] = d[0] / diagonal[0]
    for i in range(1, n):
        m = 1.0 / (diagonal[i] - low[i] * c[i - 1])
        c[i] = up[i] * m
        x[i] = (d[i] - low[i] * x[i - 1]) * m
    for i in range(n - 2, -1, -1):
        x[i] -= c[i] * x[i + 1]
    return x


@program(lambda rng, n: (_positive_definite(rng, n), rng.random(n), 30), 8, 800)
def conjugate_gradient(a, b, steps):
    x = np.zeros_like(b)
    r = b - a @ x
    p = r
    rs = r @ r
    for _ in range(steps):
        ap = a @ p
        alpha = rs / (p @ ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = r @ r
        p = r + (new / rs) * p
        rs = new
    return x


@program(lambda rng, n: (rng.random((n, n)), rng.random((n, n)), rng.random((n, n))), 5, 80)
def matrix_product_by_elements(a, b, c):
    n, m, k = a.shape[0], b.shape[1], a.shape[1]
    for i in range(n):
        for j in range(m):
            s = 0.0
            for l in range(k):
                s += a[i, l] * b[l, j]
            c[i, j] = s
    return c


@program(lambda rng, n: (10, rng.random((n, n))), 6, 120)
def adi(steps, u):
    """Alternating directions: recurrences along rows, then along columns."""
    n = u.shape[0]
    v, p, q = np.zeros_like(u), np.zeros_like(u), np.zeros_like(u)
    a, b, d, f = -0.4, 1.8, -0.3, -0.2
    for _ in range(steps):
        v[0, 1 : n - 1] = 1.0
        p[1 : n - 1, 0] = 0.0
        q[1 : n - 1, 0] = v[0, 1 : n - 1]
        for j in range(1, n - 1):
            p[1 : n - 1, j] = -a / (a * p[1 : n - 1, j - 1] + b)
            q[1 : n - 1, j] = (
                -d * u[j, 0 : n - 2] + (1.0 + 2.0 * d) * u[j, 1 : n - 1] - f * u[j, 2:n] - a * q[1 : n - 1, j - 1]
            ) / (a * p[1 : n - 1, j - 1] + b)
        v[n - 1, 1 : n - 1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1 : n - 1] = p[1 : n - 1, j] * v[j + 1, 1 : n - 1] + q[1 : n - 1, j]
        u[1 : n - 1, 1 : n - 1] = v[1 : n - 1, 1 : n - 1]
