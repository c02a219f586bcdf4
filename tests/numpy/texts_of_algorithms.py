"""Programs of number theory, games, geometry, graphs, particles and markets with patterns that texts.py doesn't have; test_texts.py runs both."""

import cmath
import math

import numpy as np

G = np.random.default_rng


def farey_lengths(n):
    phi = np.arange(n + 1)
    for p in range(2, n + 1):
        if phi[p] == p:
            for k in range(p, n + 1, p):
                phi[k] -= phi[k] // p
    return 1 + np.cumsum(phi[1:])


def miller_rabin(ns):
    out = np.zeros(len(ns), bool)
    for k, n in enumerate(ns):
        n = int(n)
        if n < 2 or any(n % p == 0 and n != p for p in (2, 3, 5, 7)):
            continue
        d, s = n - 1, 0
        while d % 2 == 0:
            d //= 2
            s += 1
        ok = True
        for a in (2, 3, 5, 7):
            if a >= n:
                continue
            x = pow(a, d, n)
            if x in (1, n - 1):
                continue
            for _ in range(s - 1):
                x = x * x % n
                if x == n - 1:
                    break
            else:
                ok = False
                break
        out[k] = ok
    return out


def langton(n, steps):
    g = np.zeros((n, n), np.uint8)
    dirs = [(-1, 0), (0, 1), (1, 0), (0, -1)]
    r = c = n // 2
    d = 0
    for _ in range(steps):
        d = (d + (1 if g[r, c] == 0 else 3)) % 4
        g[r, c] ^= 1
        dr, dc = dirs[d]
        r, c = (r + dr) % n, (c + dc) % n
    return g, r, c


def convex_hull(p):
    q = p[np.lexsort((p[:, 1], p[:, 0]))]

    def half(points):
        h = []
        for x, y in points:
            while len(h) >= 2 and (h[-1][0] - h[-2][0]) * (y - h[-2][1]) - (h[-1][1] - h[-2][1]) * (x - h[-2][0]) <= 0:
                h.pop()
            h.append((float(x), float(y)))
        return h[:-1]

    return np.array(half(q) + half(q[::-1]))


def point_in_polygon(pts, poly):
    out = np.zeros(len(pts), bool)
    n = len(poly)
    for i, (x, y) in enumerate(pts):
        inside = False
        j = n - 1
        for k in range(n):
            if (poly[k, 1] > y) != (poly[j, 1] > y) and x < (poly[j, 0] - poly[k, 0]) * (y - poly[k, 1]) / (
                poly[j, 1] - poly[k, 1]
            ) + poly[k, 0]:
                inside = not inside
            j = k
        out[i] = inside
    return out


def bresenham(n, lines):
    img = np.zeros((n, n), np.uint8)
    for x0, y0, x1, y1 in lines:
        dx, dy = abs(x1 - x0), -abs(y1 - y0)
        sx = 1 if x0 < x1 else -1
        sy = 1 if y0 < y1 else -1
        err = dx + dy
        while True:
            img[y0, x0] = 255
            if x0 == x1 and y0 == y1:
                break
            e2 = 2 * err
            if e2 >= dy:
                err += dy
                x0 += sx
            if e2 <= dx:
                err += dx
                y0 += sy
    return img


def durand_kerner(c, n):
    z = (0.4 + 0.9j) ** np.arange(len(c) - 1)
    for _ in range(n):
        for i in range(len(z)):
            num = np.polyval(c, z[i])
            den = 1.0 + 0j
            for j in range(len(z)):
                if j != i:
                    den *= z[i] - z[j]
            z[i] -= num / den
    return np.sort_complex(np.round(z, 8))


def goertzel_complex(x, k):
    w = cmath.exp(-2j * math.pi * k / len(x))
    s = 0j
    for v in x[::-1]:
        s = s * w + v
    return s, abs(s), cmath.phase(s)


