"""Images, linear algebra, integration, differential equations, automata."""

import math

import numpy as np

# ---- images


def median_filter(image):
    h, w = image.shape
    out = image.copy()
    window = np.empty(9, image.dtype)
    for i in range(1, h - 1):
        for j in range(1, w - 1):
            k = 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    v = image[i + di, j + dj]
                    m = k
                    while m > 0 and window[m - 1] > v:
                        window[m] = window[m - 1]
                        m -= 1
                    window[m] = v
                    k += 1
            out[i, j] = window[4]
    return out


def floyd_steinberg(image):
    a = image.astype(np.float64)
    h, w = a.shape
    for y in range(h):
        for x in range(w):
            old = a[y, x]
            new = 255.0 if old > 127 else 0.0
            a[y, x] = new
            error = old - new
            if x + 1 < w:
                a[y, x + 1] += error * 7 / 16
            if y + 1 < h:
                if x > 0:
                    a[y + 1, x - 1] += error * 3 / 16
                a[y + 1, x] += error * 5 / 16
                if x + 1 < w:
                    a[y + 1, x + 1] += error / 16
    return a.astype(np.uint8)


def flood_fill(image, y, x, colour):
    old = image[y, x]
    stack = np.empty((image.size * 4, 2), np.int32)
    stack[0, 0], stack[0, 1] = y, x
    top, filled = 1, 0
    while top:
        top -= 1
        i, j = stack[top, 0], stack[top, 1]
        if i < 0 or j < 0 or i >= image.shape[0] or j >= image.shape[1] or image[i, j] != old:
            continue
        image[i, j] = colour
        filled += 1
        for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            stack[top, 0], stack[top, 1] = i + di, j + dj
            top += 1
    return filled


def bilinear_resize(image, h, w):
    out = np.empty((h, w), np.float32)
    sy, sx = (image.shape[0] - 1) / (h - 1), (image.shape[1] - 1) / (w - 1)
    for i in range(h):
        for j in range(w):
            y, x = i * sy, j * sx
            y0, x0 = int(y), int(x)
            y1, x1 = min(y0 + 1, image.shape[0] - 1), min(x0 + 1, image.shape[1] - 1)
            fy, fx = y - y0, x - x0
            top = image[y0, x0] * (1 - fx) + image[y0, x1] * fx
            bottom = image[y1, x0] * (1 - fx) + image[y1, x1] * fx
            out[i, j] = top * (1 - fy) + bottom * fy
    return out


def integral_and_box(image, r):
    h, w = image.shape
    s = np.zeros((h + 1, w + 1))
    for i in range(h):
        line = 0.0
        for j in range(w):
            line += image[i, j]
            s[i + 1, j + 1] = s[i, j + 1] + line
    out = np.zeros_like(image)
    for i in range(h):
        for j in range(w):
            a, b = max(i - r, 0), min(i + r + 1, h)
            c, d = max(j - r, 0), min(j + r + 1, w)
            out[i, j] = (s[b, d] - s[a, d] - s[b, c] + s[a, c]) / ((b - a) * (d - c))
    return out


def hough(edges, thetas):
    h, w = edges.shape
    reach = int(math.hypot(h, w)) + 1
    votes = np.zeros((2 * reach, thetas), np.int32)
    for y in range(h):
        for x in range(w):
            if edges[y, x]:
                for t in range(thetas):
                    angle = math.pi * t / thetas
                    rho = int(round(x * math.cos(angle) + y * math.sin(angle)))
                    votes[rho + reach, t] += 1
    return votes


def rgb_to_hsv(image):
    out = np.empty(image.shape)
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            r, g, b = image[i, j]
            high, low = max(r, g, b), min(r, g, b)
            span = high - low
            if span == 0:
                hue = 0.0
            elif high == r:
                hue = ((g - b) / span) % 6
            elif high == g:
                hue = (b - r) / span + 2
            else:
                hue = (r - g) / span + 4
            out[i, j, 0] = hue * 60
            out[i, j, 1] = 0.0 if high == 0 else span / high
            out[i, j, 2] = high
    return out


# ---- numbers


def power_method(a, steps):
    n = a.shape[0]
    v = np.ones(n) / math.sqrt(n)
    value = 0.0
    for _ in range(steps):
        w = a @ v
        value = np.dot(v, w)
        v = w / np.linalg.norm(w)
    return value, v


