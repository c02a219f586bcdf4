"""Writes where a mask holds: NumPy's results and errors, and only the elements that are named are written."""

import numpy as np
import pytest
from agree import BACKENDS, difference

import flambeau as torch
from flambeau.inductor import compile as compiler

R = np.random.RandomState(5)


def one(a, m, v):
    a[m] = v[0, 0]


def one_row(a, m, v):
    a[m] = v[0]


def narrow_row(a, m, v):
    a[m] = v[0, :1]


def row_of_one(a, m, v):
    a[m] = v[:1]


def rows(a, m, v):
    a[m] = v[: np.count_nonzero(m)]


def columns(a, m, v):
    a[:, m[: a.shape[1]]] = v[0, 0]


def column_each(a, m, v):
    a[:, m[: a.shape[1]]] = a[:, :1] * 2


def twice(a, m, v):
    a[m] = 1
    a[~m] = v[0]


def of_itself(a, m, v):
    a[a[:, 0] > a[0, 1]] = a[1]
    return a


def added(a, m, v):
    a[m] += v[0]


def too_wide(a, m, v):
    a[m] = v[0, :-1]


def too_many(a, m, v):
    a[m] = np.concatenate((v, v, v))


def placed(a, m, v):
    np.place(a, a > a[0, 0], v[0, :3])
    return a


def placed_list(a, m, v):
    np.place(a, m[:, None] & (a > 0), [1, 2, 3])


def placed_in_part(a, m, v):
    np.place(a[1:, ::2], a[1:, ::2] > 0, v[0, :2])


def placed_out_of_itself(a, m, v):
    np.place(a, a > a[0, 0], a[0, :3])


PROGRAMS = [
    one, one_row, narrow_row, row_of_one, rows, columns, column_each, twice, of_itself, added,
    placed, placed_list, placed_in_part, placed_out_of_itself,
]  # fmt: skip


def _arguments(dtype, held: str, order: str = "C"):
    a, v = (R.randint(-9, 9, shape).astype(dtype) for shape in ((40, 24), (40, 24)))
    m = {"some": R.rand(40) > 0.6, "none": np.zeros(40, bool), "all": np.ones(40, bool)}[held]
    return np.asarray(a, order=order), m, v


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128", "uint8"])
def test_agrees(f, dtype):
    for held, order in (("some", "C"), ("none", "C"), ("all", "C"), ("some", "F")):
        for backend in BACKENDS:
            assert difference(f, _arguments(dtype, held, order), backend) == ""


@pytest.mark.parametrize("f", [too_wide, too_many])
@pytest.mark.parametrize("width", [4, 24])
def test_values_that_do_not_fit(f, width):
    a, m, v = _arguments("float64", "some")
    a, v = a[:, :width].copy(), v[:, :width].copy()
    before = a.copy()
    with pytest.raises(Exception, match="shape mismatch"):
        torch.compile(f)(a, m, v)
    assert np.array_equal(a, before)


@pytest.mark.parametrize("n", [1, 7, 63, 64, 65, 127, 129, 1000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 1.0])
def test_places_of_masks(n, share):
    """Blocks in which nothing holds are left out."""

    def f(a, m, v):
        b = a.copy()
        b[m] = v[: np.count_nonzero(m)]
        np.place(a, m, v[:2])
        return b, np.flatnonzero(m), np.count_nonzero(m), a[m]

    m = R.rand(n) < share
    for backend in BACKENDS:
        for dtype in (np.float64, np.int16):
            a, v = R.randint(0, 99, n).astype(dtype), R.randint(0, 99, n + 2).astype(dtype)
            assert difference(f, (a, m, v), backend) == ""


def test_sizes_that_vary():
    made = torch.compile(one_row, dynamic=True)
    for n, width in ((40, 24), (7, 33), (1, 24), (100, 9)):
        a, m, v = R.rand(n, width), R.rand(n) > 0.5, R.rand(2, width)
        want = a.copy()
        one_row(want, m, v)
        made(a, m, v)
        assert np.array_equal(a, want)


@pytest.mark.parametrize("f", [one, one_row, narrow_row, row_of_one, columns, twice, placed_list, placed_in_part])
def test_nothing_else_is_written(f, monkeypatch):
    """The array's new contents lie in its memory."""
    placed_ones, write = [], compiler.overwrite

    def watched(lowering, steps, aliases):
        found = write(lowering, steps, aliases)
        placed_ones.append((set(aliases), found.positions))
        return found

    def computed(a, m, v):
        f(a, m ^ (v[:, 0] > 100), v + 1)

    monkeypatch.setattr(compiler, "overwrite", watched)
    torch._dynamo.reset()
    a, m, v = _arguments("float64", "some")
    want = a.copy()
    computed(want, m, v)
    torch.compile(computed, fullgraph=True, dynamic=False)(a, m, v)
    assert np.array_equal(a, want)
    assert placed_ones and all(wanted and wanted == found for wanted, found in placed_ones)
