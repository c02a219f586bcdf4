"""Products of a matrix and a vector: every layout, sizes around those where the work is split, the same result on any number of threads."""

import itertools

import numpy as np
import pytest

import flambeau as torch

SHAPES = [(3, 3000), (3000, 3), (1, 20000), (20000, 1), (400, 400), (7, 70001), (70001, 7), (2049, 129)]


def _laid_out(rng, shape, layout, dtype):
    """A matrix of this shape: by rows, by columns, part of a larger one, with steps, backwards."""
    m, n = shape
    if layout == "columns":
        return np.asfortranarray(rng.standard_normal(shape).astype(dtype))
    made = rng.standard_normal((m + 3, 2 * n + 5)).astype(dtype)
    return {
        "rows": lambda: made[:m, :n].copy(),
        "part": lambda: made[1 : m + 1, 2 : n + 2],
        "steps": lambda: made[:m, : 2 * n : 2],
        "backwards": lambda: made[:m, :n][::-1],
    }[layout]()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["rows", "columns", "part", "steps", "backwards"])
def test_matrix_times_vector(layout, dtype):
    rng = np.random.default_rng(3)

    def plain(a, x, y):
        return a @ x, y @ a, (a @ x) * 2 + 1, y @ np.exp(a / 10)

    f = torch.compile(plain)
    for shape, step in itertools.product(SHAPES, (1, 2)):
        a = _laid_out(rng, shape, layout, dtype)
        x, y = (rng.standard_normal(n * step).astype(dtype)[::step] for n in (shape[1], shape[0]))
        for got, exact in zip(f(a, x, y), plain(*(v.astype(np.float64) for v in (a, x, y))), strict=True):
            assert got.dtype == dtype
            scale = np.abs(exact).max() + np.sqrt(max(shape))
            np.testing.assert_allclose(got, exact, rtol=0, atol=scale * (1e-5 if dtype == "float32" else 1e-13))


def test_threads_make_no_difference():
    rng = np.random.default_rng(4)

    @torch.compile
    def f(a, x, y):
        return a @ x, y @ a

    before = torch.get_num_threads()
    try:
        for shape in SHAPES:
            a, x, y = (rng.standard_normal(s).astype("float32") for s in (shape, shape[1], shape[0]))
            results = []
            for threads in (1, 2, 4):
                torch.set_num_threads(threads)
                results.append(f(a, x, y))
            for other in results[1:]:
                for p, q in zip(results[0], other, strict=True):
                    np.testing.assert_array_equal(p, q)
    finally:
        torch.set_num_threads(before)
