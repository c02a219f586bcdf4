"""Images, signals, stencils in three dimensions, and loops that call linear algebra."""

import numpy as np

from . import program


def _complex(rng, *shape):
    return rng.random(shape) + 1j * rng.random(shape)


def _contour(rng, n):
    return n, 3 * n, 2, _complex(rng, 3, n, n), _complex(rng, 32), _complex(rng, n, 3 * n)


def _columns(rng, n):
    shape = (n + n // 2, n + n // 2, n)
    wide = (shape[0] + 1, *shape[1:])
    return (rng.random(shape), rng.random(shape), rng.random(wide), rng.random(shape), rng.random(shape), 0.15)


def _cavity(n):
    zeros = [np.zeros((n, n)) for _ in range(3)]
    h = 2 / (n - 1)
    return n, n, 25, 5, zeros[0], zeros[1], 0.0025, h, h, zeros[2], 1.0, 0.1


@program(lambda rng, n: (rng.random((n, n)) < 0.3, 30), 8, 64)
def game_of_life_by_rolls(b, n):
    for _ in range(n):
        s = sum(np.roll(np.roll(b, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        b = (s == 3) | b & (s == 2)
    return b


@program(lambda rng, n: (rng.random((n, n)),), 8, 80)
def floyd_steinberg(img):
    """Dithering."""
    h, w = img.shape
    for y in range(h):
        for x in range(w):
            old = img[y, x]
            new = np.round(old)
            img[y, x] = new
            e = old - new
            if x + 1 < w:
                img[y, x + 1] += e * 7 / 16
            if y + 1 < h:
                if x > 0:
                    img[y + 1, x - 1] += e * 3 / 16
                img[y + 1, x] += e * 5 / 16
                if x + 1 < w:
                    img[y + 1, x + 1] += e / 16
    return img


@program(lambda rng, n: (rng.random((n, n)),), 12, 100)
def otsu_threshold(img):
    hist, edges = np.histogram(img, bins=64, range=(0, 1))
    p = hist / hist.sum()
    best, thr = (-1.0, 0)
    for t in range(1, 64):
        w0, w1 = (p[:t].sum(), p[t:].sum())
        if w0 == 0 or w1 == 0:
            continue
        m0 = (p[:t] * np.arange(t)).sum() / w0
        m1 = (p[t:] * np.arange(t, 64)).sum() / w1
        v = w0 * w1 * (m0 - m1) ** 2
        if v > best:
            best, thr = (v, t)
    return thr


@program(lambda rng, n: (rng.random(n),), 8, 80)
def dft_by_loops(x):
    N = len(x)
    X = np.zeros(N, dtype=complex)
    for k in range(N):
        for n in range(N):
            X[k] += x[n] * np.exp(-2j * np.pi * k * n / N)
    return X


@program(lambda rng, n: (rng.random(n), 10), 30, 2000)
def autocorrelation(x, m):
    x = x - x.mean()
    r = np.zeros(m)
    for k in range(m):
        r[k] = np.sum(x[: len(x) - k] * x[k:]) / np.sum(x * x)
    return r


@program(lambda rng, n: (rng.random(n), rng.random(n), 0.01, 8), 30, 2000)
def least_mean_squares(x, d, mu, n):
    """An adaptive filter."""
    w = np.zeros(n)
    e = np.zeros(len(x))
    for i in range(n, len(x)):
        u = x[i - n : i][::-1]
        e[i] = d[i] - w @ u
        w += mu * e[i] * u
    return (w, e)


@program(lambda rng, n: (rng.random(n), 1e-4, 0.1), 20, 3000)
def kalman_filter_1d(z, q, r):
    x, p = (0.0, 1.0)
    out = np.empty(len(z))
    for k in range(len(z)):
        p += q
        K = p / (p + r)
        x += K * (z[k] - x)
        p *= 1 - K
        out[k] = x
    return out


@program(lambda rng, n: (-1.75, 0.25, -1.0, 1.0, n, n, 40), 8, 125)
def mandelbrot_by_compaction(xmin, xmax, ymin, ymax, xn, yn, maxiter, horizon=2.0):
    X = np.linspace(xmin, xmax, xn, dtype=np.float64)
    Y = np.linspace(ymin, ymax, yn, dtype=np.float64)
    C = X + Y[:, None] * 1j
    N = np.zeros(C.shape, dtype=np.int64)
    Z = np.zeros(C.shape, dtype=np.complex128)
    for n in range(maxiter):
        I = np.less(abs(Z), horizon)
        N[I] = n
        Z[I] = Z[I] ** 2 + C[I]
    N[N == maxiter - 1] = 0
    return (Z, N)


@program(lambda rng, n: (rng.random(n), rng.random(n), 20), 500, 400000)
def azimuthal_integration(data, radius, npt):
    histu = np.histogram(radius, npt)[0]
    histw = np.histogram(radius, npt, weights=data)[0]
    return histw / histu


@program(lambda rng, n: _contour(rng, n), 4, 50)
def contour_integral(NR, NM, slab, Ham, int_pts, Y):
    """Systems of complex numbers at points of a contour."""
    P0 = np.zeros((NR, NM), dtype=np.complex128)
    P1 = np.zeros((NR, NM), dtype=np.complex128)
    for z in int_pts:
        Tz = np.zeros((NR, NR), dtype=np.complex128)
        for n in range(slab + 1):
            zz = np.power(z, slab / 2 - n)
            Tz += zz * Ham[n]
        if NR == NM:
            X = np.linalg.inv(Tz)
        else:
            X = np.linalg.solve(Tz, Y)
        if abs(z) < 1.0:
            X = -X
        P0 += X
        P1 += z * X
    return (P0, P1)


@program(lambda rng, n: _columns(rng, n), 6, 40)
def vertical_advection(utens_stage, u_stage, wcon, u_pos, utens, dtr_stage):
    BET_M = 0.5
    BET_P = 0.5
    I, J, K = (utens_stage.shape[0], utens_stage.shape[1], utens_stage.shape[2])
    ccol = np.ndarray((I, J, K), dtype=utens_stage.dtype)
    dcol = np.ndarray((I, J, K), dtype=utens_stage.dtype)
    data_col = np.ndarray((I, J), dtype=utens_stage.dtype)
    for k in range(1):
        gcv = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1])
        cs = gcv * BET_M
        ccol[:, :, k] = gcv * BET_P
        bcol = dtr_stage - ccol[:, :, k]
        correction_term = -cs * (u_stage[:, :, k + 1] - u_stage[:, :, k])
        dcol[:, :, k] = dtr_stage * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] + correction_term
        divided = 1.0 / bcol
        ccol[:, :, k] = ccol[:, :, k] * divided
        dcol[:, :, k] = dcol[:, :, k] * divided
    for k in range(1, K - 1):
        gav = -0.25 * (wcon[1:, :, k] + wcon[:-1, :, k])
        gcv = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1])
        as_ = gav * BET_M
        cs = gcv * BET_M
        acol = gav * BET_P
        ccol[:, :, k] = gcv * BET_P
        bcol = dtr_stage - acol - ccol[:, :, k]
        correction_term = -as_ * (u_stage[:, :, k - 1] - u_stage[:, :, k]) - cs * (
            u_stage[:, :, k + 1] - u_stage[:, :, k]
        )
        dcol[:, :, k] = dtr_stage * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] + correction_term
        divided = 1.0 / (bcol - ccol[:, :, k - 1] * acol)
        ccol[:, :, k] = ccol[:, :, k] * divided
        dcol[:, :, k] = (dcol[:, :, k] - dcol[:, :, k - 1] * acol) * divided
    for k in range(K - 1, K):
        gav = -0.25 * (wcon[1:, :, k] + wcon[:-1, :, k])
        as_ = gav * BET_M
        acol = gav * BET_P
        bcol = dtr_stage - acol
        correction_term = -as_ * (u_stage[:, :, k - 1] - u_stage[:, :, k])
        dcol[:, :, k] = dtr_stage * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] + correction_term
        divided = 1.0 / (bcol - ccol[:, :, k - 1] * acol)
        dcol[:, :, k] = (dcol[:, :, k] - dcol[:, :, k - 1] * acol) * divided
    for k in range(K - 1, K - 2, -1):
        datacol = dcol[:, :, k]
        data_col[:] = datacol
        utens_stage[:, :, k] = dtr_stage * (datacol - u_pos[:, :, k])
    for k in range(K - 2, -1, -1):
        datacol = dcol[:, :, k] - ccol[:, :, k] * data_col[:, :]
        data_col[:] = datacol
        utens_stage[:, :, k] = dtr_stage * (datacol - u_pos[:, :, k])


