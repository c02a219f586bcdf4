"""Programs with dictionaries, sets, complex numbers, random draws, bytes and loops that end when they converge."""

import cmath
import math

import numpy as np

G = np.random.default_rng


def ri(*s, lo=0, hi=100, dt=np.int64):
    return G(1).integers(lo, hi, s).astype(dt)


def histogram(a):
    d = {}
    for x in a:
        k = int(x)
        d[k] = d.get(k, 0) + 1
    return d


def histogram_np(a):
    d = {}
    for x in a:
        if x in d:
            d[x] += 1
        else:
            d[x] = 1
    return d


def two_sum(a, t):
    seen = {}
    for i in range(len(a)):
        v = int(a[i])
        if t - v in seen:
            return (seen[t - v], i)
        seen[v] = i
    return None


def lru(a, cap):
    d = {}
    hits = 0
    for k in a.tolist():
        if k in d:
            hits += 1
            del d[k]
        elif len(d) >= cap:
            del d[next(iter(d))]
        d[k] = hits
    return (hits, d)


def memo_grid(n, m):
    d = {}
    for i in range(n):
        for j in range(m):
            d[i, j] = 1 if i == 0 or j == 0 else d[i - 1, j] + d[i, j - 1]
    return (d[n - 1, m - 1], len(d))


def keyerr(a):
    d = {1: 2, 3: 4}
    s = 0
    for x in a.tolist():
        s += d[x]
    return s


def pagerank(edges, n):
    deg = {}
    for s, _ in edges.tolist():
        deg[s] = deg.get(s, 0) + 1
    r = np.full(n, 1 / n)
    for it in range(50):
        new = np.full(n, 0.15 / n)
        for s, t in edges.tolist():
            new[t] += 0.85 * r[s] / deg[s]
        if np.abs(new - r).sum() < 1e-08:
            return (new, it)
        r = new
    return (r, it)


def sets(a):
    s = set()
    out = []
    for x in a.tolist():
        if x not in s:
            s.add(x)
            out.append(x)
    return (out, len(s))


def julia(h, w, c):
    out = np.zeros((h, w), np.int32)
    for i in range(h):
        for j in range(w):
            z = complex(-1.5 + 3 * j / w, -1.5 + 3 * i / h)
            k = 0
            while abs(z) < 2 and k < 50:
                z = z * z + c
                k += 1
            out[i, j] = k
    return out


def newton_roots(zs):
    out = np.empty_like(zs)
    for i in range(len(zs)):
        z = zs[i]
        for _ in range(30):
            d = 3 * z**2
            if abs(d) < 1e-12:
                break
            z2 = z - (z**3 - 1) / d
            if abs(z2 - z) < 1e-14:
                break
            z = z2
        out[i] = z
    return out


def dft(x):
    n = len(x)
    out = np.zeros(n, complex)
    for k in range(n):
        s = 0j
        for t in range(n):
            s += x[t] * cmath.exp(-2j * math.pi * k * t / n)
        out[k] = s
    return out


def horner(c, z):
    r = 0j
    for a in c[::-1]:
        r = r * z + a
    return r


def cdiv(a):
    s = 1 + 0j
    for i in range(len(a)):
        s = s / (a[i] - 3)
    return s


def monte(n):
    c = 0
    for _i in range(n):
        x, y = (np.random.rand(), np.random.rand())
        if x * x + y * y < 1:
            c += 1
    return 4 * c / n


def walk2(g, n):
    p = np.zeros((n, 2), int)
    for i in range(1, n):
        k = g.integers(4)
        p[i] = p[i - 1]
        if k == 0:
            p[i, 0] += 1
        elif k == 1:
            p[i, 0] -= 1
        elif k == 2:
            p[i, 1] += 1
        else:
            p[i, 1] -= 1
    return p


def metropolis(g, n):
    x = 0.0
    acc = 0
    out = np.empty(n)
    for i in range(n):
        y = x + g.normal(0, 1)
        if math.log(g.random()) < (x * x - y * y) / 2:
            x = y
            acc += 1
        out[i] = x
    return (acc, out)


def fisher_yates(a):
    for i in range(len(a) - 1, 0, -1):
        j = np.random.randint(0, i + 1)
        a[i], a[j] = (a[j], a[i])
    return a


def ising(s, g, n, beta):
    L = len(s)
    e = 0
    for _ in range(n):
        i, j = g.integers(0, L, 2)
        d = 2 * s[i, j] * (s[(i + 1) % L, j] + s[i - 1, j] + s[i, (j + 1) % L] + s[i, j - 1])
        if d <= 0 or g.random() < math.exp(-beta * d):
            s[i, j] = -s[i, j]
            e += d
    return (e, s)


def crc(data):
    c = 4294967295
    for b in data:
        c ^= b
        for _ in range(8):
            c = c >> 1 ^ (3988292384 if c & 1 else 0)
    return c ^ 4294967295


