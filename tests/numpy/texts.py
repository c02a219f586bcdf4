"""Programs in the manner of Rosetta Code and of texts about SciPy, computational physics, finance, bioinformatics, images and signals, beside which
test_texts.py runs them compiled."""

import math

import numpy as np

G = np.random.default_rng


# ---- Rosetta ----
def abundant(n):
    s = np.zeros(n + 1, np.int64)
    for d in range(1, n // 2 + 1):
        s[2 * d :: d] += d
    i = np.arange(n + 1)
    return np.sum(s < i) - 1, np.sum(s == i) - 1, np.sum(s > i)


def averages_circular(deg):
    r = np.deg2rad(deg)
    return np.rad2deg(np.arctan2(np.sin(r).mean(), np.cos(r).mean()))


def bell_triangle(n):
    t = np.zeros((n, n), np.int64)
    t[0, 0] = 1
    for i in range(1, n):
        t[i, 0] = t[i - 1, i - 1]
        for j in range(1, i + 1):
            t[i, j] = t[i, j - 1] + t[i - 1, j - 1]
    return t[:, 0]


def barnsley(n, seed):
    r = np.random.default_rng(seed)
    pts = np.empty((n, 2))
    x = y = 0.0
    u = r.random(n)
    for i in range(n):
        if u[i] < 0.01:
            x, y = 0.0, 0.16 * y
        elif u[i] < 0.86:
            x, y = 0.85 * x + 0.04 * y, -0.04 * x + 0.85 * y + 1.6
        elif u[i] < 0.93:
            x, y = 0.2 * x - 0.26 * y, 0.23 * x + 0.22 * y + 1.6
        else:
            x, y = -0.15 * x + 0.28 * y, 0.26 * x + 0.24 * y + 0.44
        pts[i] = x, y
    return pts


def digital_roots(v):
    roots, pers = [], []
    for n in v:
        k = 0
        n = int(n)
        while n > 9:
            s = 0
            while n:
                s += n % 10
                n //= 10
            n = s
            k += 1
        roots.append(n)
        pers.append(k)
    return np.array(roots), np.array(pers)


def happy(limit):
    out = []
    for n in range(1, limit):
        m = n
        while m != 1 and m != 4:
            s = 0
            while m:
                d = m % 10
                s += d * d
                m //= 10
            m = s
        if m == 1:
            out.append(n)
    return np.array(out)


def luhn(cards):
    out = np.zeros(len(cards), bool)
    for k, row in enumerate(cards):
        s = 0
        for i, d in enumerate(row[::-1]):
            d = int(d)
            if i % 2 == 1:
                d *= 2
                if d > 9:
                    d -= 9
            s += d
        out[k] = s % 10 == 0
    return out


def matrix_chain(dims):
    n = len(dims) - 1
    m = np.zeros((n, n), np.int64)
    for l in range(2, n + 1):
        for i in range(n - l + 1):
            j = i + l - 1
            m[i, j] = min(m[i, k] + m[k + 1, j] + dims[i] * dims[k + 1] * dims[j + 1] for k in range(i, j))
    return m[0, n - 1]


def perfect_shuffle(n):
    deck = np.arange(n)
    d = deck.copy()
    k = 0
    while True:
        d = np.concatenate([d[: n // 2, None], d[n // 2 :, None]], axis=1).ravel()
        k += 1
        if np.array_equal(d, deck):
            return k


def pythagorean(n):
    c = 0
    for a in range(1, n):
        b = np.arange(a, n)
        h = np.sqrt(a * a + b * b)
        c += np.count_nonzero((h == np.floor(h)) & (h < n))
    return c


def stirling2(n):
    s = np.zeros((n + 1, n + 1), dtype=np.int64)
    s[0, 0] = 1
    for i in range(1, n + 1):
        s[i, 1:] = s[i - 1, :-1] + np.arange(1, n + 1) * s[i - 1, 1:]
    return s


def zigzag(n):
    a = np.zeros((n, n), int)
    i = j = 0
    for k in range(n * n):
        a[i, j] = k
        if (i + j) % 2 == 0:
            if j == n - 1:
                i += 1
            elif i == 0:
                j += 1
            else:
                i -= 1
                j += 1
        else:
            if i == n - 1:
                j += 1
            elif j == 0:
                i += 1
            else:
                i += 1
                j -= 1
    return a


def sum_digits_base(v, base):
    s = np.zeros_like(v)
    while np.any(v > 0):
        s += v % base
        v = v // base
    return s


def munching_squares(n):
    x, y = np.mgrid[0:n, 0:n]
    return ((x ^ y) & 255).astype(np.uint8)


# ---- SciPy lectures ----
def running_stats(x, w):
    c = np.cumsum(np.insert(x, 0, 0.0))
    c2 = np.cumsum(np.insert(x * x, 0, 0.0))
    m = (c[w:] - c[:-w]) / w
    v = (c2[w:] - c2[:-w]) / w - m * m
    return m, np.sqrt(np.maximum(v, 0))


def random_walkers(n, t, seed):
    r = np.random.RandomState(seed)
    steps = 2 * r.randint(0, 2, (n, t)) - 1
    pos = np.cumsum(steps, axis=1)
    return np.sqrt(np.mean(pos**2, axis=0))


def mandelbrot_masked(n, it):
    x = np.linspace(-2, 1, n)[:, None]
    y = np.linspace(-1.5, 1.5, n)[None, :]
    c = x + 1j * y
    z = np.zeros_like(c)
    count = np.zeros(c.shape, int)
    for _ in range(it):
        m = np.abs(z) <= 2
        z = np.where(m, z * z + c, z)
        count += m
    return count


def polynomial_fit(x, y):
    p = np.polyfit(x, y, 3)
    r = y - np.polyval(p, x)
    return p, np.sqrt(np.mean(r**2))


def distance_table(mileposts):
    d = np.abs(mileposts[:, np.newaxis] - mileposts)
    return d, d.max(axis=1), np.unravel_index(d.argmax(), d.shape)


def sieve_grid(n):
    m = np.ones((n,), dtype=bool)
    m[:2] = False
    for j in range(2, int(np.sqrt(n)) + 1):
        m[j * j :: j] = False
    return np.nonzero(m)[0]


def face_crop(img):
    c = img[30:-30, 30:-30].copy()
    h, w = c.shape
    yy, xx = np.ogrid[:h, :w]
    mask = (xx - w / 2) ** 2 + (yy - h / 2) ** 2 > (min(h, w) / 2) ** 2
    c[mask] = 0
    return c, c.mean()


# ---- physics ----
def verlet_chain(n, steps, dt):
    x = np.arange(n, dtype=float)
    v = np.zeros(n)
    v[0] = 1.0
    e = []

    def force(x):
        f = np.zeros_like(x)
        d = np.diff(x) - 1.0
        f[:-1] += d
        f[1:] -= d
        return f

    f = force(x)
    for _ in range(steps):
        v += 0.5 * dt * f
        x += dt * v
        f = force(x)
        v += 0.5 * dt * f
        e.append(0.5 * np.sum(v * v) + 0.5 * np.sum((np.diff(x) - 1.0) ** 2))
    return x, v, np.array(e)


def schrodinger_cn(n, steps):
    x = np.linspace(-10, 10, n)
    dx = x[1] - x[0]
    dt = 0.01
    psi = np.exp(-((x + 3) ** 2)) * np.exp(1j * 3 * x)
    psi /= np.sqrt(np.sum(np.abs(psi) ** 2) * dx)
    V = 0.5 * x**2 * 0.1
    H = np.diag(1 / dx**2 + V) - 0.5 / dx**2 * (np.eye(n, k=1) + np.eye(n, k=-1))
    A = np.eye(n) + 0.5j * dt * H
    B = np.eye(n) - 0.5j * dt * H
    U = np.linalg.solve(A, B)
    for _ in range(steps):
        psi = U @ psi
    return np.abs(psi) ** 2, np.sum(np.abs(psi) ** 2) * dx


def ising_checkerboard(s, beta, u):
    ii, jj = np.indices(s.shape)
    black = (ii + jj) % 2 == 0
    m = np.empty(len(u))
    for t in range(len(u)):
        for colour in (black, ~black):
            h = np.roll(s, 1, 0) + np.roll(s, -1, 0) + np.roll(s, 1, 1) + np.roll(s, -1, 1)
            flip = colour & (u[t] < np.exp(-2 * beta * s * h))
            s = np.where(flip, -s, s)
        m[t] = s.mean()
    return s, m


def planet_leapfrog(steps, dt):
    r = np.array([1.0, 0.0])
    v = np.array([0.0, 1.1])
    out = np.zeros((steps, 2))
    a = -r / np.linalg.norm(r) ** 3
    for i in range(steps):
        v = v + 0.5 * dt * a
        r = r + dt * v
        a = -r / np.linalg.norm(r) ** 3
        v = v + 0.5 * dt * a
        out[i] = r
    return out


def double_pendulum(y0, steps, dt):
    def rhs(y):
        a, b, p, q = y
        d = a - b
        den = 16 - 9 * math.cos(d) ** 2
        da = 6 * (2 * p - 3 * math.cos(d) * q) / den
        db = 6 * (8 * q - 3 * math.cos(d) * p) / den
        return np.array(
            [
                da,
                db,
                -0.5 * (da * db * math.sin(d) + 3 * 9.81 * math.sin(a)),
                -0.5 * (-da * db * math.sin(d) + 9.81 * math.sin(b)),
            ]
        )

    y = np.array(y0)
    out = [y]
    for _ in range(steps):
        k1 = rhs(y)
        k2 = rhs(y + dt / 2 * k1)
        k3 = rhs(y + dt / 2 * k2)
        k4 = rhs(y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        out.append(y)
    return np.array(out)


def poisson_sor(n, iters):
    u = np.zeros((n, n))
    f = np.ones((n, n))
    h = 1.0 / (n - 1)
    w = 2 / (1 + math.sin(math.pi * h))
    turns = 0
    while turns < iters:
        turns += 1
        res = 0.0
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                r = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + h * h * f[i, j]) - u[i, j]
                u[i, j] += w * r
                res = max(res, abs(r))
        if res < 1e-5:
            break
    return u, turns


def bessel_by_integral(x, n):
    th = np.linspace(0, np.pi, n)
    return np.array([np.trapezoid(np.cos(k * th - xi * np.sin(th)), th) / np.pi for k in range(3) for xi in x])


def random_fields(n, seed):
    r = np.random.default_rng(seed)
    k = np.fft.fftfreq(n)
    kk = np.sqrt(k[:, None] ** 2 + k[None, :] ** 2)
    kk[0, 0] = 1.0
    amp = kk**-1.5
    amp[0, 0] = 0
    w = np.fft.fft2(r.standard_normal((n, n)))
    f = np.real(np.fft.ifft2(w * amp))
    return (f - f.mean()) / f.std()


def percolation(grid):
    n, m = grid.shape
    lab = np.zeros((n, m), np.int64)
    parent = list(range(n * m // 2 + 2))
    nxt = 0
    for i in range(n):
        for j in range(m):
            if not grid[i, j]:
                continue
            up = lab[i - 1, j] if i else 0
            left = lab[i, j - 1] if j else 0
            if up == 0 and left == 0:
                nxt += 1
                lab[i, j] = nxt
            else:
                a, b = int(up), int(left)
                while parent[a] != a:
                    a = parent[a]
                while parent[b] != b:
                    b = parent[b]
                if a and b:
                    parent[max(a, b)] = min(a, b)
                    lab[i, j] = min(a, b)
                else:
                    lab[i, j] = a or b
    return lab, nxt


# ---- finance ----
def heston_paths(n, steps, seed):
    r = np.random.default_rng(seed)
    s = np.full(n, 100.0)
    v = np.full(n, 0.04)
    dt = 1 / steps
    for _ in range(steps):
        z1 = r.standard_normal(n)
        z2 = -0.7 * z1 + np.sqrt(1 - 0.49) * r.standard_normal(n)
        vp = np.maximum(v, 0)
        s = s * np.exp((0.02 - 0.5 * vp) * dt + np.sqrt(vp * dt) * z1)
        v = v + 1.5 * (0.04 - vp) * dt + 0.3 * np.sqrt(vp * dt) * z2
    return s.mean(), np.maximum(s - 100, 0).mean() * np.exp(-0.02)


def bond_yields(prices, coupon, years):
    out = np.empty(len(prices))
    for k, p in enumerate(prices):
        lo, hi = 0.0, 1.0
        for _ in range(60):
            y = 0.5 * (lo + hi)
            t = np.arange(1, years + 1)
            pv = np.sum(coupon / (1 + y) ** t) + 100 / (1 + y) ** years
            if pv > p:
                lo = y
            else:
                hi = y
        out[k] = y
    return out


def markowitz(returns):
    mu = returns.mean(axis=0)
    S = np.cov(returns.T)
    inv = np.linalg.inv(S)
    one = np.ones(len(mu))
    a, b, c = one @ inv @ one, one @ inv @ mu, mu @ inv @ mu
    targets = np.linspace(mu.min(), mu.max(), 20)
    return np.array([math.sqrt((a * t * t - 2 * b * t + c) / (a * c - b * b)) for t in targets]), inv @ one / a


def macd(p, fast, slow, signal):
    def ema(x, n):
        k = 2 / (n + 1)
        out = np.empty_like(x)
        out[0] = x[0]
        for i in range(1, len(x)):
            out[i] = x[i] * k + out[i - 1] * (1 - k)
        return out

    m = ema(p, fast) - ema(p, slow)
    s = ema(m, signal)
    cross = np.where(np.diff(np.sign(m - s)) != 0)[0]
    return m, s, cross


def american_put_lsm(S, K, r, dt):
    n, T = S.shape
    cash = np.maximum(K - S[:, -1], 0)
    for t in range(T - 2, 0, -1):
        cash = cash * np.exp(-r * dt)
        itm = S[:, t] < K
        x = S[itm, t]
        if x.size < 5:
            continue
        c = np.polyfit(x, cash[itm], 2)
        cont = np.polyval(c, x)
        ex = K - x
        cash[itm] = np.where(ex > cont, ex, cash[itm])
    return cash.mean() * np.exp(-r * dt)


def var_es(ret, alpha):
    s = np.sort(ret)
    k = int(len(s) * alpha)
    return -s[k], -s[:k].mean(), np.percentile(ret, [1, 5, 50])


def drawdowns(p):
    peak = np.maximum.accumulate(p)
    dd = p / peak - 1
    end = np.argmin(dd)
    start = np.argmax(p[: end + 1])
    return dd.min(), start, end


def implied_vol(prices, S, K, T, r):
    vol = np.full(prices.shape, 0.2)
    for _ in range(20):
        d1 = (np.log(S / K) + (r + 0.5 * vol**2) * T) / (vol * np.sqrt(T))
        d2 = d1 - vol * np.sqrt(T)
        p = S / (1 + np.exp(-1.702 * d1)) - K * np.exp(-r * T) / (1 + np.exp(-1.702 * d2))
        vega = S * np.sqrt(T) * np.exp(-0.5 * d1**2) / np.sqrt(2 * np.pi)
        step = (p - prices) / np.maximum(vega, 1e-8)
        vol = np.clip(vol - step, 0.01, 3.0)
        if np.max(np.abs(step)) < 1e-10:
            break
    return vol


# ---- bioinformatics ----
def kmer_counts(codes, k):
    idx = np.zeros(len(codes) - k + 1, np.int64)
    for j in range(k):
        idx = idx * 4 + codes[j : len(codes) - k + 1 + j]
    return np.bincount(idx, minlength=4**k)


def profile_most_probable(codes, profile):
    k = profile.shape[1]
    best, at = -1.0, 0
    for i in range(len(codes) - k + 1):
        p = 1.0
        for j in range(k):
            p *= profile[codes[i + j], j]
        if p > best:
            best, at = p, i
    return best, at


def upgma(D):
    D = D.copy()
    n = len(D)
    size = np.ones(n)
    alive = np.ones(n, bool)
    merges = []
    np.fill_diagonal(D, np.inf)
    for _ in range(n - 1):
        i, j = np.unravel_index(np.argmin(D), D.shape)
        i, j = min(i, j), max(i, j)
        merges.append((int(i), int(j), float(D[i, j])))
        new = (D[i] * size[i] + D[j] * size[j]) / (size[i] + size[j])
        D[i] = new
        D[:, i] = new
        D[i, i] = np.inf
        D[j] = np.inf
        D[:, j] = np.inf
        size[i] += size[j]
        alive[j] = False
    return merges


def reverse_complement(codes):
    table = np.array([3, 2, 1, 0])
    return table[codes][::-1]


def wright_fisher(n, gens, p0, seed):
    r = np.random.default_rng(seed)
    p = np.full(100, p0)
    hist = np.empty((gens, 100))
    for g in range(gens):
        p = r.binomial(2 * n, p) / (2 * n)
        hist[g] = p
    return hist, np.mean((p == 0) | (p == 1))


def hmm_posterior(obs, A, B, pi):
    n, m = len(obs), len(pi)
    f = np.zeros((n, m))
    b = np.ones((n, m))
    sc = np.zeros(n)
    f[0] = pi * B[:, obs[0]]
    sc[0] = f[0].sum()
    f[0] /= sc[0]
    for t in range(1, n):
        f[t] = (f[t - 1] @ A) * B[:, obs[t]]
        sc[t] = f[t].sum()
        f[t] /= sc[t]
    for t in range(n - 2, -1, -1):
        b[t] = A @ (B[:, obs[t + 1]] * b[t + 1]) / sc[t + 1]
    return f * b, np.log(sc).sum()


def sir_gillespie_tau(s, i, r, beta, gamma, steps, seed):
    g = np.random.default_rng(seed)
    out = []
    for _ in range(steps):
        n = s + i + r
        a = g.poisson(beta * s * i / n)
        b = g.poisson(gamma * i)
        a, b = min(a, s), min(b, i)
        s, i, r = s - a, i + a - b, r + b
        out.append((s, i, r))
    return np.array(out)


def blosum_score(a, b, m):
    return m[a, b].sum(), np.mean(a == b)


# ---- images and signals ----
def unsharp(img, amount):
    p = np.pad(img, 1, mode="edge")
    blur = sum(p[i : i + img.shape[0], j : j + img.shape[1]] for i in range(3) for j in range(3)) / 9
    return np.clip(img + amount * (img - blur), 0, 255).astype(np.uint8)


def canny_nms(mag, ang):
    h, w = mag.shape
    out = np.zeros_like(mag)
    q = (np.round(ang / (np.pi / 4)) % 4).astype(int)
    for i in range(1, h - 1):
        for j in range(1, w - 1):
            k = q[i, j]
            if k == 0:
                a, b = mag[i, j - 1], mag[i, j + 1]
            elif k == 1:
                a, b = mag[i - 1, j + 1], mag[i + 1, j - 1]
            elif k == 2:
                a, b = mag[i - 1, j], mag[i + 1, j]
            else:
                a, b = mag[i - 1, j - 1], mag[i + 1, j + 1]
            if mag[i, j] >= a and mag[i, j] >= b:
                out[i, j] = mag[i, j]
    return out


def hough_lines(edges, nt):
    ys, xs = np.nonzero(edges)
    th = np.deg2rad(np.linspace(-90, 89, nt))
    d = int(np.ceil(np.hypot(*edges.shape)))
    acc = np.zeros((2 * d, nt), np.int64)
    for k in range(nt):
        rho = np.round(xs * np.cos(th[k]) + ys * np.sin(th[k])).astype(int) + d
        acc[:, k] = np.bincount(rho, minlength=2 * d)
    return acc


def erode_dilate(img, it):
    for _ in range(it):
        p = np.pad(img, 1, constant_values=True)
        img = p[1:-1, 1:-1] & p[:-2, 1:-1] & p[2:, 1:-1] & p[1:-1, :-2] & p[1:-1, 2:]
    for _ in range(it):
        p = np.pad(img, 1)
        img = p[1:-1, 1:-1] | p[:-2, 1:-1] | p[2:, 1:-1] | p[1:-1, :-2] | p[1:-1, 2:]
    return img


def kmeans_colours(px, k, it):
    c = px[:k].astype(float)
    for _ in range(it):
        d = ((px[:, None, :] - c[None]) ** 2).sum(-1)
        lab = d.argmin(1)
        for j in range(k):
            m = lab == j
            if m.any():
                c[j] = px[m].mean(0)
    return c, lab


def goertzel(x, freqs, fs):
    out = []
    for f in freqs:
        k = 2 * math.cos(2 * math.pi * f / fs)
        s1 = s2 = 0.0
        for v in x:
            s0 = v + k * s1 - s2
            s2, s1 = s1, s0
        out.append(s1 * s1 + s2 * s2 - k * s1 * s2)
    return np.array(out)


def stft(x, n, hop):
    w = np.hanning(n)
    return np.array([np.abs(np.fft.rfft(w * x[i : i + n])) for i in range(0, len(x) - n, hop)])


def zero_crossings(x):
    s = np.signbit(x)
    z = np.flatnonzero(s[1:] != s[:-1])
    return z, len(z) / len(x)


def envelope_peaks(x, d):
    p = [i for i in range(d, len(x) - d) if x[i] == x[i - d : i + d + 1].max() and x[i] > 0]
    return np.array(p), x[p]


def lms_echo(x, d, taps, mu):
    w = np.zeros(taps)
    e = np.zeros(len(x))
    for n in range(taps, len(x)):
        xx = x[n - taps : n][::-1]
        y = w @ xx
        e[n] = d[n] - y
        w += 2 * mu * e[n] * xx
    return w, e


def quantise_dither(x, bits, seed):
    r = np.random.default_rng(seed)
    q = 2.0 ** (1 - bits)
    return np.clip(np.round(x / q + r.triangular(-1, 0, 1, x.shape)) * q, -1, 1 - q).astype(np.float32)


def rotate_nearest(img, a):
    h, w = img.shape
    c, s = math.cos(a), math.sin(a)
    y, x = np.mgrid[:h, :w]
    xs = np.rint(c * (x - w / 2) + s * (y - h / 2) + w / 2).astype(int)
    ys = np.rint(-s * (x - w / 2) + c * (y - h / 2) + h / 2).astype(int)
    ok = (xs >= 0) & (xs < w) & (ys >= 0) & (ys < h)
    out = np.zeros_like(img)
    out[ok] = img[ys[ok], xs[ok]]
    return out


def lbp(img):
    c = img[1:-1, 1:-1]
    code = np.zeros(c.shape, np.uint8)
    for k, (dy, dx) in enumerate([(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]):
        code |= (img[dy : dy + c.shape[0], dx : dx + c.shape[1]] >= c).astype(np.uint8) << k
    return np.bincount(code.ravel(), minlength=256)


PROGRAMS = [
    (abundant, lambda: (3000,)),
    (averages_circular, lambda: (G(1).random(1000) * 360,)),
    (bell_triangle, lambda: (25,)),
    (barnsley, lambda: (3000, 1)),
    (digital_roots, lambda: (G(1).integers(1, 10**12, 500),)),
    (happy, lambda: (1000,)),
    (luhn, lambda: (G(1).integers(0, 10, (100, 16)),)),
    (matrix_chain, lambda: (G(1).integers(5, 50, 8),)),
    (perfect_shuffle, lambda: (52,)),
    (pythagorean, lambda: (200,)),
    (stirling2, lambda: (20,)),
    (zigzag, lambda: (40,)),
    (sum_digits_base, lambda: (G(1).integers(0, 10**9, 3000), 7)),
    (munching_squares, lambda: (256,)),
    (running_stats, lambda: (G(1).random(5000), 20)),
    (random_walkers, lambda: (300, 200, 1)),
    (mandelbrot_masked, lambda: (100, 30)),
    (polynomial_fit, lambda: (np.linspace(0, 1, 200), G(1).random(200))),
    (distance_table, lambda: (np.array([0, 198, 303, 736, 871, 1175, 1475, 1544, 1913, 2448]),)),
    (sieve_grid, lambda: (20000,)),
    (face_crop, lambda: (G(1).integers(0, 255, (200, 240)).astype(float),)),
    (verlet_chain, lambda: (30, 300, 0.05)),
    (schrodinger_cn, lambda: (80, 50)),
    (ising_checkerboard, lambda: (G(1).choice([-1, 1], (32, 32)), 0.5, G(2).random((5, 32, 32)))),
    (planet_leapfrog, lambda: (500, 0.01)),
    (double_pendulum, lambda: ([1.0, 2.0, 0.0, 0.0], 40, 0.01)),
    (poisson_sor, lambda: (20, 60)),
    (bessel_by_integral, lambda: (np.linspace(0, 10, 8), 100)),
    (random_fields, lambda: (64, 1)),
    (percolation, lambda: (G(1).random((30, 30)) < 0.6,)),
    (heston_paths, lambda: (1000, 50, 1)),
    (bond_yields, lambda: (np.linspace(80, 110, 4), 5.0, 10)),
    (markowitz, lambda: (G(1).standard_normal((250, 6)) * 0.01,)),
    (macd, lambda: (np.cumsum(G(1).standard_normal(1000)) + 100, 12, 26, 9)),
    (
        american_put_lsm,
        lambda: (100 * np.exp(np.cumsum(G(1).standard_normal((500, 25)) * 0.04, axis=1)), 100.0, 0.03, 0.04),
    ),
    (var_es, lambda: (G(1).standard_normal(2000), 0.05)),
    (drawdowns, lambda: (np.exp(np.cumsum(G(1).standard_normal(2000) * 0.01)),)),
    (implied_vol, lambda: (np.linspace(5, 20, 50), 100.0, np.linspace(90, 110, 50), 1.0, 0.01)),
    (kmer_counts, lambda: (G(1).integers(0, 4, 5000), 5)),
    (profile_most_probable, lambda: (G(1).integers(0, 4, 500), G(2).dirichlet(np.ones(4), 8).T)),
    (upgma, lambda: ((lambda d: d + d.T)(G(1).random((10, 10))),)),
    (reverse_complement, lambda: (G(1).integers(0, 4, 3000),)),
    (wright_fisher, lambda: (50, 20, 0.4, 1)),
    (
        hmm_posterior,
        lambda: (
            G(1).integers(0, 4, 200),
            G(2).dirichlet(np.ones(3), 3),
            G(3).dirichlet(np.ones(4), 3),
            np.ones(3) / 3,
        ),
    ),
    (sir_gillespie_tau, lambda: (990, 10, 0, 0.4, 0.1, 150, 1)),
    (blosum_score, lambda: (G(1).integers(0, 20, 2000), G(2).integers(0, 20, 2000), G(3).integers(-4, 9, (20, 20)))),
    (unsharp, lambda: (G(1).random((128, 128)) * 255, 1.5)),
    (canny_nms, lambda: (G(1).random((60, 60)), G(2).random((60, 60)) * 6 - 3)),
    (hough_lines, lambda: (G(1).random((60, 60)) < 0.05, 90)),
    (erode_dilate, lambda: (G(1).random((128, 128)) < 0.9, 3)),
    (kmeans_colours, lambda: (G(1).integers(0, 255, (1500, 3)), 5, 10)),
    (goertzel, lambda: (G(1).random(500), [50.0, 60.0, 70.0], 1000.0)),
    (stft, lambda: (G(1).random(1500), 256, 64)),
    (zero_crossings, lambda: (G(1).standard_normal(5000),)),
    (envelope_peaks, lambda: (np.sin(np.linspace(0, 60, 1500)) * G(1).random(1500), 5)),
    (lms_echo, lambda: (G(1).standard_normal(1500), G(2).standard_normal(1500), 8, 0.01)),
    (quantise_dither, lambda: (G(1).random(5000) * 2 - 1, 8, 1)),
    (rotate_nearest, lambda: (G(1).integers(0, 255, (100, 120)).astype(np.uint8), 0.5)),
    (lbp, lambda: (G(1).integers(0, 255, (100, 120)).astype(np.uint8),)),
]