def _build_up_b(b, rho, dt, u, v, dx, dy):
    b[1:-1, 1:-1] = rho * (
        1 / dt * ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx) + (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy))
        - ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx)) ** 2
        - 2 * ((u[2:, 1:-1] - u[0:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, 0:-2]) / (2 * dx))
        - ((v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy)) ** 2
    )


def _pressure_poisson(nit, p, dx, dy, b):
    pn = np.empty_like(p)
    pn = p.copy()
    for _q in range(nit):
        pn = p.copy()
        p[1:-1, 1:-1] = ((pn[1:-1, 2:] + pn[1:-1, 0:-2]) * dy**2 + (pn[2:, 1:-1] + pn[0:-2, 1:-1]) * dx**2) / (
            2 * (dx**2 + dy**2)
        ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0


@program(lambda rng, n: _cavity(n), 9, 61)
def cavity_flow(nx, ny, nt, nit, u, v, dt, dx, dy, p, rho, nu):
    """Flow in a cavity by pressure corrections."""
    un = np.empty_like(u)
    vn = np.empty_like(v)
    b = np.zeros((ny, nx))
    for _n in range(nt):
        un = u.copy()
        vn = v.copy()
        _build_up_b(b, rho, dt, u, v, dx, dy)
        _pressure_poisson(nit, p, dx, dy, b)
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[0:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, 0:-2])
            + nu
            * (
                dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, 0:-2])
                + dt / dy**2 * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[0:-2, 1:-1])
            )
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * dt / dy * (vn[1:-1, 1:-1] - vn[0:-2, 1:-1])
            - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[0:-2, 1:-1])
            + nu
            * (
                dt / dx**2 * (vn[1:-1, 2:] - 2 * vn[1:-1, 1:-1] + vn[1:-1, 0:-2])
                + dt / dy**2 * (vn[2:, 1:-1] - 2 * vn[1:-1, 1:-1] + vn[0:-2, 1:-1])
            )
        )
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = 0
        v[-1, :] = 0
        v[:, 0] = 0
        v[:, -1] = 0
