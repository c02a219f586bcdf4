"""``np.put``, ``np.place``, ``np.put_along_axis`` and ``ufunc.at`` beside NumPy: values bit for bit, errors and warnings, over sizes that become symbols."""

import warnings

import numpy as np
import pytest

import flambeau as torch

INDICES = ([0, 2, 4], [1, 1, 1], [-1, 0, -1], [3, 99, 1], [0, 1, -77])
AT = """
np.{}.at(a, i, v) | np.{}.at(a, i, 3) | np.{}.at(a, i, 0.5) | np.{}.at(a, (i, i), v[:, 0]) | np.{}.at(a, i, v[0]) | np.{}.at(a[0], i, v[:, 0])
np.{}.at(a, i, v[:2]) | np.{}.at(a.T, i, v)
"""
PUTS = """
np.put(a, i, v[:, 0]) | np.put(a, i, 3) | np.put(a, i, 0.5) | a.put(i, v[:, 0]) | a.put(i, v[:, :5]) | a.put([0, -1], v[0]) | np.put(a, 2, 1)
np.put(a, -200000, 1) | np.put(a, i, 3, mode="wrap") | np.put(a, i, 3, mode="clip") | np.put(a.T, i, 3) | np.put(a, i, v[0, 0])
np.put(a, i[:, None], v[:, :1]) | np.put(a, ind=i, v=3) | a.put(indices=i, values=3) | np.put(a[1], i, 3) | np.put(a[:, 1], i, 3)
np.put(a, i, a[0, :3]) | np.put(a, i, [1, 2, 3]) | np.put(a, i, True) | np.put(a, i, np.inf) | np.put(a, i, 2**70) | np.put(a, [], 3)
np.put(a, i.astype(np.int32), 3) | np.put(a, i.astype(np.uint8), 3) | np.put(a, i > 1, 3) | np.put(a, i * 1.5, 3)
"""
PLACES = """
np.put_along_axis(a, i[None, :], 5, 0) | np.put_along_axis(a, i[:, None] * np.ones((1, a.shape[1]), int), v, 0)
np.put_along_axis(a, i[None, :], 5, 1) | np.put_along_axis(a, i[None, :], 5, axis=-1) | np.put_along_axis(a, i, 5, 0)
np.put_along_axis(a, i, 5, None) | np.put_along_axis(a, np.argmax(a, 1)[:, None], 0, 1) | np.put_along_axis(a, np.argsort(a, 0), a[0], 0)
np.put_along_axis(a, i[None, :], v[:1, :3], 1) | np.put_along_axis(a, i[None, :], 5, 2) | np.put_along_axis(a.T, i[None, :], 5, 0)
np.place(a, a > 50, 1) | np.place(a, a > 50, [1]) | np.place(a, a > 50, [1, 2, 3]) | np.place(a, a > 50, v[0]) | np.place(a, a > 50, [])
np.place(a, a > 1e9, []) | np.place(a, (a > 50).ravel(), 3) | np.place(a, a[:1] > 50, 3) | np.place(a, a > 50, 2.5)
np.place(a, a > 50, v[0, 0]) | np.place(a.T, a > 50, 1) | np.place(a, a, 1) | np.fill_diagonal(a, 1)
"""


def lines(table: str) -> list[str]:
    return [line for row in table.strip().splitlines() for line in row.split(" | ")]


def calls(dtype: str) -> list[tuple]:
    """(array, indices, values), NaNs and the largest numbers among them."""
    rng = np.random.default_rng(0)
    found = []
    for n in (6, 50, 51):
        for places in INDICES:
            a, v = (rng.random((n, n)) * 100).astype(dtype), (rng.random((3, n)) * 100).astype(dtype)
            found.append((a, np.array(places), v))
            b, w = a.copy(), np.zeros((3, n), dtype)
            if dtype[0] == "f":
                b[1, 1], b[2, 0], w[0, :2] = np.nan, -0.0, np.nan
                found.append((b, np.array(places), w))
            largest = np.finfo(dtype).max if dtype[0] == "f" else np.iinfo(dtype).max
            found.append((b, np.array(places), np.full((3, n), largest, dtype)))
    return found


def told(f, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = repr(f(*args))
        except (IndexError, ValueError, TypeError, OverflowError) as e:
            result = repr(e)
    return result, [str(w.message) for w in caught]


def agree(line: str, dtype: str, writeable: bool = True) -> None:
    scope = {"np": np}
    exec(f"def f(a, i, v):\n    {line}", scope)
    f = scope["f"]
    compiled = torch.compile(f)
    for a, i, v in calls(dtype):
        x, y = a.copy(), a.copy()
        x.flags.writeable = y.flags.writeable = writeable
        assert told(f, x, i, v) == told(compiled, y, i, v)
        assert x.tobytes() == y.tobytes()


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_ufuncs_at(name, dtype):
    for line in lines(AT):
        agree(line.format(name), dtype)


@pytest.mark.parametrize("dtype", ["f8", "i4"])
@pytest.mark.parametrize("table", [PUTS, PLACES], ids=["put", "places"])
def test_functions(table, dtype):
    for line in lines(table):
        agree(line, dtype)


@pytest.mark.parametrize(
    "line", ["np.put(a, i, 3)", "np.add.at(a, i, v)", "np.place(a, a > 50, 1)", "a[i] = v; a[i[0]] = 1"]
)
def test_read_only_arrays(line):
    agree(line, "f8", writeable=False)
