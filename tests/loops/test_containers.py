"""Lists, dicts and sets of numbers that native loops change, and strings of bytes."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing.loops import check

R = np.random.default_rng(1)
X, N = R.random(300), R.integers(-20, 20, 300)


def found(x, n):
    out = []
    for i in range(len(x)):
        if x[i] > 0.5:
            out.append(i)
    return out


def two_names(x, n):
    out = []
    other, kept = out, {"list": out}
    for i in range(len(x)):
        if x[i] > 0.5:
            out.append(x[i])
    return out, other is out, kept["list"] is out, kept


def tuples(x, n):
    points = []
    for i in range(len(x)):
        if x[i] > 0.7:
            points.append((i, x[i], n[i], x[i] > 0.8, True))
    return points


def used_after(x, n):
    out = []
    for i in range(len(x)):
        if x[i] > 0.5:
            out.append(i)
    out.append(7)
    return len(out), np.array(out), sorted(out)[:3], out[-2:], 5 in out


def given_some(x, n):
    a, d, s = [1, 2], {1: 2.0, 5: 3.0}, {3, 4}
    for i in range(len(x)):
        a.append(a[-1] + a[-2] if a[-1] < 1000 else 1)
        d[i] = d.get(i - 1, 0.0) + float(x[i])
        s.add(i % 10)
    return a, d, s


def histogram(x, n):
    counts = {}
    for v in n:
        counts[v] = counts.get(v, 0) + 1
    return counts


def histogram_by_in(x, n):
    counts, firsts = {}, {}
    for i in range(len(n)):
        k = int(n[i]) // 5
        if k not in counts:
            counts[k] = 0
        counts[k] += 1
        firsts.setdefault(k, i)
    return counts, firsts


def deleted(x, n):
    d = {}
    for i in range(len(n)):
        k = int(n[i])
        if k in d and d[k] > 3:
            del d[k]
        else:
            d[k] = d.get(k, 0) + 1
    return d


def depth_first(x, n):
    stack, order, k = [0], np.zeros(300, int), 0
    while stack:
        i = stack.pop()
        order[k] = i
        k += 1
        for j in (2 * i + 1, 2 * i + 2):
            if j < 300:
                stack.append(j)
    return order, k


def flood(x, n):
    line, seen, count = [(0, 0)], {(0, 0)}, 0
    while line:
        i, j = line.pop(0)
        count += 1
        for di, dj in ((1, 0), (0, 1), (-1, 0), (0, -1)):
            a, b = i + di, j + dj
            if 0 <= a < 15 and 0 <= b < 20 and x[a * 20 + b] < 0.7 and (a, b) not in seen:
                seen.add((a, b))
                line.append((a, b))
    return count, len(seen)


def by_levels(x, n):
    level, total = [0], 0
    while level:
        following = []
        for v in level:
            total += v + n[v]
            if v < 100:
                following.append(2 * v + 1)
                if v % 3 == 0:
                    following.append(3 * v + 1)
        level = following
    return total


def primes(x, n):
    out, c = [], 2
    while len(out) < 60:
        for p in out:
            if c % p == 0:
                break
        else:
            out.append(c)
        c += 1
    return out


def memory(x, n):
    cache = {1: 1}
    for start in range(1, 300):
        v, c = start, 0
        while v not in cache:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            c += 1
        cache[start] = cache[v] + c
    return cache


def made_in_turns(x, n):
    out = np.zeros(300)
    for i in range(300):
        near = []
        for j in range(max(0, i - 5), min(300, i + 5)):
            if x[j] > x[i]:
                near.append(x[j])
        out[i] = len(near) + (near[0] if near else -1)
    return out


def next_greater(x, n):
    waiting, out = [], np.full(300, -1)
    for i in range(300):
        while waiting and x[waiting[-1]] < x[i]:
            out[waiting.pop()] = i
        waiting.append(i)
    return out, waiting


def returned(x, n):
    out = []
    for i in range(300):
        out.append(i)
        if x[i] > 0.99:
            return out
    return out


def started_anew(x, n):
    out = []
    for i in range(300):
        if i % 50 == 0:
            out = []
        out.append(i)
    return out


def items_are_set(x, n):
    out = [0, 0, 0, 0, 0]
    for i in range(300):
        out[int(x[i] * 5)] += 1
        out[-1] = out[i % 5]
    return out


def brackets(x, n):
    text, open_, ok = b"(()[]{}(([])))" * 20, [], True
    for c in text:
        if c in b"([{":
            open_.append(c)
        elif not open_ or (open_.pop(), c) not in ((40, 41), (91, 93), (123, 125)):
            ok = False
    return ok and not open_


def pairs_of_bytes(x, n):
    text, pairs, s = b"ACGTTGCA" * 400, {}, 0
    for i in range(len(text) - 1):
        if text[i] == 65 or text[i] == text[-1 - i]:
            s += text[i]
        k = text[i] * 256 + text[i + 1]
        pairs[k] = pairs.get(k, 0) + 1
    for i, c in enumerate(text):
        s += c * i
    return s, pairs


NATIVE = [
    *(found, two_names, tuples, used_after, given_some, histogram, histogram_by_in, deleted, depth_first, flood),
    *(by_levels, primes, memory, made_in_turns, next_greater, returned, items_are_set, brackets, pairs_of_bytes),
]


@pytest.mark.parametrize("fn", NATIVE)
def test_native(fn):
    check(fn, X, N)


def mixed(x, n):
    out = [1]
    for i in range(300):
        out.append(x[i] if i % 2 else i)
    return out


def floats_as_keys(x, n):
    d = {}
    for i in range(300):
        d[x[i]] = i
    return d


def order_of_a_set(x, n):
    s = set()
    for i in range(300):
        s.add(i % 40)
        s.discard(i % 7)
    return list(s)


@pytest.mark.parametrize("fn", [started_anew, mixed, floats_as_keys, order_of_a_set])
def test_plain(fn):
    check(fn, X, N, native=False)


def too_far(x, n):
    out = []
    for i in range(400):
        x[i] = -1.0
        out.append(n[i])
    return out


def popped_too_often(x, n):
    out = [1, 2, 3]
    for i in range(300):
        x[i] = out.pop()
    return x


def no_such_key(x, n):
    d = {0: 1}
    for i in range(300):
        x[i] = d[i // 100]
    return x


def too_long(x, n):
    out = []
    for i in range(100):
        out.append(2**i)
    return out


def byte_too_far(x, n):
    text, s = b"abc" * 100, 0
    for i in range(301):
        s += text[i]
    return s


@pytest.mark.parametrize("fn", [too_far, popped_too_often, no_such_key, too_long, byte_too_far])
def test_errors_are_pythons(fn):
    check(fn, X, N, native=None)


def test_lists_from_outside_are_written_by_python():
    kept = []

    def add(x):
        for i in range(len(x)):
            if x[i] > 0.5:
                kept.append(i)
        return len(kept)

    compiled, want = torch.compile(add), int((X > 0.5).sum())
    assert [compiled(X) for _ in range(3)] == [want, 2 * want, 3 * want]


def test_each_call_has_a_list_of_its_own():
    compiled = torch.compile(found)
    first, second = compiled(X, N), compiled(X, N)
    first.append(-1)
    assert first is not second and second == found(X, N)


def gradient(x):
    out, s = [], 0.0
    for i in range(len(x)):
        out.append(i)
        s = s + x[i] * x[i]
    return s


def test_derivatives_of_loops_with_lists_are_taken_plainly():
    np.testing.assert_allclose(torch.func.grad(gradient)(X[:60]), 2 * X[:60])
