"""Programs of scalar loops as people write them for Numba, beside plain Python: results, types, effects and errors."""

import math

import numpy as np
import pytest

from flambeau.testing.loops import check

RNG = np.random.default_rng(3)


def crc32_int(data):
    crc = 0xFFFFFFFF
    for i in range(len(data)):
        crc ^= int(data[i])
        for _ in range(8):
            crc = (crc >> 1) ^ 0xEDB88320 if crc & 1 else crc >> 1
    return crc ^ 0xFFFFFFFF


def sieve(n):
    flags = np.ones(n + 1, dtype=np.bool_)
    flags[0] = False
    flags[1] = False
    i = 2
    while i * i <= n:
        if flags[i]:
            for j in range(i * i, n + 1, i):
                flags[j] = False
        i += 1
    return flags


def bitcount(x):
    out = np.zeros(len(x), np.int32)
    for i in range(len(x)):
        v = x[i]
        c = 0
        while v:
            v &= v - np.uint32(1)
            c += 1
        out[i] = c
    return out


def bitcount_int(x):
    t = 0
    for i in range(len(x)):
        v = int(x[i])
        c = 0
        while v != 0:
            c += v & 1
            v >>= 1
            if c > 64 or v == -1:
                break
        t += c
    return t


def lcs(a, b):
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1), np.int64)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                d[i, j] = d[i - 1, j - 1] + 1
            else:
                d[i, j] = max(d[i - 1, j], d[i, j - 1])
    return d[n, m], d


def life(g, steps):
    for _ in range(steps):
        new = np.zeros_like(g)
        for i in range(g.shape[0]):
            for j in range(g.shape[1]):
                s = 0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        if di != 0 or dj != 0:
                            s += g[(i + di) % g.shape[0], (j + dj) % g.shape[1]]
                if s == 3 or (g[i, j] and s == 2):
                    new[i, j] = 1
        g[:] = new
    return g


def floyd(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]


def bsearch(a, q):
    out = np.empty(len(q), np.int64)
    for k in range(len(q)):
        lo, hi = 0, len(a)
        while lo < hi:
            mid = (lo + hi) // 2
            if a[mid] < q[k]:
                lo = mid + 1
            else:
                hi = mid
        out[k] = lo
    return out


def quicksort(a):
    stack = np.zeros((200, 2), np.int64)
    top = 0
    stack[0, 0], stack[0, 1] = 0, len(a) - 1
    while top >= 0:
        lo, hi = stack[top, 0], stack[top, 1]
        top -= 1
        if lo >= hi:
            continue
        p = a[hi]
        i = lo
        for j in range(lo, hi):
            if a[j] < p:
                a[i], a[j] = a[j], a[i]
                i += 1
        a[i], a[hi] = a[hi], a[i]
        top += 1
        stack[top, 0] = lo
        stack[top, 1] = i - 1
        top += 1
        stack[top, 0] = i + 1
        stack[top, 1] = hi