def jacobi_eigenvalues(a, sweeps):
    a = a.copy()
    n = a.shape[0]
    for _ in range(sweeps):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(a[p, q]) > 1e-12:
                    theta = (a[q, q] - a[p, p]) / (2 * a[p, q])
                    t = (1.0 if theta >= 0 else -1.0) / (abs(theta) + math.sqrt(theta * theta + 1))
                    c = 1 / math.sqrt(t * t + 1)
                    s = t * c
                    for k in range(n):
                        x, y = a[k, p], a[k, q]
                        a[k, p], a[k, q] = c * x - s * y, s * x + c * y
                    for k in range(n):
                        x, y = a[p, k], a[q, k]
                        a[p, k], a[q, k] = c * x - s * y, s * x + c * y
    return np.sort(np.diag(a))


def qr_householder(a):
    r = a.copy()
    m, n = r.shape
    for k in range(n):
        x = r[k:, k].copy()
        x[0] += np.sign(x[0]) * np.sqrt(np.sum(x**2)) if x[0] != 0 else np.sqrt(np.sum(x**2))
        norm = np.sum(x * x)
        if norm > 0:
            for j in range(k, n):
                factor = 2 * np.sum(x * r[k:, j]) / norm
                r[k:, j] -= factor * x
    return r


def lu_pivoted(a, b):
    a, x = a.copy(), b.copy()
    n = len(b)
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(n):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
            x[k], x[pivot] = x[pivot], x[k]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= factor * a[k, j]
            x[i] -= factor * x[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= a[i, j] * x[j]
        x[i] /= a[i, i]
    return x


def nmf(v, w, h, steps):
    for _ in range(steps):
        h *= (w.T @ v) / (w.T @ w @ h + 1e-9)
        w *= (v @ h.T) / (w @ h @ h.T + 1e-9)
    return np.sqrt(np.sum((v - w @ h) ** 2))


def matrix_factorisation_sgd(users, items, ratings, p, q, rate, penalty, epochs):
    for _ in range(epochs):
        for k in range(len(ratings)):
            u, i = users[k], items[k]
            error = ratings[k]
            for f in range(p.shape[1]):
                error -= p[u, f] * q[i, f]
            for f in range(p.shape[1]):
                pf = p[u, f]
                p[u, f] += rate * (error * q[i, f] - penalty * pf)
                q[i, f] += rate * (error * pf - penalty * q[i, f])


def fft_recursive_order(x):
    n = len(x)
    out = np.empty(n, np.complex128)
    bits = 0
    while (1 << bits) < n:
        bits += 1
    for i in range(n):
        r = 0
        for b in range(bits):
            if i & (1 << b):
                r |= 1 << (bits - 1 - b)
        out[r] = x[i]
    size = 2
    while size <= n:
        step = np.exp(-2j * np.pi / size)
        for start in range(0, n, size):
            w = 1.0 + 0.0j
            for k in range(size // 2):
                even, odd = out[start + k], w * out[start + k + size // 2]
                out[start + k] = even + odd
                out[start + k + size // 2] = even - odd
                w *= step
        size *= 2
    return out


def simpson_adaptive(a, b, tolerance):
    stack = np.empty((200, 2))
    stack[0, 0], stack[0, 1] = a, b
    top, total, calls = 1, 0.0, 0
    while top > 0:
        top -= 1
        lo, hi = stack[top, 0], stack[top, 1]
        mid = 0.5 * (lo + hi)
        q1, q3 = 0.5 * (lo + mid), 0.5 * (mid + hi)
        fa, fb, fm = math.sin(lo * lo), math.sin(hi * hi), math.sin(mid * mid)
        f1, f3 = math.sin(q1 * q1), math.sin(q3 * q3)
        whole = (hi - lo) / 6 * (fa + 4 * fm + fb)
        halves = (hi - lo) / 12 * (fa + 4 * f1 + 2 * fm + 4 * f3 + fb)
        calls += 5
        if abs(halves - whole) < 15 * tolerance * (hi - lo) or top > 190:
            total += halves + (halves - whole) / 15
        else:
            stack[top, 0], stack[top, 1] = lo, mid
            stack[top + 1, 0], stack[top + 1, 1] = mid, hi
            top += 2
    return total, calls


def newton_fractal(n, limit):
    image = np.zeros((n, n), np.int32)
    for i in range(n):
        for j in range(n):
            z = complex(-2 + 4 * i / n, -2 + 4 * j / n)
            k = 0
            while k < limit and abs(z * z * z - 1) > 1e-6:
                if z == 0:
                    break
                z -= (z * z * z - 1) / (3 * z * z)
                k += 1
            image[i, j] = k
    return image


def runge_kutta_fehlberg(x, v, end, tolerance):
    t, h, steps = 0.0, 0.01, 0
    while t < end:
        h = min(h, end - t)
        k1x, k1v = v, (1 - x * x) * v - x
        k2x, k2v = v + h * k1v / 2, (1 - (x + h * k1x / 2) ** 2) * (v + h * k1v / 2) - (x + h * k1x / 2)
        xa, va = x + h * k2x, v + h * k2v
        error = math.sqrt((xa - x - h * k1x) ** 2 + (va - v - h * k1v) ** 2)
        if error <= tolerance:
            t, x, v = t + h, xa, va
            steps += 1
        h *= min(2.0, max(0.3, 0.9 * (tolerance / (error + 1e-300)) ** 0.5))
    return x, v, steps


def collatz_longest(n):
    lengths = np.zeros(n, np.int32)
    lengths[1] = 1
    best = 1
    for i in range(2, n):
        k, steps = i, 0
        while k >= n or lengths[k] == 0:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            steps += 1
        lengths[i] = lengths[k] + steps
        if lengths[i] > lengths[best]:
            best = i
    return best, lengths[best]


# ---- partial differential equations and automata


def wave_1d(u, previous, c, steps):
    n = u.shape[0]
    following = np.zeros(n)
    for _ in range(steps):
        for i in range(1, n - 1):
            following[i] = 2 * u[i] - previous[i] + c * c * (u[i + 1] - 2 * u[i] + u[i - 1])
        previous, u, following = u, following, previous
    return u


def burgers(u, dt, dx, nu, steps):
    for _ in range(steps):
        un = u.copy()
        u[1:-1] = (
            un[1:-1] - un[1:-1] * dt / dx * (un[1:-1] - un[:-2]) + nu * dt / dx**2 * (un[2:] - 2 * un[1:-1] + un[:-2])
        )
        u[0] = u[-2]
        u[-1] = u[1]


def shallow_water(h, u, v, dt, steps):
    n, m = h.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] -= dt * 9.81 * (h[i + 1, j] - h[i - 1, j]) / 2
                v[i, j] -= dt * 9.81 * (h[i, j + 1] - h[i, j - 1]) / 2
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                h[i, j] -= dt * (u[i + 1, j] - u[i - 1, j] + v[i, j + 1] - v[i, j - 1]) / 2


def sor_red_black(u, f, omega, steps):
    n = u.shape[0]
    worst = 0.0
    for _ in range(steps):
        worst = 0.0
        for colour in range(2):
            for i in range(1, n - 1):
                for j in range(1 + (i + colour) % 2, n - 1, 2):
                    change = omega * ((u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j]) / 4 - u[i, j])
                    u[i, j] += change
                    worst = max(worst, abs(change))
    return worst


def rule_110(cells, steps):
    n = len(cells)
    history = np.zeros((steps + 1, n), np.uint8)
    history[0] = cells
    for t in range(steps):
        for i in range(n):
            pattern = 4 * history[t, i - 1] + 2 * history[t, i] + history[t, (i + 1) % n]
            history[t + 1, i] = (110 >> pattern) & 1
    return history


def sandpile(grid):
    h, w = grid.shape
    topples = 0
    unstable = True
    while unstable:
        unstable = False
        for i in range(h):
            for j in range(w):
                if grid[i, j] >= 4:
                    unstable = True
                    topples += 1
                    grid[i, j] -= 4
                    if i > 0:
                        grid[i - 1, j] += 1
                    if i < h - 1:
                        grid[i + 1, j] += 1
                    if j > 0:
                        grid[i, j - 1] += 1
                    if j < w - 1:
                        grid[i, j + 1] += 1
    return topples


def langtons_ant(n, steps):
    grid = np.zeros((n, n), np.bool_)
    x = y = n // 2
    dx, dy = 0, -1
    for _ in range(steps):
        if grid[y, x]:
            dx, dy = dy, -dx
        else:
            dx, dy = -dy, dx
        grid[y, x] = not grid[y, x]
        x, y = (x + dx) % n, (y + dy) % n
    return grid.sum(), x, y
