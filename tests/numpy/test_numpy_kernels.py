"""Functions of NumPy that kernels compute: the same bits, shapes, types, errors and warnings, in graphs and in native loops."""

import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau.base import numpy_kernels
from flambeau.dynamo.utils import counters

R = np.random.RandomState(5)
LINES = {
    "random": lambda n: R.rand(n),
    "many equal": lambda n: R.randint(0, 4, n) * 1.0,
    "all equal": lambda n: np.full(n, 2.5),
    "in order": lambda n: np.arange(n) * 1.0,
    "backwards": lambda n: np.arange(n)[::-1] * 1.0,
    "of all sizes": lambda n: R.randn(n) * 10.0 ** R.randint(-300, 300, n),
    "with nan": lambda n: np.where(R.rand(n) < 0.02, np.nan, R.rand(n)),
    "with infinities": lambda n: np.where(R.rand(n) < 0.5, np.inf, -np.inf),
}


def outcome(f, *args, **kwargs):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            given = f(*args, **kwargs)
        except (ValueError, TypeError) as e:
            return f"{type(e).__name__}: {e}"
    parts = given if isinstance(given, tuple) else (given,)
    return [(type(p), np.asarray(p).dtype, np.shape(p), np.asarray(p).tobytes()) for p in parts], [
        str(w.message) for w in told
    ]


@pytest.mark.parametrize("kind", LINES)
def test_bits(kind):
    for n in (1, 2, 3, 24, 25, 48, 49, 50, 500, 501, 70_000):
        x = LINES[kind](n)
        assert outcome(numpy_kernels.median, x) == outcome(np.median, x)
        for options in ({}, {"bins": 7}, {"range": (0.1, 0.7)}, {"bins": 3, "range": (0, 2)}, {"weights": R.rand(n)}):
            assert outcome(numpy_kernels.histogram, x, **options) == outcome(np.histogram, x, **options), options


@pytest.mark.parametrize(
    "args",
    [(np.empty(0),), (np.float32([1, 2]),), (np.int64([1, 2]),), ([3.0, 1.0],), (np.array(2.0),), (np.ones((2, 3)), 2)],
    ids=str,
)
def test_what_there_is_no_kernel_for(args):
    assert outcome(numpy_kernels.median, *args) == outcome(np.median, *args)
    assert outcome(numpy_kernels.histogram, *args[:1]) == outcome(np.histogram, *args[:1])


def test_medians_along_dimensions():
    x = R.rand(4, 5, 6)
    for a in (x, x[::-1, :, ::2], x.T):
        for axis in (None, 0, 1, 2, -1, -3):
            assert outcome(numpy_kernels.median, a, axis=axis) == outcome(np.median, a, axis=axis)


def test_graphs_and_loops_use_them(monkeypatch):
    asked = []

    def noted(name):
        plain = getattr(numpy_kernels.kernels, name)
        return lambda *args: (asked.append(name), plain(*args))[1]

    for name in ("middles", "uniform_histogram"):
        monkeypatch.setitem(vars(numpy_kernels.kernels), name, noted(name))

    def called(x):
        return np.histogram(x * 2, 5)[0] + np.median(x)

    def filtered(x):
        out = np.zeros(len(x))
        for i in range(2, len(x) - 2):
            out[i] = np.median(x[i - 2 : i + 3])
        return out

    x = R.rand(30)
    before = counters["stats"]["native_loops"]
    for f, expected in ((called, ["uniform_histogram", "middles"]), (filtered, ["middles"] * 26)):
        compiled = torch.compile(f)
        compiled(x)
        asked.clear()  # of the samples that results are described by
        np.testing.assert_array_equal(compiled(x), f(x))
        assert asked == expected
    assert counters["stats"]["native_loops"] == before + 1