def adler(data):
    a, b = (1, 0)
    for x in data:
        a = (a + x) % 65521
        b = (b + a) % 65521
    return b << 16 | a


def rle(data):
    out = []
    prev = -1
    n = 0
    for c in data:
        if c == prev:
            n += 1
        else:
            if n:
                out.append((prev, n))
            prev = c
            n = 1
    out.append((prev, n))
    return out


def lev(a, b):
    p = np.arange(len(b) + 1)
    for i in range(len(a)):
        d = p[0]
        p[0] = i + 1
        for j in range(len(b)):
            q = p[j + 1]
            p[j + 1] = min(d + (a[i] != b[j]), q + 1, p[j] + 1)
            d = q
    return p[-1]


def kmp(t, p):
    f = [0] * len(p)
    k = 0
    for i in range(1, len(p)):
        while k and p[i] != p[k]:
            k = f[k - 1]
        if p[i] == p[k]:
            k += 1
        f[i] = k
    out = []
    k = 0
    for i in range(len(t)):
        while k and t[i] != p[k]:
            k = f[k - 1]
        if t[i] == p[k]:
            k += 1
        if k == len(p):
            out.append(i - k + 1)
            k = f[k - 1]
    return out


def balanced(s):
    st = []
    for c in s:
        if c in b"([{":
            st.append(c)
        elif c in b")]}":
            if not st:
                return False
            o = st.pop()
            if (o, c) not in ((40, 41), (91, 93), (123, 125)):
                return False
    return not st


def sqrt_newton(a):
    out = np.empty_like(a)
    its = 0
    for i in range(len(a)):
        x = a[i]
        while abs(x * x - a[i]) > 1e-12 * a[i]:
            x = 0.5 * (x + a[i] / x)
            its += 1
            if its > 10000:
                break
        out[i] = x
    return (out, its)


def jacobi(A, b, tol):
    x = np.zeros_like(b)
    k = 0
    while True:
        new = (b - A @ x + np.diag(A) * x) / np.diag(A)
        k += 1
        if np.max(np.abs(new - x)) < tol or k > 500:
            return (new, k)
        x = new


def gauss_seidel(A, b):
    n = len(b)
    x = np.zeros(n)
    it = 0
    err = 1.0
    while err > 1e-10:
        err = 0.0
        for i in range(n):
            s = b[i]
            for j in range(n):
                if j != i:
                    s -= A[i, j] * x[j]
            s /= A[i, i]
            err = max(err, abs(s - x[i]))
            x[i] = s
        it += 1
        if it == 200:
            raise ArithmeticError("no convergence")
    return (x, it)


def agm(a, b):
    n = 0
    while a != b and n < 60:
        a, b = ((a + b) / 2, math.sqrt(a * b))
        n += 1
    return (a, n)


def bisect(lo, hi, n):
    for _ in range(n):
        m = (lo + hi) / 2
        if m**3 - m - 2 > 0:
            hi = m
        else:
            lo = m
    return (lo, hi, hi - lo)


def printing(a):
    s = 0
    for i in range(len(a)):
        s += a[i]
        if i % 10 == 0:
            print(i, s)
    return s


def intmix(a):
    n = 0
    x = 0.5
    flag = False
    for v in a:
        if v % 3 == 0:
            n += v
        elif v % 3 == 1:
            x = x * 0.5 + v
        else:
            flag = not flag
    return (n, x, flag)


def floats32(a):
    s = np.float32(0)
    p = 1.0
    for v in a:
        s += v
        p *= 1 + v / 100
    return (s, p)


def minmax(a):
    lo = hi = a[0]
    at = 0
    for i, v in enumerate(a):
        if v < lo:
            lo = v
        if v > hi:
            hi, at = (v, i)
    return (lo, hi, at)


def lists(n):
    l = [0.0] * n
    s = []
    for i in range(n):
        l[i] = math.sin(i)
        if l[i] > 0:
            s.append(l[i])
    while len(s) > 3:
        s.pop()
    return (l, s)


def tuples(n):
    p = (0, 1)
    out = []
    for _i in range(n):
        p = (p[1], (p[0] + p[1]) % 1000)
        out.append(p)
    return out


def negshift(a):
    s = 0
    for i in range(len(a)):
        s += 1 << int(a[i]) - 3
    return s


def nanmath(a):
    s = 0.0
    m = -math.inf
    for v in a:
        if math.isnan(v):
            continue
        s += v
        m = max(m, v)
    return (s, m)


def floordivs(a, b):
    out = np.zeros((len(a), 4))
    for i in range(len(a)):
        out[i, 0] = int(a[i]) // int(b[i])
        out[i, 1] = int(a[i]) % int(b[i])
        out[i, 2] = float(a[i]) // float(b[i])
        out[i, 3] = float(a[i]) % float(b[i])
    return out


