"""Writes of parts of an array: they are made in the array's own memory, and what is read is what was there before (scheduling/overwriting.py)."""

import random

import numpy as np
import pytest

import flambeau as torch
from flambeau.base.expr import Symbol, Var, of
from flambeau.inductor.ir import index_ranges


def one(a, b):
    a[0, 1] = 3


def from_itself(a, b):
    a[0, 0] = a[1, 1]


def exchanged(a, b):
    a[0, 0], a[1, 1] = a[1, 1], a[0, 0]


def views_exchanged(a, b):
    a[0], a[1] = a[1], a[0]


def copies_exchanged(a, b):
    a[0], a[1] = a[1].copy(), a[0].copy()


def added(a, b):
    a[1, 2] += 1


def rows_added(a, b):
    a[1:3] += b[1:3]


def a_column(a, b):
    a[:, 0] = a[:, 1]


def neighbours(a, b):
    a[1:-1] = a[:-2] + a[2:]


def moved_on(a, b):
    a[1:] = a[:-1]


def one_after_the_other(a, b):
    a[0] = 1
    a[1] = a[0] + a[2]
    a[2] = a[1] * 2
    a[0] = a[2] - a[3]


def with_results(a, b):
    x = a[1] * 2
    a[1] = b[0]
    y = a[1] + a[2]
    a[2] = x
    return x, y, a.sum()


def of_the_line(a, b):
    a.ravel()[3] = 5
    a.reshape(-1)[4:7] = a[2, :3]


def transposed(a, b):
    a[:] = (b * 2).T


def of_the_transposed(a, b):
    a.T[1] = b[1]


def both(a, b):
    a[0] = b[1]
    b[1] = a[2]
    a[2, 0] = b[1, 0] + b[0, 0]


def a_product(a, b):
    a[:4, :4] = a[:4, :4] @ b[:4, :4]


PROGRAMS = [
    one, from_itself, exchanged, views_exchanged, copies_exchanged, added, rows_added, a_column, neighbours, moved_on, one_after_the_other, with_results,
    both, a_product, of_the_line, transposed, of_the_transposed,
]  # fmt: skip
DTYPES = ["f8", "f4", "i8", "i4", "u1", "c16"]


def arrays(n: int, dtype: str):
    r = np.random.default_rng(0)
    return [(r.random((n, n)) * 9).astype(dtype) for _ in range(2)]


def same(f, compiled, given, dtype):
    own = [a.copy() for a in given]
    want, got = f(*given), compiled(*own)
    for w, g in zip([*(want or ()), *given], [*(got or ()), *own], strict=True):
        if dtype in ("f4", "f8", "c16"):
            np.testing.assert_allclose(g, w, rtol=1e-5)
        else:
            np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("f", PROGRAMS)
def test_as_numpy_writes_them(f, dtype):
    compiled = torch.compile(f)
    for _ in range(2):
        same(f, compiled, arrays(6, dtype), dtype)


@pytest.mark.parametrize("f", PROGRAMS)
def test_of_large_arrays(f):
    compiled = torch.compile(f, dynamic=False)
    same(f, compiled, arrays(400, "f8"), "f8")


SMALL = [
    one,
    from_itself,
    exchanged,
    views_exchanged,
    copies_exchanged,
    added,
    a_column,
    rows_added,
    one_after_the_other,
]


@pytest.mark.parametrize("dtype", ["f8", "i8"])
@pytest.mark.parametrize("f", SMALL)
def test_nothing_but_the_parts_is_touched(f, dtype, monkeypatch):
    """No step of the graph has as many elements as the array."""
    from flambeau.inductor import compile as compiler

    seen = []
    write = compiler.overwrite

    def watched(lowering, steps, aliases):
        found = write(lowering, steps, aliases)
        for s in steps:
            for name in {n.buffer for n in s.nodes}:
                seen.append((name in found.placed, lowering.buffers[name].size, s.total))
        return found

    monkeypatch.setattr(compiler, "overwrite", watched)
    torch._dynamo.reset()
    n = 97
    a, b = arrays(n, dtype)
    torch.compile(f, dynamic=False)(a, b)
    assert seen and all(over or size <= 2 * n for over, size, _ in seen)


def at_a_place(a, b, n):
    a[n, n] += 1


def the_next_row(a, b, n):
    a[n] = a[n + 1]


