"""Writes into NumPy arrays by index: in the array's own memory, with NumPy's errors and the array as it was then (scheduling/failing.py)."""

import warnings

import numpy as np
import pytest

import flambeau as torch


def put(a, i, v):
    a[i] = v


def added(a, i, v):
    a[i] += v


def put_twice(a, i, v):
    a[i] = v
    a[i] = a[i] * 2


def from_its_end(a, i, v):
    a[i] = a[::-1][: len(i)]


def from_itself(a, i, v):
    a[i] = a[(i + 1) % 3]


def exchanged(a, i, v):
    a[i] = a[i[::-1]]


def at_points(a, i, v):
    a[i, i[::-1]] = v[0, 0]
    return a.sum()


def read_before(a, i, v):
    x = a[i] * 2
    a[i] = v
    return x


def read_behind(a, i, v):
    a[i] = v
    return a[i] + a[0]


def reads_others_behind(a, i, v):
    a[i] = v
    return v[i]


def two_arrays(a, i, v):
    v[i] = 1.0
    a[i] = 2.0


def by_mask(a, i, v):
    a[a > 0.5] = 0.25


def by_mask_from_itself(a, i, v):
    m = a > 0.5
    a[m] = a[m] * 2


def divided(a, i, v):
    with np.errstate(all="ignore"):
        a[i] = v / (v - v)


def after_another(a, i, v):
    a += 1
    a[i] = v


def by_constants(a, i, v):
    a[[0, -1]] = v[:2]


def by_function(a, i, v):
    np.add.at(a, i, v)
    np.put(a, i, v)


def added_by_function(a, i, v):
    np.add.at(a, i, v)


def several(a, i, v):
    a[i] = v
    a[i[:2]] = 2.0
    a[::2] = 3.0
    a[i[1]] = v[0]


def several_sums(a, i, v):
    a[i] += v
    a[i[::-1]] += 2.0


def behind_parts(a, i, v):
    a[1:3] = 0.0
    a[4] = 1.0
    a[i] = 2.0


def read_between(a, i, v):
    x = a[i] * 2
    a[i] = v
    a[(i + 1) % 5] = x


def changed_as_a_whole(a, i, v):
    a[i] = v
    a += 1
    a[i[0], i[1]] = 7.0


def by_lists(a, i, v):
    a[[1, 2, 3]] = 0.0
    a[[4, -1]] = v[:2]


def rows_by_mask(a, i, v):
    a[a[:, 0] > 0.5] = 0.25
    a[i] = v


def by_functions(a, i, v):
    np.put(a, i, v[:, 0])
    np.put_along_axis(a, i[None, :], 5.0, 1)
    np.subtract.at(a, i, v)
    np.maximum.at(a, i, v)
    np.add.at(a, (i, i[::-1]), 1.0)
    np.fill_diagonal(a, 0.5)


PROGRAMS = [
    several,
    several_sums,
    behind_parts,
    read_between,
    changed_as_a_whole,
    by_lists,
    rows_by_mask,
    by_functions,
    put,
    added,
    put_twice,
    from_its_end,
    from_itself,
    exchanged,
    at_points,
    read_before,
    read_behind,
    reads_others_behind,
    two_arrays,
    by_mask,
    by_mask_from_itself,
    divided,
    after_another,
    by_constants,
    by_function,
]
INDICES = [[0, 2, 4], [1, 1, 1], [-1, 0, -1], [3, 99, 1], [0, 1, -77], [0, 0, 1]]
IN_PLACE = [
    put,
    added,
    added_by_function,
    from_itself,
    exchanged,
    at_points,
    by_mask,
    by_constants,
    put_twice,
    several,
    several_sums,
]
IN_PLACE += [behind_parts, read_between, changed_as_a_whole, by_lists, rows_by_mask, by_functions]


def _run(f, a, i, v):
    try:
        return f(a, i, v)
    except IndexError as error:
        return repr(error)


@pytest.mark.parametrize("f", PROGRAMS)
def test_as_numpy(f):
    """Results, errors and what is left in the arrays, for sizes that become symbols."""
    compiled = torch.compile(f)
    rng = np.random.default_rng(1)
    for n in (6, 50, 51):
        for places in INDICES:
            a, v = rng.random((n, n)), rng.random((3, n))
            b, w = a.copy(), v.copy()
            expected, found = _run(f, a, np.array(places), v), _run(compiled, b, np.array(places), w)
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(v, w)
            if isinstance(expected, str):
                assert found == expected
            elif expected is not None:
                np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("f", [put, added])
def test_values_share_the_arrays_memory(f):
    a = np.random.default_rng(2).random((9, 9))
    b, i = a.copy(), np.array([4, 0, 2])
    f(a, i, a[1:4])
    torch.compile(f)(b, i, b[1:4])
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("f", [put, added])
def test_errors_among_many_indices(f):
    """The bad index is the last of many, whose writes would be spread over threads."""
    a, i = np.zeros((300, 400)), np.arange(20000) % 300
    compiled = torch.compile(f)
    compiled(a, i, 1.0)
    before, i[-1] = a.copy(), 300
    with pytest.raises(IndexError, match="index 300 is out of bounds for axis 0 with size 300"):
        compiled(a, i, 2.0)
    np.testing.assert_array_equal(a, before)


@pytest.mark.parametrize("f", IN_PLACE)
def test_array_is_not_copied(f, monkeypatch):
    from flambeau.inductor import compile as compiler

    placed = []
    write = compiler.overwrite

    def watched(lowering, steps, aliases):
        found = write(lowering, steps, aliases)
        placed.append((set(aliases), found.positions))
        return found

    monkeypatch.setattr(compiler, "overwrite", watched)
    torch._dynamo.reset()
    a, v = np.random.default_rng(3).random((83, 83)), np.ones((3, 83))
    torch.compile(f, dynamic=False)(a, np.array([0, 2, 1]), v)
    assert placed and all(wanted and wanted == found for wanted, found in placed)


@pytest.mark.parametrize("n", [7, 900])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4"])
def test_sums_by_function(dtype, n):
    """Repeated indices in their order, a bad one, an index from the end, and numbers beyond what floats hold."""
    compiled = torch.compile(added_by_function)
    rng = np.random.default_rng(4)
    largest = np.finfo(dtype).max if dtype[0] == "f" else np.iinfo(dtype).max
    a = (rng.random((n, n)) * 100).astype(dtype)
    b = a.copy()
    for scale in (100, largest, 100):
        for places in ([0, 2, 0], [3, n, 1], [-1, -1, 5]):
            v = (rng.random((3, n)) * scale).astype(dtype)
            told = []
            for f, x in ((added_by_function, a), (compiled, b)):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    told.append((_run(f, x, np.array(places), v), [str(w.message) for w in caught]))
            assert told[0] == told[1]
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("number", [0.1, 16777217, 2**60 + 1])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4"])
def test_numbers_added_by_function(dtype, number):
    def f(a, i):
        np.add.at(a, i, number)

    rng = np.random.default_rng(5)
    a, i = (rng.random(300) * 10).astype(dtype), rng.integers(0, 300, 900)
    b = a.copy()
    f(a, i)
    torch.compile(f)(b, i)
    np.testing.assert_array_equal(a, b)
