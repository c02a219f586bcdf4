"""What native loops do of whole lists, dicts and sets: sorting, searching, parts, iteration, other shapes of rows."""

import numpy as np
import pytest

from flambeau.testing.loops import check

X = np.random.default_rng(1).random(300)
N = np.random.default_rng(2).integers(-20, 20, 300)


def medians(x, n):
    out = np.zeros((300, 2))
    for i in range(295):
        near = []
        for j in range(5):
            near.append(x[i + j])
        out[i, 0] = sorted(near)[2]
        out[i, 1] = sorted(x[i : i + 4], reverse=True)[0]
    return out


def sorted_long(x, n):
    made = []
    for i in range(300):
        made.append((n[i], i))
    made.sort()
    return made


def equals_keep_their_order(x, n):
    out = np.zeros((300, 7))
    for i in range(200):
        w = []
        for j in range(i % 60 + 1):
            w.append((n[(i + j * 7) % 300], j))
        out[i, 0] = sorted(w, reverse=True)[0][1]
        out[i, 1] = sorted(w, key=lambda t: t[0])[-1][1]
        down = sorted(w, key=lambda t: -t[0], reverse=True)
        out[i, 2], out[i, 3] = down[0][1], down[-1][0]
        w.sort(key=lambda t: t[0] % 5)
        out[i, 4] = w[len(w) // 2][1]
        w.sort(reverse=True)
        out[i, 5] = w[len(w) // 2][1]
        w.reverse()
        out[i, 6] = w[0][0]
    return out


def extrema(x, n):
    out = np.zeros((300, 6))
    for i in range(200):
        w = []
        for j in range(i % 7):
            w.append(x[i + j])
        out[i, 0] = max(w, default=-1.0)
        out[i, 1] = min(w, default=x[i])
        if w:
            out[i, 2] = max(w, key=lambda v: (v * 10) % 1)
            out[i, 3] = min(w, key=lambda v: (v * 10) % 1)
        out[i, 4] = sum(w, x[i])
        out[i, 5] = len(w[1:]) + len(w[:-1]) + len(w[::-1]) + len(w[-3:2])
    return out


def dicts(x, n):
    out = np.zeros((300, 7))
    for i in range(200):
        d = {}
        for j in range(i, min(300, i + 30)):
            d[int(n[j])] = d.get(int(n[j]), 0) + 1
        for k in d:
            out[i, 0] += k
        for k, v in d.items():
            out[i, 1] += k * v
        for v in d.values():
            out[i, 2] = v
        out[i, 3], out[i, 4], out[i, 5] = max(d, key=d.get), sorted(d)[0], max(d.values())
        out[i, 6] = sorted(d.items(), key=lambda t: (-t[1], t[0]))[0][0]
    return out


def keys_that_left(x, n):
    d, total = {}, 0
    for i in range(300):
        d[i] = i
        if i % 3 == 0:
            del d[i // 3]
        if i % 4 == 1:
            total += d.pop(i)
        if i % 10 == 0:
            for k, v in d.items():
                total += k * (i + 1) - v
    return total, d


def methods(x, n):
    a, out = [], np.zeros((300, 5))
    for i in range(300):
        a.insert(int(n[i]), i)
        if len(a) > 20:
            out[i, 0] = a.pop(3)
        if i in a:
            out[i, 1] = a.index(i)
        out[i, 2] = a.count(5)
        b = a[2:5]
        b.extend(a)
        out[i, 3] = len(b)
        if 7 in a and i > 40 and 8 not in a:
            a.remove(7)
        c = a + b
        out[i, 4] = c[-1]
    return out, a


def sets(x, n):
    out = np.zeros(300)
    for i in range(290):
        s = set()
        for j in range(10):
            s.add(int(n[i + j]))
        out[i] = sorted(s)[len(s) // 2] + len(s)
    return out


def written_down(x, n):
    out = np.zeros(300)
    for i in range(300):
        d, s = {1: 2, 3: i}, {1, i}
        row = [0] * (i % 5 + 1)
        row[0] = i
        out[i] = d[3] + d[1] + len(s) + (i in s) + sum(row)
    return out


def generators(x, n):
    out = np.zeros((300, 5))
    for i in range(290):
        out[i, 0] = sum((x[j] * 2 for j in range(i, i + 5)), x[i])
        out[i, 1] = sum((j * 2 for j in range(i, i + 5)), i)
        out[i, 2] = sorted(x[j] * 2 for j in range(i, i + 5))[2]
        out[i, 3] = max((x[j] for j in range(i % 3)), default=x[0])
        out[i, 4] = min((x[j] for j in range(i, i + 3)), key=lambda v: (v * 10) % 1)
    return out


def listed(x, n):
    out = np.zeros((300, 4))
    for i in range(290):
        a, b, c = list(range(i % 7)), list(x[i : i + 4]), list(n[j] for j in range(i))
        out[i, 0], out[i, 1], out[i, 2] = len(a), b[-1], len(c) + len(list(reversed(a)))
        for v in reversed(b):
            out[i, 3] = out[i, 3] * 0.5 + v
        for v in reversed(range(i)):
            out[i, 3] = out[i, 3] * 0.5 + v
        for v in reversed(n[i:]):
            out[i, 3] = out[i, 3] * 0.5 + v
    return out


def changing_meanwhile(x, n):
    a, t = [], 0
    for i in range(300):
        a.append(i)
        for v in reversed(a):
            t = t * 3 % 1001 + v
            if v % 7 == 0 and len(a) > 3:
                a[0] += 1
            if v % 11 == 0:
                a.pop()
        for k, v in enumerate(a):
            t = t * 3 % 1001 + v * k
            if k < 3:
                a.append(v)
            if v > 5000:
                break
        for v, w, k in zip(a, n, range(3, 100)):
            t = t * 3 % 1001 + v * k + w
    return t, a


def shapes(x, n):
    out, k = np.zeros((300, 5)), x[:12].copy().reshape(3, 4).T
    for i in range(30):
        m = x.reshape(30, 10)
        a = m[i].reshape(2, 5)
        out[i, 0] = a[1, 2]
        a[0, 0] = -1.0
        out[i, 1] = np.reshape(m[i] * 2, (5, -1))[3, 1]
        out[i, 2], out[i, 3] = m[: i + 1].reshape(-1)[-1], m.ravel()[i]
        out[i, 4] = k.flatten()[i % 12]
    return out, x


NATIVE = [
    *(medians, sorted_long, equals_keep_their_order, extrema, dicts, keys_that_left, methods, sets, written_down),
    *(generators, listed, changing_meanwhile, shapes),
]


@pytest.mark.parametrize("fn", NATIVE)
def test_native(fn):
    check(fn, X, N)


def order_with_nan(x, n):
    out = []
    for i in range(300):
        w = []
        for j in range(5):
            w.append(x[j])
        w.append(x[i] / (x[i] - x[200]))
        w.append((x[i] - x[200]) / (x[i] - x[200]))
        out.append(sorted(w)[0])
    return out


def grows_meanwhile(x, n):
    d = {}
    for i in range(300):
        d[i] = x[i]
        if i == 200:
            for k in d:
                d[-k - 5] = 1.0
    return d


def not_there(x, n):
    a = []
    for i in range(300):
        a.append(i)
        x[i] = a.index(i * 2) if i > 200 else 0
    return x


def of_nothing(x, n):
    for i in range(300):
        w = []
        for j in range(5 - i):
            w.append(j)
        x[i] = max(w, key=lambda v: -v)
    return x


def other_size(x, n):
    m, t = x.reshape(30, 10), 0.0
    for i in range(30):
        t += m[i].reshape(3, 4)[0, 0]
    return t


def other_order(x, n):
    t, m = 0.0, x.reshape(30, 10).T
    for i in range(25):
        t += m[:, i : i + 4].reshape(-1)[3] + m.reshape(3, 100)[1, 2]
    return t


def over_a_set(x, n):
    s, t = set(), 0
    for i in range(300):
        s.add(i % 40 * 37)
        for v in s:
            t = t * 3 % 1001 + v
    return t


@pytest.mark.parametrize(
    "fn", [order_with_nan, grows_meanwhile, not_there, of_nothing, other_size, other_order, over_a_set]
)
def test_errors_and_orders_are_pythons(fn):
    check(fn, X, N, native=None)
