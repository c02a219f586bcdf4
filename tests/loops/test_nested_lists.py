"""Lists, dicts and sets within lists and dicts that native loops make: the plain function beside the compiled one."""

import copy

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.utils import counters

RNG = np.random.default_rng(5)
X = RNG.random(400)
K = RNG.integers(0, 37, 400)
EDGES = RNG.integers(0, 60, (400, 2))


def buckets(x, k):
    """A list for each key."""
    rows = []
    for _ in range(37):
        rows.append([])
    for i in range(len(x)):
        rows[k[i]].append(x[i])
    return rows


def longest(x, k):
    best = 0
    for start in range(20):
        rows = []
        for _ in range(37):
            rows.append([])
        for i in range(start, len(k)):
            rows[k[i]].append(i)
        for row in rows:
            best = max(best, len(row))
    return best


def components(edges):
    """Parts of a graph, by lists of neighbours that are made in the loop."""
    neighbours = []
    for _ in range(60):
        neighbours.append([])
    for a, b in edges:
        neighbours[a].append(b)
        neighbours[b].append(a)
    seen, parts = np.zeros(60, np.int64), []
    for v in range(60):
        if seen[v]:
            continue
        part, todo = [], [v]
        seen[v] = 1
        while todo:
            u = todo.pop()
            part.append(u)
            for w in neighbours[u]:
                if not seen[w]:
                    seen[w] = 1
                    todo.append(w)
        parts.append(part)
    return parts, neighbours


def triangle(n):
    rows = []
    for i in range(n):
        row = [1]
        for j in range(1, i):
            row.append((rows[i - 1][j - 1] + rows[i - 1][j]) % 1000003)
        if i:
            row.append(1)
        rows.append(row)
    return rows


def one_list_twice(x):
    """A list that is held in two places stays one."""
    rows = []
    for i in range(len(x)):
        if i % 50 == 0:
            row = []
            rows.append(row)
            rows.append(row)
        rows[-1].append(x[i])
    return rows


def groups(x, k):
    by = {}
    for i in range(len(x)):
        if k[i] not in by:
            by[k[i]] = []
        by[k[i]].append(x[i])
    return by


def sets_of(edges):
    near = []
    for _ in range(60):
        near.append(set())
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    n = 0
    for a, b in edges:
        for c in range(60):
            n += c in near[a] and c in near[b]
    return n


def replaced(x):
    rows = [[], []]
    for i in range(len(x)):
        rows[i % 2].append(x[i])
        if len(rows[i % 2]) > 30:
            rows[i % 2] = [x[i], 1.0]
    return rows


def with_numbers(x, k):
    out = []
    for i in range(len(x)):
        part = [x[i], x[i - 1]]
        part.append(1.0)
        out.append((i, part))
        if k[i] == 3 and len(out) > 4:
            out.pop()
    return out


def seen_from_outside(x):
    """A row that has a name of its own too."""
    rows, row = [], []
    for i in range(len(x)):
        if i % 40 == 0:
            row = []
            rows.append(row)
        row.append(x[i])
    row.append(-1.0)
    return rows, row


def holds_itself(x):
    a = []
    for i in range(len(x)):
        a.append(a)
        x[i] = len(a)
    return len(a)


def three_deep(x):
    cubes = []
    for i in range(len(x)):
        if i % 100 == 0:
            cubes.append([])
        if i % 10 == 0:
            cubes[-1].append([])
        cubes[-1][-1].append(x[i])
    return cubes


PROGRAMS = [
    (buckets, (X, K)),
    (longest, (X, K)),
    (components, (EDGES,)),
    (triangle, (60,)),
    (one_list_twice, (X,)),
    (groups, (X, K)),
    (sets_of, (EDGES,)),
    (replaced, (X,)),
    (with_numbers, (X, K)),
    (seen_from_outside, (X,)),
    (holds_itself, (X,)),
    (three_deep, (X,)),
]
NATIVE = (longest, one_list_twice, groups, three_deep)


def pattern(tree, seen):
    """The structure, with a number for each list by its identity."""
    if isinstance(tree, list | dict):
        if id(tree) in seen:
            return seen[id(tree)]
        seen[id(tree)] = len(seen)
    parts = [*tree.items()] if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else []
    return [pattern(t, seen) for t in parts] or repr(tree)


@pytest.mark.parametrize("fn, given", PROGRAMS, ids=lambda x: getattr(x, "__name__", None))
def test_programs(fn, given):
    want = copy.deepcopy(given)
    plain, fast, before = fn(*want), torch.compile(fn), counters["stats"]["native_loops"]
    for _ in range(2):
        got = copy.deepcopy(given)
        made = fast(*got)
        assert pattern(made, {}) == pattern(plain, {})
        for a, b in zip(want, got):
            np.testing.assert_array_equal(a, b)
    if fn in NATIVE:
        assert counters["stats"]["native_loops"] > before


def too_far(x):
    rows = [[], []]
    for i in range(len(x)):
        rows[i % 2].append(x[i])
        x[i] = rows[0][i // 2 + (i == 77)]
    return rows


def empty_row(x):
    rows = []
    for i in range(len(x)):
        rows.append([])
        if i % 3:
            rows[i].append(x[i])
        x[i] = 1.0 + rows[i][0] if i < 90 and i % 3 else rows[i].pop() if i > 91 else 2.0
    return rows


@pytest.mark.parametrize("fn", [too_far, empty_row])
def test_errors(fn):
    fast, results = torch.compile(fn), []
    for f in (fn, fast, fast):
        x = X[:200].copy()
        try:
            results.append((repr(f(x)), x.tolist()))
        except Exception as e:
            results.append((type(e), str(e), x.tolist()))
    assert results[0] == results[1] == results[2]
