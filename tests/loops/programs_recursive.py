"""Recursive programs, beside which test_programs.py runs them compiled: sorting, searching, trees, tables, quadrature."""

import math

import numpy as np

G = np.random.default_rng


def ri(*s, lo=0, hi=1000, dt=np.int64):
    return G(1).integers(lo, hi, s).astype(dt)


def merge(a, tmp, lo, mid, hi):
    i, j, k = (lo, mid, lo)
    while i < mid and j < hi:
        if a[i] <= a[j]:
            tmp[k] = a[i]
            i += 1
        else:
            tmp[k] = a[j]
            j += 1
        k += 1
    while i < mid:
        tmp[k] = a[i]
        i += 1
        k += 1
    while j < hi:
        tmp[k] = a[j]
        j += 1
        k += 1
    for q in range(lo, hi):
        a[q] = tmp[q]


def msort(a, tmp, lo, hi):
    if hi - lo < 2:
        return 0
    mid = (lo + hi) // 2
    n = msort(a, tmp, lo, mid) + msort(a, tmp, mid, hi)
    merge(a, tmp, lo, mid, hi)
    return n + 1


def merge_sort(a):
    tmp = np.empty_like(a)
    n = msort(a, tmp, 0, len(a))
    return n


def inv(a, tmp, lo, hi):
    if hi - lo <= 1:
        return 0
    m = (lo + hi) // 2
    c = inv(a, tmp, lo, m) + inv(a, tmp, m, hi)
    i, j = (lo, m)
    for k in range(lo, hi):
        if j >= hi or (i < m and a[i] <= a[j]):
            tmp[k] = a[i]
            i += 1
        else:
            tmp[k] = a[j]
            j += 1
            c += m - i
    a[lo:hi] = tmp[lo:hi]
    return c


def inversions(a):
    return inv(a, np.zeros(len(a), a.dtype), 0, len(a))


def merge_functional(a):
    if len(a) < 2:
        return a
    m = len(a) // 2
    l, r = (merge_functional(a[:m]), merge_functional(a[m:]))
    out = np.empty(len(a), a.dtype)
    i = j = 0
    for k in range(len(out)):
        if j >= len(r) or (i < len(l) and l[i] <= r[j]):
            out[k] = l[i]
            i += 1
        else:
            out[k] = r[j]
            j += 1
    return out


def place(row, n, cols, d1, d2):
    if row == n:
        return 1
    c = 0
    for q in range(n):
        if cols[q] or d1[row + q] or d2[row - q + n - 1]:
            continue
        cols[q] = d1[row + q] = d2[row - q + n - 1] = True
        c += place(row + 1, n, cols, d1, d2)
        cols[q] = d1[row + q] = d2[row - q + n - 1] = False
    return c


def queens(n):
    return place(0, n, np.zeros(n, bool), np.zeros(2 * n, bool), np.zeros(2 * n, bool))


def queens_bits(n, row, cols, l, r):
    if row == n:
        return 1
    c = 0
    free = (1 << n) - 1 & ~(cols | l | r)
    while free:
        bit = free & -free
        free ^= bit
        c += queens_bits(n, row + 1, cols | bit, (l | bit) << 1, (r | bit) >> 1)
    return c


def queens2(n):
    return queens_bits(n, 0, 0, 0, 0)


def heap_perm(k, a, out, at):
    if k == 1:
        out[at] = a
        return at + 1
    for i in range(k):
        at = heap_perm(k - 1, a, out, at)
        if i < k - 1:
            if k % 2 == 0:
                a[i], a[k - 1] = (a[k - 1], a[i])
            else:
                a[0], a[k - 1] = (a[k - 1], a[0])
    return at


def permutations(n):
    a = np.arange(n)
    out = np.zeros((math.factorial(n), n), np.int64)
    at = heap_perm(n, a, out, 0)
    return (at, out, a)


def move(n, a, b, c, pegs, log, t):
    if n == 0:
        return t
    t = move(n - 1, a, c, b, pegs, log, t)
    pegs[a] -= 1
    pegs[b] += 1
    log[t, 0] = a
    log[t, 1] = b
    t += 1
    return move(n - 1, c, b, a, pegs, log, t)


def hanoi(n):
    pegs = np.array([n, 0, 0])
    log = np.zeros((2**n - 1, 2), np.int8)
    t = move(n, 0, 1, 2, pegs, log, 0)
    return (t, pegs, log)