def across(a, b, n):
    a[n, 1] = a[1, n] + b[n, n]
    a[n + 1, 2] = a[n, 1] * 2


def some_rows(a, b, n):
    a[n : n + 2] += b[n : n + 2]


@pytest.mark.parametrize("dtype", ["f8", "i8"])
@pytest.mark.parametrize("f", [at_a_place, the_next_row, across, some_rows])
@torch._dynamo.config.patch(small_arrays_plainly=False)
def test_places_that_vary(f, dtype, monkeypatch):
    """The graph for any place copies no more than that for one does."""
    from flambeau.inductor import compile as compiler

    over = []
    write = compiler.overwrite
    monkeypatch.setattr(compiler, "overwrite", lambda *args: over.append(write(*args)) or over[-1])
    torch._dynamo.reset()
    compiled = torch.compile(f)
    for n in (1, 2, 3, -3, 4):
        given = arrays(8, dtype)
        own = [a.copy() for a in given]
        f(*given, n), compiled(*own, n)
        for w, g in zip(given, own):
            np.testing.assert_array_equal(g, w)
    if (f, dtype) != (across, "i8"):  # whether its sums overflow is asked behind the writes
        assert len(over) > 1 and all(found.positions for found in over)


TEMPLATES = [
    "{a}[{i}] = {b}[{i}]", "{a}[{i}] += {b}[{j}]", "{a}[{i}], {a}[{j}] = {a}[{j}], {a}[{i}]", "{a}[{s}] = {b}[{t}] * 2", "{a}[{s}] -= 1",
    "{a}[{s}] = {a}[{t}] + {b}[{s}]", "{a}[:, {i}] = {b}[:, {j}]", "{a}[{i}, {s}] = {a}[{j}, {t}]", "{a}[{s}, {i}] *= {b}[{t}, {j}]",
    "r.append({a}[{s}] + 1)", "r.append({b}[{i}].sum())", "{a}[{i}, {j}] = {b}[{j}, {i}]", "{a}[::2] = {b}[::2] + {a}[1::2]",
]  # fmt: skip


def program(seed: int):
    r = random.Random(seed)
    lines = []
    for _ in range(r.randint(2, 6)):
        lo, at, length = r.randint(0, 4), r.randint(0, 4), r.randint(1, 3)
        a, b = r.choice(["ab", "ba", "aa", "ab"])
        where = dict(a=a, b=b, i=r.randint(0, 7), j=r.randint(0, 7), s=f"{lo}:{lo + length}", t=f"{at}:{at + length}")
        lines.append(r.choice(TEMPLATES).format(**where))
    text = "\n    ".join(["def f(a, b):", "r = []", *lines, "return tuple(r)"])
    scope: dict = {}
    exec(compile(text, f"<parts {seed}>", "exec"), scope)
    return scope["f"], text


@pytest.mark.parametrize("first", [0, 10, 20, *(pytest.param(n, marks=pytest.mark.slow) for n in range(30, 400, 10))])
def test_programs_at_random(first):
    for seed in range(first, first + 10):
        f, text = program(seed)
        compiled = torch.compile(f)
        for n in (8, 8, 12):
            given = arrays(n, "f8")
            own = [x.copy() for x in given]
            want, got = f(*given), compiled(*own)
            for w, g in zip([*want, *given], [*got, *own], strict=True):
                np.testing.assert_allclose(g, w, rtol=1e-9, err_msg=text)


def test_ranges_of_indices():
    i, j = Var(1, 8), Var(2, 4)
    rows, columns = of(i) * 4, of(j)
    assert index_ranges.apart(columns, columns + 4) and not index_ranges.apart(columns, columns + 3)
    assert index_ranges.apart(rows, rows + 1) and not index_ranges.apart(rows, columns)
    n, m = of(Symbol("s0")), of(Symbol("s1"))
    assert index_ranges.apart(n * 8 + columns, n * 8 + 4 + columns) and not index_ranges.apart(n * 8, m * 8 + 4)
    assert not index_ranges.apart(n, n) and not index_ranges.apart(n, 4)
    assert not index_ranges.apart(3, 3) and index_ranges.apart(3, 2) and not index_ranges.apart(None, 3)
    assert index_ranges.once_each((i, j), rows + columns) and not index_ranges.once_each((i, j), columns)
    assert not index_ranges.once_each((i, j), of(i) + columns) and index_ranges.once_each((), 5)
