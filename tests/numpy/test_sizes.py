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


CALLS = """
np.cov(a) | np.corrcoef(a) | np.median(a) | np.median(a, 0) | np.nanmean(a, 0) | np.nanvar(a) | np.nanstd(a, 1) | np.nanmedian(a, axis=0)
np.percentile(a, [25, 75], axis=0) | np.quantile(a, 0.3, axis=1) | np.nanpercentile(a, 30) | np.sum(c) | c.mean(0) | np.std(c) | c @ c | np.trace(c)
np.linalg.norm(c) | np.linalg.inv(a) | np.linalg.svd(a)[1] | np.linalg.eigh(a + a.T)[0] | np.linalg.qr(a)[1] | np.fft.rfft(v) | np.fft.fft2(a)
np.fft.fftshift(v) | np.argsort(v) | np.searchsorted(np.sort(v), w) | np.convolve(v, w) | np.convolve(v, w, "same") | np.append(a, 1.0)
np.append(v, w) | np.multiply.outer(v, w) | np.kron(v, w) | np.pad(a, 1) | np.pad(v, (2, 3)) | np.gradient(a)[1] | np.ediff1d(v) | np.vander(v)
np.histogram(v, 4)[0] | np.lexsort((v, w)) | np.partition(v, 3) | np.insert(v, 2, 1.0) | np.delete(v, 2) | np.block([[a, b], [b, a]])
np.logaddexp.reduce(v) | np.frexp(a)[1] | np.select([a > 0.5, a < 0.2], [a, b]) | np.sort(c) | np.linalg.lstsq(a, v, rcond=None)[0]
np.polyfit(v, w, 2) | np.linalg.multi_dot([a, b, a]) | np.split(a, 2)[1] | np.hsplit(a, 2)[0] | np.median(a, 0) + v | np.diff(v, 2) * 2 + v[2:]
np.unwrap(v)[::2] | np.cov(a).sum(0) / len(v)
""".strip()


@pytest.mark.parametrize("source", [line for row in CALLS.splitlines() for line in row.split(" | ")])
def test_calls_of_numpys_are_compiled_twice(source):
    """Once for the first size, once for all others; each result as NumPy's."""
    scope = {"np": np}
    exec(f"def f(a, b, c, v, w):\n    return {source}", scope)
    compiled, made = torch.compile(scope["f"]), []
    with observing(lambda gm, parts, info: made.append(info)):
        for n in (8, 16, 12, 30, 100):
            a, b, v, w = R.random((n, n)), R.random((n, n)), R.random(n), R.random(n)
            got, want = (f(a, b, a + 1j * b, v, w) for f in (compiled, scope["f"]))
            assert type(got) is type(want) and got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
    assert len(made) <= 2


def test_sizes_for_which_no_formula_holds():
    """The longer of two is no polynomial of both lengths."""

    def f(v, w):
        return np.convolve(v, w, "same") + 1

    compiled = torch.compile(f)
    for m, n in ((9, 5), (12, 6), (300, 7), (5, 300), (40, 41)):
        v, w = R.random(m), R.random(n)
        np.testing.assert_allclose(compiled(v, w), f(v, w), rtol=1e-12)


def test_a_formula_that_does_not_hold_is_told(monkeypatch):
    from flambeau.base.symint import wrap
    from flambeau.numpy import varying_sizes

    fitted = varying_sizes._formula

    def wrong(values, given, terms, env):
        made = fitted(values, given, terms, env)
        return made if isinstance(made, int) else wrap(made.expr + made.expr // 50, env)

    monkeypatch.setattr(varying_sizes, "_formula", wrong)

    def f(v):
        return np.sort_complex(v) * 2

    compiled = torch.compile(f)
    for n in (8, 16, 49, 60, 200):
        v = R.random(n)
        np.testing.assert_array_equal(compiled(v), f(v))
