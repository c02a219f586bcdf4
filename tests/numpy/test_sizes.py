"""Reductions of NumPy whose formula has the number of elements, at sizes that differ between calls: one graph serves all."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor.debug import observing

R = np.random.default_rng(8)

FUNCTIONS = {
    "mean": lambda x: np.mean(x),
    "mean of columns": lambda x: np.mean(x, axis=0),
    "mean of rows, kept": lambda x: x - x.mean(axis=1, keepdims=True),
    "var": lambda x: np.var(x),
    "var of a sample": lambda x: np.var(x, axis=0, ddof=1),
    "std": lambda x: x.std(axis=1),
    "average": lambda x: np.average(x),
}
SIZES = [(60, 40), (70, 33), (3, 2), (2, 500)]
# float32: NumPy's sums of columns have one element after the other.
WITHIN = {"float64": 1e-12, "float32": 3e-6, "int64": 1e-12}


@pytest.mark.parametrize("dtype", WITHIN)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_graph_for_all_sizes(name, dtype):
    plain, made = FUNCTIONS[name], []
    compiled = torch.compile(plain, dynamic=True)
    with observing(lambda gm, parts, info: made.append(info)):
        for m, n in SIZES:
            x = (R.random((m, n)) * 100).astype(dtype)
            got, want = compiled(x), plain(x)
            assert type(got) is type(want) and got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=WITHIN[dtype], atol=100 * WITHIN[dtype])
    assert len(made) == 1


@pytest.mark.parametrize("m", [5, 4, 2])
def test_too_few_elements_warn_as_numpy_does(m):
    def plain(x):
        return np.var(x, axis=0, ddof=5)

    compiled = torch.compile(plain, dynamic=True)
    for k in (40, 30):
        x = R.random((k, 6))
        np.testing.assert_allclose(compiled(x), plain(x), rtol=1e-12)
    x = R.random((m, 6))
    with pytest.warns(RuntimeWarning) as wanted:
        want = plain(x)
    with pytest.warns(RuntimeWarning) as given:
        got = compiled(x)
    assert [str(w.message) for w in given] == [str(w.message) for w in wanted]
    np.testing.assert_array_equal(got, want)