def heapsort(a):
    n = len(a)
    for s in range(n // 2 - 1, -1, -1):
        i = s
        while True:
            c = 2 * i + 1
            if c >= n:
                break
            if c + 1 < n and a[c + 1] > a[c]:
                c += 1
            if a[i] >= a[c]:
                break
            a[i], a[c] = a[c], a[i]
            i = c
    for e in range(n - 1, 0, -1):
        a[0], a[e] = a[e], a[0]
        i = 0
        while 2 * i + 1 < e:
            c = 2 * i + 1
            if c + 1 < e and a[c + 1] > a[c]:
                c += 1
            if a[i] >= a[c]:
                break
            a[i], a[c] = a[c], a[i]
            i = c


def matrix_chain(p):
    n = len(p) - 1
    m = np.zeros((n, n), np.int64)
    for L in range(2, n + 1):
        for i in range(n - L + 1):
            j = i + L - 1
            m[i, j] = np.iinfo(np.int64).max
            for k in range(i, j):
                c = m[i, k] + m[k + 1, j] + p[i] * p[k + 1] * p[j + 1]
                if c < m[i, j]:
                    m[i, j] = c
    return m


def knap(w, v, cap):
    best = np.zeros(cap + 1, np.int64)
    for i in range(len(w)):
        for c in range(cap, w[i] - 1, -1):
            best[c] = max(best[c], best[c - w[i]] + v[i])
    return best[cap]


def fsm(s):
    state = 0
    counts = np.zeros(4, np.int64)
    tokens = 0
    for c in s:
        if (65 <= c <= 90) or (97 <= c <= 122) or c == 95:
            kind = 1
        elif 48 <= c <= 57:
            kind = 2
        elif c == 32:
            kind = 0
        else:
            kind = 3
        if kind != state and not (state == 1 and kind == 2):
            state = kind
            if kind != 0:
                tokens += 1
                counts[kind] += 1
    return tokens, counts


def rle(x):
    vals = np.empty_like(x)
    lens = np.empty(len(x), np.int32)
    k = -1
    for i in range(len(x)):
        if k >= 0 and vals[k] == x[i]:
            lens[k] += 1
        else:
            k += 1
            vals[k] = x[i]
            lens[k] = 1
    return vals[: k + 1].sum(), lens[: k + 1].sum(), k


def components(g):
    n, m = g.shape
    label = np.zeros((n, m), np.int32)
    stack = np.empty((n * m * 4, 2), np.int64)
    cur = 0
    for i in range(n):
        for j in range(m):
            if g[i, j] and label[i, j] == 0:
                cur += 1
                top = 0
                stack[0, 0] = i
                stack[0, 1] = j
                while top >= 0:
                    a = stack[top, 0]
                    b = stack[top, 1]
                    top -= 1
                    if a < 0 or b < 0 or a >= n or b >= m or not g[a, b] or label[a, b] != 0:
                        continue
                    label[a, b] = cur
                    for d in range(4):
                        top += 1
                        stack[top, 0] = a + (1 if d == 0 else -1 if d == 1 else 0)
                        stack[top, 1] = b + (1 if d == 2 else -1 if d == 3 else 0)
    return cur, label


def walk(n, seed):
    x = seed
    pos = np.zeros(n, np.int64)
    p = 0
    for i in range(n):
        x = (1103515245 * x + 12345) % 2147483648
        p += 1 if x >> 16 & 1 else -1
        pos[i] = p
    return pos


def xorshift(n, seed):
    x = seed
    out = np.zeros(n, np.uint32)
    for i in range(n):
        x ^= x << np.uint32(13)
        x ^= x >> np.uint32(17)
        x ^= x << np.uint32(5)
        out[i] = x
    return out


def ising(s, u, beta):
    n, m = s.shape
    e = 0
    for t in range(u.shape[0]):
        for i in range(n):
            for j in range(m):
                d = 2 * s[i, j] * (s[i - 1, j] + s[(i + 1) % n, j] + s[i, j - 1] + s[i, (j + 1) % m])
                if d <= 0 or u[t, i, j] < math.exp(-beta * d):
                    s[i, j] = -s[i, j]
                    e += d
    return e


def kmeans(x, c, it):
    n, d = x.shape
    k = c.shape[0]
    lab = np.zeros(n, np.int64)
    for _ in range(it):
        for i in range(n):
            best = np.inf
            for j in range(k):
                s = 0.0
                for q in range(d):
                    s += (x[i, q] - c[j, q]) ** 2
                if s < best:
                    best = s
                    lab[i] = j
        cnt = np.zeros(k)
        c[:] = 0.0
        for i in range(n):
            cnt[lab[i]] += 1
            for q in range(d):
                c[lab[i], q] += x[i, q]
        for j in range(k):
            if cnt[j] > 0:
                for q in range(d):
                    c[j, q] /= cnt[j]
    return lab, c


def fft2(re, im):
    n = len(re)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    L = 2
    while L <= n:
        ang = -2 * math.pi / L
        for i in range(0, n, L):
            for k in range(L // 2):
                wr = math.cos(ang * k)
                wi = math.sin(ang * k)
                a = i + k
                b = a + L // 2
                tr = re[b] * wr - im[b] * wi
                ti = re[b] * wi + im[b] * wr
                re[b] = re[a] - tr
                im[b] = im[a] - ti
                re[a] += tr
                im[a] += ti
        L *= 2


def gauss_seidel(A, b, it):
    n = len(b)
    x = np.zeros(n)
    turns = 0
    for _ in range(it):
        turns += 1
        delta = 0.0
        for i in range(n):
            s = b[i]
            for j in range(n):
                if j != i:
                    s -= A[i, j] * x[j]
            new = s / A[i, i]
            delta = max(delta, abs(new - x[i]))
            x[i] = new
        if delta < 1e-10:
            break
    return x, turns, delta


def bilateral(im, r, ss, sr):
    h, w = im.shape
    out = np.zeros_like(im)
    for i in range(h):
        for j in range(w):
            t = 0.0
            z = 0.0
            for a in range(max(0, i - r), min(h, i + r + 1)):
                for b in range(max(0, j - r), min(w, j + r + 1)):
                    g = math.exp(
                        -((i - a) ** 2 + (j - b) ** 2) / (2 * ss * ss) - (im[i, j] - im[a, b]) ** 2 / (2 * sr * sr)
                    )
                    t += g * im[a, b]
                    z += g
            out[i, j] = t / z
    return out


def conv(im, k):
    h, w = im.shape
    out = np.zeros((h - 2, w - 2), np.float32)
    for i in range(h - 2):
        for j in range(w - 2):
            s = np.float32(0)
            for a in range(3):
                for b in range(3):
                    s += im[i + a, j + b] * k[a, b]
            out[i, j] = s
    return out


def early(x):
    for i in range(len(x)):
        x[i] = -1
        if i == 17:
            return i, x[i]
    return -1, 0.0


def index_error(x, n):
    for i in range(n):
        x[i] = i
    return x


def neg_index(x):
    s = 0.0
    for i in range(45):
        s += x[-i]
    return s


def drift(n):
    a = np.zeros(2)
    k = 2**60
    j = -(2**60)
    for _ in range(n):
        k += 4096
        j -= 4000
        a[0] += 1
    return k, j, a


def doubling(n):
    a = np.zeros(2)
    k = 1
    for _ in range(n):
        k = k + k
        a[0] += 1
    return k


def nested_counts(n):
    c = 0
    a = np.zeros(3, np.int64)
    for i in range(n):
        j = i
        while j > 0:
            j -= 3
            c += 2
            a[j % 3] += j
    return c, j, a


def rows(x):
    t = 0.0
    for r in x:
        for v in r:
            t += v
        r[0] = t
    return t


def counter_types(x):
    c = np.zeros(5)
    k = np.int32(0)
    for v in x:
        c[v] += 1
        k += 1
    return c, k


def overflow_mul(x):
    h = 14695981039346656037 & 0x7FFFFFFF
    for i in range(len(x)):
        h = (h ^ int(x[i])) * 1099511628211
        h &= 0xFFFFFFFFFFFFFFF
    return h


def fib_big(n):
    a = np.zeros(3)
    x, y = 0, 1
    for i in range(n * 3):
        x, y = y, x + y
        a[i % 3] += 1
    return x


def shift_view(x):
    for i in range(1, 10):
        x[i:] += x[:-i]
    return x


PROGRAMS = [
    (crc32_int, lambda: (RNG.integers(0, 256, 500).astype(np.uint8),)),
    (sieve, lambda: (2000,)),
    (bitcount, lambda: (RNG.integers(0, 2**32, 300).astype(np.uint32),)),
    (bitcount_int, lambda: (RNG.integers(-(2**62), 2**62, 300),)),
    (lcs, lambda: (RNG.integers(0, 4, 60), RNG.integers(0, 4, 50))),
    (life, lambda: ((RNG.random((20, 21)) < 0.4).astype(np.uint8), 5)),
    (floyd, lambda: (RNG.random((12, 12)),)),
    (bsearch, lambda: (np.sort(RNG.random(200)), RNG.random(50))),
    (quicksort, lambda: (RNG.random(150),)),
    (heapsort, lambda: (RNG.integers(0, 1000, 100),)),
    (matrix_chain, lambda: (RNG.integers(1, 50, 15),)),
    (knap, lambda: (RNG.integers(1, 20, 20), RNG.integers(1, 100, 20), 60)),
    (fsm, lambda: (np.frombuffer(b"int x = 42; while (x > 0) { x = x - 13; } return foo_1;", dtype=np.uint8),)),
    (rle, lambda: (RNG.integers(0, 3, 200),)),
    (components, lambda: ((RNG.random((15, 15)) < 0.55),)),
    (walk, lambda: (500, 12345)),
    (xorshift, lambda: (500, np.uint32(12345))),
    (ising, lambda: (RNG.choice([-1, 1], (12, 12)), RNG.random((3, 12, 12)), 0.4)),
    (kmeans, lambda: (RNG.random((60, 3)), RNG.random((4, 3)), 3)),
    (fft2, lambda: (RNG.random(64), RNG.random(64))),
    (gauss_seidel, lambda: (RNG.random((10, 10)) + 10 * np.eye(10), RNG.random(10), 20)),
    (bilateral, lambda: (RNG.random((16, 16)), 2, 1.5, 0.2)),
    (conv, lambda: (RNG.random((14, 15)).astype(np.float32), RNG.random((3, 3)).astype(np.float32))),
    (early, lambda: (RNG.random(40),)),
    (index_error, lambda: (RNG.random(40), 45)),
    (neg_index, lambda: (RNG.random(40),)),
    (drift, lambda: (30,)),
    (doubling, lambda: (70,)),
    (nested_counts, lambda: (200,)),
    (rows, lambda: (RNG.random((6, 7)),)),
    (counter_types, lambda: (RNG.integers(0, 5, 100),)),
    (overflow_mul, lambda: (RNG.integers(0, 1000, 100),)),
    (fib_big, lambda: (40,)),
    (shift_view, lambda: (RNG.random(30),)),
]


@pytest.mark.parametrize("f, arguments", PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_program(f, arguments):
    check(f, *arguments())
