"""Integration, differential equations, linear algebra, as texts of numerical mathematics have them."""

import numpy as np

from . import program


def _definite(rng, n):
    a = rng.standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


@program(lambda rng, n: (np.array([1.0, 0.0]), n, 0.01), 20, 500)
def pendulum_by_runge_kutta(f0, n, h):
    y = f0.copy()
    out = np.zeros((n, len(y)))

    def f(y):
        x, v = y
        return np.array([v, -np.sin(x) - 0.1 * v])

    for i in range(n):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        k4 = f(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        out[i] = y
    return out


@program(lambda rng, n: (n, 0.01), 20, 2000)
def lorenz_by_rows(n, dt):
    xyz = np.empty((n + 1, 3))
    xyz[0] = (0.0, 1.0, 1.05)
    for i in range(n):
        x, y, z = xyz[i]
        xyz[i + 1] = xyz[i] + dt * np.array([10 * (y - x), x * (28 - z) - y, x * y - 2.667 * z])
    return xyz


@program(lambda rng, n: (_definite(rng, n), 100), 8, 60)
def power_iteration(A, n):
    """The greatest eigenvalue."""
    b = np.ones(A.shape[0])
    for _ in range(n):
        b = A @ b
        b /= np.linalg.norm(b)
    return b @ A @ b


@program(lambda rng, n: (n,), 10, 1000)
def simpson(n):
    """The integral of the sine."""
    x = np.linspace(0, np.pi, n + 1)
    y = np.sin(x)
    h = np.pi / n
    return h / 3 * (y[0] + y[-1] + 4 * y[1:-1:2].sum() + 2 * y[2:-2:2].sum())


@program(lambda rng, n: (n,), 5, 12)
def romberg(n):
    """The integral of the exponential function."""
    R = np.zeros((n, n))
    a, b = (0.0, 1.0)
    R[0, 0] = 0.5 * (b - a) * (np.exp(a) + np.exp(b))
    for i in range(1, n):
        h = (b - a) / 2**i
        s = 0.0
        for k in range(1, 2 ** (i - 1) + 1):
            s += np.exp(a + (2 * k - 1) * h)
        R[i, 0] = 0.5 * R[i - 1, 0] + h * s
        for j in range(1, i + 1):
            R[i, j] = R[i, j - 1] + (R[i, j - 1] - R[i - 1, j - 1]) / (4**j - 1)
    return R[-1, -1]


@program(lambda rng, n: (_definite(rng, n), rng.random(n)), 6, 50)
def gaussian_elimination(A, b):
    """With pivots."""
    n = len(b)
    for k in range(n):
        p = k + np.argmax(np.abs(A[k:, k]))
        if p != k:
            A[[k, p]] = A[[p, k]]
            b[[k, p]] = b[[p, k]]
        for i in range(k + 1, n):
            f = A[i, k] / A[k, k]
            A[i, k:] -= f * A[k, k:]
            b[i] -= f * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x


@program(lambda rng, n: (_definite(rng, n), 6), 4, 12)
def jacobi_eigenvalues(A, sweeps):
    """By rotations."""
    n = A.shape[0]
    V = np.eye(n)
    for _ in range(sweeps):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(A[p, q]) < 1e-12:
                    continue
                th = 0.5 * np.arctan2(2 * A[p, q], A[q, q] - A[p, p])
                c, s = (np.cos(th), np.sin(th))
                Ap, Aq = (A[p].copy(), A[q].copy())
                A[p] = c * Ap - s * Aq
                A[q] = s * Ap + c * Aq
                Ap, Aq = (A[:, p].copy(), A[:, q].copy())
                A[:, p] = c * Ap - s * Aq
                A[:, q] = s * Ap + c * Aq
                Vp = V[:, p].copy()
                V[:, p] = c * Vp - s * V[:, q]
                V[:, q] = s * Vp + c * V[:, q]
    return np.sort(np.diag(A))


@program(lambda rng, n: (rng.random((n, n)), 3, 0.3), 8, 40)
def heat_by_lines(u, n, r):
    """Tridiagonal systems along columns."""
    N = u.shape[0]
    a = -r * np.ones(N)
    b = (1 + 2 * r) * np.ones(N)
    c = a.copy()
    b[0] = b[-1] = 1
    c[0] = a[-1] = 0
    for _ in range(n):
        for j in range(1, N - 1):
            d = u[:, j] + r * (u[:, j - 1] - 2 * u[:, j] + u[:, j + 1])
            cp = np.zeros(N)
            dp = np.zeros(N)
            cp[0] = c[0] / b[0]
            dp[0] = d[0] / b[0]
            for i in range(1, N):
                m = b[i] - a[i] * cp[i - 1]
                cp[i] = c[i] / m
                dp[i] = (d[i] - a[i] * dp[i - 1]) / m
            for i in range(N - 2, -1, -1):
                dp[i] -= cp[i] * dp[i + 1]
            u[:, j] = dp
    return u


@program(lambda rng, n: (rng.random(n), rng.random(n), 0.5, 200), 12, 200)
def wave_1d(u, um, c, n):
    for _ in range(n):
        un = np.zeros_like(u)
        un[1:-1] = 2 * u[1:-1] - um[1:-1] + c * (u[2:] - 2 * u[1:-1] + u[:-2])
        um, u = (u, un)
    return u


@program(lambda rng, n: (rng.random(n) + 1, 200, 1e-4, 0.05, 0.07), 12, 200)
def burgers_1d(u, n, dt, dx, nu):
    for _ in range(n):
        un = u.copy()
        u[1:-1] = (
            un[1:-1] - un[1:-1] * dt / dx * (un[1:-1] - un[:-2]) + nu * dt / dx**2 * (un[2:] - 2 * un[1:-1] + un[:-2])
        )
        u[0] = un[0] - un[0] * dt / dx * (un[0] - un[-2]) + nu * dt / dx**2 * (un[1] - 2 * un[0] + un[-2])
        u[-1] = u[0]
    return u


@program(lambda rng, n: (n, 0.3, 0.1, 0.1), 20, 2000)
def epidemic(n, b, g, dt):
    S, I, R = (0.99, 0.01, 0.0)
    out = np.empty((n, 3))
    for t in range(n):
        dS = -b * S * I
        dR = g * I
        S, I, R = (S + dS * dt, I + (-dS - dR) * dt, R + dR * dt)
        out[t] = (S, I, R)
    return out


@program(lambda rng, n: (n, 1), 40, 3000)
def metropolis(n, seed):
    """Normal numbers by a random walk."""
    np.random.seed(seed)
    x = 0.0
    out = np.empty(n)
    for i in range(n):
        xp = x + np.random.normal(0, 1)
        if np.log(np.random.rand()) < (x * x - xp * xp) / 2:
            x = xp
        out[i] = x
    return (out.mean(), out.std())


@program(lambda rng, n: (0.5 ** np.arange(1.0, n + 1) * rng.random(n),), 12, 1000)
def durbin(r):
    """A Toeplitz system by Durbin's recursion."""
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


@program(lambda rng, n: (n, 1.2 * n, rng.random((n + n // 5, n))), 10, 300)
def correlation_by_rows(M, float_n, data):
    mean = np.mean(data, axis=0)
    stddev = np.std(data, axis=0)
    stddev[stddev <= 0.1] = 1.0
    data -= mean
    data /= np.sqrt(float_n) * stddev
    corr = np.eye(M, dtype=data.dtype)
    for i in range(M - 1):
        corr[i + 1 : M, i] = corr[i, i + 1 : M] = data[:, i] @ data[:, i + 1 : M]
    return corr


@program(lambda rng, n: (_definite(rng, n),), 8, 200)
def cholesky_by_columns(A):
    n = A.shape[0]
    L = np.zeros_like(A)
    for j in range(n):
        L[j, j] = np.sqrt(A[j, j] - np.dot(L[j, :j], L[j, :j]))
        L[j + 1 :, j] = (A[j + 1 :, j] - L[j + 1 :, :j] @ L[j, :j]) / L[j, j]
    return L


@program(lambda rng, n: (rng.random((16 * n, n)), rng.random((16 * n, n))), 4, 64)
def sum_of_outer_products(X, Y):
    return np.sum(X[:, :, None] * Y[:, None, :])