def rounding(a):
    out = np.zeros((len(a), 4))
    for i in range(len(a)):
        out[i, 0] = round(float(a[i]))
        out[i, 1] = math.floor(a[i])
        out[i, 2] = math.ceil(a[i])
        out[i, 3] = int(a[i])
    return out


def i8mix(a, b):
    out = np.zeros(len(a), np.int64)
    for i in range(len(a)):
        out[i] = a[i] + b[i] * 2
    return out


def sieve(n):
    p = np.ones(n, bool)
    p[:2] = False
    i = 2
    while i * i < n:
        if p[i]:
            p[i * i :: i] = False
        i += 1
    return np.flatnonzero(p)


def npintarg(a, k):
    for i in range(len(a)):
        a[i] += k
    return (a, k + 1)


PROGRAMS = [
    (histogram, lambda: (ri(200, hi=9),)),
    (histogram_np, lambda: (ri(200, hi=9),)),
    (two_sum, lambda: (ri(100, hi=10000), 11111)),
    (lru, lambda: (ri(200, hi=30), 10)),
    (memo_grid, lambda: (12, 13)),
    (keyerr, lambda: (np.array([1, 3] * 40 + [7]),)),
    (pagerank, lambda: (ri(200, 2, hi=20), 20)),
    (sets, lambda: (ri(100, hi=30),)),
    (julia, lambda: (12, 15, -0.8 + 0.156j)),
    (newton_roots, lambda: (G(1).normal(size=20) + 1j * G(2).normal(size=20),)),
    (dft, lambda: (G(1).random(20),)),
    (horner, lambda: (G(1).random(60), 0.5 + 0.5j)),
    (cdiv, lambda: (np.arange(60) + 0j,)),
    (cdiv, lambda: (np.arange(60.0),)),
    (monte, lambda: (500,)),
    (walk2, lambda: (G(4), 200)),
    (metropolis, lambda: (G(4), 300)),
    (fisher_yates, lambda: (np.arange(100),)),
    (ising, lambda: (np.ones((8, 8), int), G(3), 200, 0.4)),
    (crc, lambda: (b"The quick brown fox jumps over the lazy dog" * 3,)),
    (adler, lambda: (bytes(range(200)),)),
    (rle, lambda: (b"aaabbbbccccdaa" * 9,)),
    (lev, lambda: (b"kitten sitting on the mat", b"sitting kittens at the mall")),
    (kmp, lambda: (b"abcabcabcabdabcabcabd" * 5, b"abcabd")),
    (balanced, lambda: (b"([]{})" * 20 + b"(",)),
    (balanced, lambda: (b"([]{})" * 20 + b"(]",)),
    (sqrt_newton, lambda: (np.arange(1.0, 50.0),)),
    (jacobi, lambda: (np.eye(10) * 12 + 1, np.arange(10.0), 1e-09)),
    (gauss_seidel, lambda: (np.eye(10) * 12 + 1, np.arange(10.0))),
    (gauss_seidel, lambda: (np.ones((6, 6)), np.arange(6.0))),
    (agm, lambda: (1.0, 24.0)),
    (bisect, lambda: (1.0, 2.0, 80)),
    (printing, lambda: (ri(60),)),
    (intmix, lambda: (ri(100),)),
    (floats32, lambda: (G(1).random(100, dtype="f4"),)),
    (minmax, lambda: (G(1).normal(size=100),)),
    (minmax, lambda: (ri(100),)),
    (lists, lambda: (60,)),
    (tuples, lambda: (60,)),
    (negshift, lambda: (np.arange(20, -1, -1).repeat(4),)),
    (nanmath, lambda: (np.where(G(1).random(100) < 0.2, np.nan, G(2).random(100)),)),
    (floordivs, lambda: (ri(100, lo=-50), ri(100, lo=-50) * 2 + 1)),
    (floordivs, lambda: (ri(100, lo=-50), ri(100, lo=-50))),
    (rounding, lambda: (G(1).normal(size=100) * 10,)),
    (rounding, lambda: (np.array([0.5, 1.5, 2.5, -0.5, -0.0] * 20 + [np.nan]),)),
    (rounding, lambda: (np.array([0.5, 1.5, 2.5, -0.5, -0.0] * 20 + [np.inf]),)),
    (rounding, lambda: (np.array([0.5, 1e300] * 30),)),
    (i8mix, lambda: (ri(100, dt=np.int8), ri(100, dt=np.int8))),
    (i8mix, lambda: (ri(100, dt=np.uint8), ri(100, dt=np.int8))),
    (i8mix, lambda: (ri(100, dt=np.uint64), ri(100))),
    (sieve, lambda: (500,)),
    (npintarg, lambda: (np.arange(80), np.int64(3))),
    (npintarg, lambda: (np.arange(80), np.uint8(255))),
    (npintarg, lambda: (np.arange(80.0), np.float32(0.1))),
]