def ack(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ack(m - 1, 1)
    return ack(m - 1, ack(m, n - 1))


def ackermann(k):
    out = np.zeros((3, k), np.int32)
    for i in range(3):
        for j in range(k):
            out[i, j] = ack(i, j)
    return out


def fill(g, i, j, old, new, depth):
    if i < 0 or j < 0 or i >= g.shape[0] or (j >= g.shape[1]):
        return depth
    if g[i, j] != old:
        return depth
    g[i, j] = new
    d = fill(g, i + 1, j, old, new, depth + 1)
    d = max(d, fill(g, i - 1, j, old, new, depth + 1))
    d = max(d, fill(g, i, j + 1, old, new, depth + 1))
    return max(d, fill(g, i, j - 1, old, new, depth + 1))


def regions(g):
    k = 2
    out = []
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            if g[i, j] == 1:
                out.append(fill(g, i, j, 1, k, 0))
                k += 1
    return (k - 2, out)


def quad(img, i, j, n, out, at, tol):
    block = img[i : i + n, j : j + n]
    if n == 1 or block.max() - block.min() <= tol:
        out[at, 0] = i
        out[at, 1] = j
        out[at, 2] = n
        return at + 1
    h = n // 2
    at = quad(img, i, j, h, out, at, tol)
    at = quad(img, i + h, j, h, out, at, tol)
    at = quad(img, i, j + h, h, out, at, tol)
    return quad(img, i + h, j + h, h, out, at, tol)


def quadtree(img):
    out = np.zeros((img.size, 3), np.int64)
    n = quad(img, 0, 0, len(img), out, 0, 10.0)
    return out[:n]


def dfs(adj, v, seen, order, at):
    seen[v] = True
    order[at] = v
    at += 1
    for w in range(adj.shape[1]):
        if adj[v, w] and (not seen[w]):
            at = dfs(adj, w, seen, order, at)
    return at


def components(adj):
    n = len(adj)
    seen = np.zeros(n, bool)
    order = np.zeros(n, np.int64)
    k = 0
    at = 0
    for v in range(n):
        if not seen[v]:
            at = dfs(adj, v, seen, order, at)
            k += 1
    return (k, order)


def bfs(adj, s):
    n = len(adj)
    dist = np.full(n, -1)
    q = np.zeros(n, np.int64)
    head, tail = (0, 1)
    q[0] = s
    dist[s] = 0
    while head < tail:
        v = q[head]
        head += 1
        for w in range(n):
            if adj[v, w] and dist[w] < 0:
                dist[w] = dist[v] + 1
                q[tail] = w
                tail += 1
    return dist


def mfib(n, memo):
    if n < 2:
        return n
    if memo[n]:
        return memo[n]
    memo[n] = mfib(n - 1, memo) + mfib(n - 2, memo)
    return memo[n]


def memo_fib(n):
    memo = np.zeros(n + 1, np.int64)
    return (mfib(n, memo), memo)


def dfib(n, memo):
    if n in memo:
        return memo[n]
    r = n if n < 2 else dfib(n - 1, memo) + dfib(n - 2, memo)
    memo[n] = r
    return r


def dict_fib(n):
    memo = {}
    r = dfib(n, memo)
    return (r, memo)


def simpson(a, b):
    c = (a + b) / 2
    return (b - a) / 6 * (math.exp(-a * a) + 4 * math.exp(-c * c) + math.exp(-b * b))


def adapt(a, b, eps, whole, depth):
    c = (a + b) / 2
    l, r = (simpson(a, c), simpson(c, b))
    d = l + r - whole
    if depth <= 0 or abs(d) <= 15 * eps:
        return l + r + d / 15
    return adapt(a, c, eps / 2, l, depth - 1) + adapt(c, b, eps / 2, r, depth - 1)


def quadrature(xs):
    out = np.zeros_like(xs)
    for i in range(len(xs)):
        out[i] = adapt(0.0, xs[i], 1e-09, simpson(0.0, xs[i]), 30)
    return out


def build(t, a, v, lo, hi):
    if hi - lo == 1:
        t[v] = a[lo]
        return
    m = (lo + hi) // 2
    build(t, a, 2 * v, lo, m)
    build(t, a, 2 * v + 1, m, hi)
    t[v] = min(t[2 * v], t[2 * v + 1])


def query(t, v, lo, hi, l, r):
    if r <= lo or hi <= l:
        return 1 << 40
    if l <= lo and hi <= r:
        return t[v]
    m = (lo + hi) // 2
    return min(query(t, 2 * v, lo, m, l, r), query(t, 2 * v + 1, m, hi, l, r))


def update(t, v, lo, hi, p, x):
    if hi - lo == 1:
        t[v] = x
        return
    m = (lo + hi) // 2
    if p < m:
        update(t, 2 * v, lo, m, p, x)
    else:
        update(t, 2 * v + 1, m, hi, p, x)
    t[v] = min(t[2 * v], t[2 * v + 1])


def segment_tree(a, qs):
    n = len(a)
    t = np.zeros(4 * n, np.int64)
    build(t, a, 1, 0, n)
    out = np.zeros(len(qs), np.int64)
    for k in range(len(qs)):
        l, r = qs[k]
        out[k] = query(t, 1, 0, n, min(l, r), max(l, r) + 1)
        update(t, 1, 0, n, l, int(a[l]) + k)
    return (out, t)


def subset(a, i, target):
    if target == 0:
        return 1
    if i == len(a) or target < 0:
        return 0
    return subset(a, i + 1, target - a[i]) + subset(a, i + 1, target)


def subset_sum(a, targets):
    return [subset(a, 0, t) for t in targets]


def binom(n, k):
    if k == 0 or k == n:
        return 1
    return binom(n - 1, k - 1) + binom(n - 1, k)


def binomials(n):
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            out[i, j] = binom(i, j)
    return out


def gray(n, bits, out, at):
    if n == 0:
        s = 0
        for b in bits:
            s = s * 2 + b
        out[at] = s
        return at + 1
    at = gray(n - 1, bits, out, at)
    bits[n - 1] = 1 - bits[n - 1]
    return gray(n - 1, bits, out, at)


def gray_code(n):
    out = np.zeros(2**n, np.uint16)
    gray(n, np.zeros(n, np.int64), out, 0)
    return out


def mutual_a(n, x):
    return x if n == 0 else mutual_b(n - 1, x * 0.5 + 1)


def mutual_b(n, x):
    return x if n == 0 else mutual_a(n - 1, math.sqrt(abs(x)))


def mutual(xs):
    return np.array([mutual_a(17, float(x)) for x in xs])


def fftr(x):
    n = len(x)
    if n == 1:
        return x
    e, o = (fftr(x[::2]), fftr(x[1::2]))
    t = np.exp(-2j * np.pi * np.arange(n // 2) / n) * o
    return np.concatenate([e + t, e - t])


def strassen(a, b):
    n = len(a)
    if n <= 8:
        return a @ b
    h = n // 2
    a11, a12, a21, a22 = (a[:h, :h], a[:h, h:], a[h:, :h], a[h:, h:])
    b11, b12, b21, b22 = (b[:h, :h], b[:h, h:], b[h:, :h], b[h:, h:])
    m1 = strassen(a11 + a22, b11 + b22)
    m2 = strassen(a21 + a22, b11)
    m3 = strassen(a11, b12 - b22)
    m4 = strassen(a22, b21 - b11)
    m5 = strassen(a11 + a12, b22)
    m6 = strassen(a21 - a11, b11 + b12)
    m7 = strassen(a12 - a22, b21 + b22)
    c = np.empty((n, n), a.dtype)
    c[:h, :h] = m1 + m4 - m5 + m7
    c[:h, h:] = m3 + m5
    c[h:, :h] = m2 + m4
    c[h:, h:] = m1 - m2 + m3 + m6
    return c


def det(a):
    n = len(a)
    if n == 1:
        return a[0, 0]
    s = 0.0
    for j in range(n):
        s += (-1) ** j * a[0, j] * det(np.delete(a[1:], j, axis=1))
    return s


def collatz(n, steps):
    if n == 1:
        return steps
    return collatz(n // 2 if n % 2 == 0 else 3 * n + 1, steps + 1)


def collatzes(m):
    best = (0, 0)
    for n in range(1, m):
        s = collatz(n, 0)
        if s > best[0]:
            best = (s, n)
    return best


def powmod(b, e, m):
    if e == 0:
        return 1 % m
    h = powmod(b, e // 2, m)
    h = h * h % m
    return h * b % m if e & 1 else h


def powmods(bs, m):
    out = np.zeros(len(bs), np.int64)
    for i in range(len(bs)):
        out[i] = powmod(int(bs[i]), m - 2, m)
    return out


def deep(n):
    return 0 if n == 0 else 1 + deep(n - 1)


def too_deep(a):
    for i in range(len(a)):
        a[i] = deep(i * 700)
    return a


def kth(a, lo, hi, k):
    p = a[hi]
    i = lo
    for j in range(lo, hi):
        if a[j] < p:
            a[i], a[j] = (a[j], a[i])
            i += 1
    a[i], a[hi] = (a[hi], a[i])
    if i == k:
        return a[i]
    return kth(a, i + 1, hi, k) if i < k else kth(a, lo, i - 1, k)


def quickselect(a):
    return kth(a, 0, len(a) - 1, len(a) // 3)


def catalan(n, memo):
    if n <= 1:
        return 1
    if memo[n] >= 0:
        return memo[n]
    s = 0
    for i in range(n):
        s += catalan(i, memo) * catalan(n - 1 - i, memo)
    memo[n] = s
    return s


def catalans(n):
    memo = np.full(n + 1, -1, np.int64)
    return [catalan(i, memo) for i in range(n + 1)]


def haar(a, n):
    if n == 1:
        return
    h = n // 2
    t = a[:n].copy()
    for i in range(h):
        a[i] = (t[2 * i] + t[2 * i + 1]) / 2
        a[h + i] = (t[2 * i] - t[2 * i + 1]) / 2
    haar(a, h)


def wavelet(a):
    haar(a, len(a))
    return a


def tree_sum(l, r, v, i):
    if i < 0:
        return 0.0
    return v[i] + tree_sum(l, r, v, l[i]) + tree_sum(l, r, v, r[i])


def bst(vals):
    n = len(vals)
    l = np.full(n, -1)
    r = np.full(n, -1)
    for k in range(1, n):
        i = 0
        while True:
            if vals[k] < vals[i]:
                if l[i] < 0:
                    l[i] = k
                    break
                i = l[i]
            else:
                if r[i] < 0:
                    r[i] = k
                    break
                i = r[i]
    return (tree_sum(l, r, vals, 0), l, r)


PROGRAMS = [
    (merge_sort, lambda: (ri(200),)),
    (merge_sort, lambda: (G(2).random(200).astype("f4"),)),
    (inversions, lambda: (ri(150),)),
    (merge_functional, lambda: (ri(64),)),
    (queens, lambda: (6,)),
    (queens2, lambda: (8,)),
    (permutations, lambda: (5,)),
    (hanoi, lambda: (8,)),
    (ackermann, lambda: (6,)),
    (regions, lambda: ((G(3).random((12, 12)) < 0.6).astype(np.int64),)),
    (quadtree, lambda: (G(4).random((16, 16)) * 20,)),
    (components, lambda: (G(5).random((40, 40)) < 0.03,)),
    (bfs, lambda: (G(5).random((40, 40)) < 0.06, 3)),
    (memo_fib, lambda: (60,)),
    (dict_fib, lambda: (60,)),
    (quadrature, lambda: (np.linspace(0.1, 3, 20),)),
    (segment_tree, lambda: (ri(64), ri(40, 2, hi=64))),
    (subset_sum, lambda: (ri(14, hi=20, lo=1), [20, 33, 50])),
    (binomials, lambda: (14,)),
    (gray_code, lambda: (8,)),
    (mutual, lambda: (np.arange(30),)),
    (fftr, lambda: (G(1).random(32) + 0j,)),
    (strassen, lambda: (G(1).random((32, 32)), G(2).random((32, 32)))),
    (det, lambda: (G(1).random((5, 5)),)),
    (collatzes, lambda: (500,)),
    (powmods, lambda: (ri(50, lo=1), 1000003)),
    (too_deep, lambda: (np.zeros(10),)),
    (quickselect, lambda: (ri(100),)),
    (catalans, lambda: (25,)),
    (wavelet, lambda: (G(1).random(64),)),
    (bst, lambda: (G(1).random(100),)),
    (memo_fib, lambda: (120,)),
    (catalans, lambda: (40,)),
]