def levinson(r, order):
    a = np.zeros(order + 1)
    a[0] = 1.0
    e = r[0]
    for m in range(1, order + 1):
        k = -(r[m] + np.dot(a[1:m], r[m - 1 : 0 : -1])) / e
        a[1 : m + 1] += k * a[m - 1 :: -1][:m]
        e *= 1 - k * k
    return a, e


def hilbert_curve(order):
    n = 1 << order
    out = np.empty((n * n, 2), int)
    for d in range(n * n):
        t, x, y, s = d, 0, 0, 1
        while s < n:
            rx = 1 & (t // 2)
            ry = 1 & (t ^ rx)
            if ry == 0:
                if rx == 1:
                    x, y = s - 1 - x, s - 1 - y
                x, y = y, x
            x += s * rx
            y += s * ry
            t //= 4
            s *= 2
        out[d] = x, y
    return out


def adaptive_rk(f0, t1, tol):
    t, y, h = 0.0, f0, 0.1
    ts, ys = [t], [y]
    while t < t1:
        h = min(h, t1 - t)
        k1 = -2 * y + math.sin(t)
        k2 = -2 * (y + h * k1 / 2) + math.sin(t + h / 2)
        k3 = -2 * (y - h * k1 + 2 * h * k2) + math.sin(t + h)
        e = abs(h * (k1 - 2 * k2 + k3) / 6)
        if e <= tol or h < 1e-6:
            t += h
            y += h * (k1 + 4 * k2 + k3) / 6
            ts.append(t)
            ys.append(y)
        h *= min(2.0, max(0.3, 0.9 * (tol / (e + 1e-16)) ** (1 / 3)))
    return np.array(ts), np.array(ys)


def boris(steps, dt, e, b):
    x, v = np.zeros(3), np.array([1.0, 0.0, 0.5])
    out = np.empty((steps, 3))
    for k in range(steps):
        vm = v + 0.5 * dt * e
        t = 0.5 * dt * b
        s = 2 * t / (1 + t @ t)
        vp = vm + np.cross(vm + np.cross(vm, t), s)
        v = vp + 0.5 * dt * e
        x = x + v * dt
        out[k] = x
    return out, v


def upwind_limiter(q, c, steps):
    for _ in range(steps):
        dq = np.diff(q, append=q[:1])
        r = np.divide(np.roll(dq, 1), dq, out=np.zeros_like(dq), where=dq != 0)
        phi = np.maximum(0, np.minimum(1, r))
        flux = q + 0.5 * phi * (1 - c) * dq
        q = q - c * (flux - np.roll(flux, 1))
    return q


def irr(flows):
    r = 0.1
    for i in range(50):
        t = np.arange(len(flows))
        f = (flows / (1 + r) ** t).sum()
        df = (-t * flows / (1 + r) ** (t + 1)).sum()
        step = f / df
        r -= step
        if abs(step) < 1e-12:
            return r, i
    raise ValueError("no convergence")


def order_book(prices, sizes, sides):
    bids, asks = {}, {}
    traded = 0
    for p, s, d in zip(prices, sizes, sides):
        book = bids if d > 0 else asks
        book[int(p)] = book.get(int(p), 0) + int(s)
        traded += int(s)
    best = max(bids) if bids else 0
    return traded, best, min(asks) if asks else 0, len(bids), len(asks)


def needleman(a, b):
    s = np.zeros((len(a) + 1, len(b) + 1), int)
    s[:, 0] = -2 * np.arange(len(a) + 1)
    s[0] = -2 * np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            s[i, j] = max(s[i - 1, j - 1] + (1 if a[i - 1] == b[j - 1] else -1), s[i - 1, j] - 2, s[i, j - 1] - 2)
    i, j = len(a), len(b)
    path = []
    while i > 0 or j > 0:
        path.append((i, j))
        if i > 0 and j > 0 and s[i, j] == s[i - 1, j - 1] + (1 if a[i - 1] == b[j - 1] else -1):
            i, j = i - 1, j - 1
        elif i > 0 and s[i, j] == s[i - 1, j] - 2:
            i -= 1
        else:
            j -= 1
    return s[-1, -1], path[::-1]


def skyline(heights):
    stack, best = [], 0
    for i in range(len(heights) + 1):
        h = heights[i] if i < len(heights) else 0
        while stack and heights[stack[-1]] >= h:
            top = heights[stack.pop()]
            left = stack[-1] if stack else -1
            best = max(best, top * (i - left - 1))
        stack.append(i)
    return best


def bellman_ford(n, edges, w, src):
    d = np.full(n, np.inf)
    d[src] = 0
    for k in range(n):
        changed = False
        for (a, b), c in zip(edges, w):
            if d[a] + c < d[b]:
                d[b] = d[a] + c
                changed = True
        if not changed:
            return d, k
    raise ValueError("a negative cycle")


def seam(energy):
    m = energy.copy()
    h, w = m.shape
    for i in range(1, h):
        left = np.concatenate(([np.inf], m[i - 1, :-1]))
        right = np.concatenate((m[i - 1, 1:], [np.inf]))
        m[i] += np.minimum(np.minimum(left, m[i - 1]), right)
    j = int(np.argmin(m[-1]))
    path = [j]
    for i in range(h - 2, -1, -1):
        lo, hi = max(j - 1, 0), min(j + 2, w)
        j = lo + int(np.argmin(m[i, lo:hi]))
        path.append(j)
    return path[::-1], m[-1].min()


def run_length(bits):
    out = []
    prev, n = bits[0], 1
    for b in bits[1:]:
        if b == prev:
            n += 1
        else:
            out.append((int(prev), n))
            prev, n = b, 1
    out.append((int(prev), n))
    return out


def extended_gcds(a, m):
    out = np.empty(len(a), np.int64)
    for i in range(len(a)):
        r0, r1, s0, s1 = int(a[i]), m, 1, 0
        while r1:
            q = r0 // r1
            r0, r1 = r1, r0 - q * r1
            s0, s1 = s1, s0 - q * s1
        out[i] = s0 % m if r0 == 1 else -1
    return out


PROGRAMS = [
    (farey_lengths, lambda: (300,)),
    (miller_rabin, lambda: (G(1).integers(1, 10**6, 200),)),
    (langton, lambda: (40, 3000)),
    (convex_hull, lambda: (G(1).random((100, 2)),)),
    (
        point_in_polygon,
        lambda: (G(1).random((300, 2)), np.array([[0.1, 0.1], [0.9, 0.2], [0.6, 0.6], [0.8, 0.9], [0.2, 0.8]])),
    ),
    (bresenham, lambda: (64, G(1).integers(0, 64, (30, 4)))),
    (durand_kerner, lambda: (np.array([1.0, -6, 11, -6]), 30)),
    (goertzel_complex, lambda: (G(1).random(200), 5)),
    (levinson, lambda: (np.array([1.0, 0.5, 0.2, 0.1, 0.05]), 4)),
    (hilbert_curve, lambda: (4,)),
    (adaptive_rk, lambda: (1.0, 5.0, 1e-5)),
    (boris, lambda: (100, 0.05, np.array([0.0, 0.1, 0.0]), np.array([0.0, 0.0, 1.0]))),
    (upwind_limiter, lambda: (np.where(np.arange(60) < 20, 1.0, 0.0), 0.5, 20)),
    (irr, lambda: (np.array([-1000.0, 300, 400, 500]),)),
    (irr, lambda: (np.array([1.0, 1.0, 1.0]),)),
    (order_book, lambda: (G(1).integers(90, 110, 200), G(2).integers(1, 9, 200), G(3).choice([-1, 1], 200))),
    (needleman, lambda: (G(1).integers(0, 4, 40), G(2).integers(0, 4, 45))),
    (skyline, lambda: (G(1).integers(0, 50, 200),)),
    (bellman_ford, lambda: (20, G(1).integers(0, 20, (60, 2)), G(2).integers(1, 9, 60).astype(float), 0)),
    (seam, lambda: (G(1).random((20, 25)),)),
    (run_length, lambda: (G(1).integers(0, 2, 200),)),
    (extended_gcds, lambda: (np.arange(1, 100), 97)),
]
