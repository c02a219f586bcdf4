"""Factorisations by csrc/kernels/lapack.c multiplied back: element types, batches, layouts, sizes on both sides of what is split over the pool."""

import os
import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau.base import lapack


def ct(a):
    return a.conj().swapaxes(-1, -2)


LAYOUTS = {
    "rows": lambda a: a,
    "columns": lambda a: np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2),
    "apart": lambda a: np.repeat(np.repeat(a, 2, -1), 2, -2)[..., ::2, ::2],
}


def swapped(a, pivots):
    """Rows of matrices in the order that LAPACK's pivots bring them into."""
    out = np.array(a).reshape(-1, *a.shape[-2:])
    for one, swaps in zip(out, pivots.reshape(len(out), -1)):
        for i, p in enumerate(swaps):
            one[[i, p - 1]] = one[[p - 1, i]]
    return out.reshape(a.shape)


def everything(char, batch, n, lay):
    rng = np.random.default_rng(n)

    def random(*tail):
        x = rng.standard_normal((*batch, *tail))
        return (x + 1j * rng.standard_normal(x.shape) if char in "FD" else x).astype(char)

    def same(x, y):
        assert np.abs(x - y).max() < (2e-3 if char in "fF" else 1e-8) * max(1, np.abs(y).max())

    eye = np.eye(n, dtype=char)
    a, b = lay(random(n, n) + eye * np.array(3 * n**0.5, char)), lay(random(n, 5))
    for turned in (False, True):
        x, factors, pivots, info = lapack.solve(a, b, turned)
        assert not info.any()
        same((a.swapaxes(-1, -2) if turned else a) @ x, b)
    for how, op in (("N", a), ("T", a.swapaxes(-1, -2)), ("C", ct(a))):
        same(op @ lapack.lu_solve(factors, pivots, b, how), b)
    wide = lay(random(n, n + 7))
    for m in (a, wide, wide.swapaxes(-1, -2)):
        k = min(m.shape[-2:])
        factors, pivots, _ = lapack.lu(m)
        lower, upper = np.tril(factors[..., :k], -1) + np.eye(m.shape[-2], k, dtype=char), np.triu(factors[..., :k, :])
        same(lower @ upper, swapped(m, pivots))
        for mode in ("reduced", "complete"):
            q, r = lapack.qr(m, mode)
            same(q @ r, m)
            same(ct(q) @ q, np.eye(q.shape[-1]))
            assert (np.tril(r, -1) == 0).all()
        same(np.abs(lapack.qr(m, "r")[1]), np.abs(lapack.qr(m, "reduced")[1]))
        for full in (False, True):
            u, s, vh, _ = lapack.svd(m, full, True)
            same((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], m)
        same(lapack.svd(m, False, False)[1], s)
        _, rank, info = lapack.least_squares(m, m @ random(m.shape[-1], 2), 1e-6)
        assert (rank == k).all() and not info.any()
    positive = lay(a @ ct(a))
    factor, info = lapack.cholesky(positive)
    same(factor @ ct(factor), positive)
    assert (np.triu(factor, 1) == 0).all() and not info.any()
    same(lapack.cholesky_inverse(factor, False)[0] @ positive, eye)
    same(lapack.cholesky_inverse(ct(factor), True)[0] @ positive, eye)
    for lower in (False, True):
        values, vectors, _ = lapack.eigh(positive, lower, True)
        same((vectors * values[..., None, :]) @ ct(vectors), positive)
        same(lapack.eigh(positive, lower, False)[0], values)
    values, vectors, _ = lapack.eig(a)
    same(a @ vectors, vectors * values[..., None, :])
    for upper in (False, True):
        for unit in (False, True):
            part = (np.triu if upper else np.tril)(a)
            if unit:
                part = part / np.array(20, char)
                part[..., range(n), range(n)] = 1
            given = lay(a / np.array(20, char) if unit else a)
            same(part @ lapack.solve_triangular(given, b, upper, True, unit), b)
            right = lay(b.swapaxes(-1, -2))
            same(lapack.solve_triangular(given, right, upper, False, unit) @ part, right)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("char", "fdFD")
def test_products_of_factors(char, layout):
    sizes = [((), 1), ((2, 3), 4), ((), 66), *([((), 197)] if layout == "rows" else [])]
    for batch, n in sizes:
        everything(char, batch, n, LAYOUTS[layout])


def test_a_batch_of_right_hand_sides_has_one_factorisation():
    a, b = np.array([[0.0, 2.0], [1.0, 1.0]]), np.arange(12.0).reshape(3, 2, 2)
    x, factors, pivots, info = lapack.solve(a, b)
    np.testing.assert_allclose(a @ x, b, atol=1e-12)
    assert factors.shape == (3, 2, 2) and pivots.shape == (3, 2) and info.shape == ()


def test_results_do_not_depend_on_the_number_of_threads():
    a = np.random.default_rng(0).standard_normal((300, 300)).astype("f4") + 9 * np.eye(300, dtype="f4")
    before, found = torch.get_num_threads(), []
    try:
        for n in (1, 3):
            torch.set_num_threads(n)
            found.append((*lapack.solve(a, a), *lapack.cholesky(a @ a.T), lapack.solve_triangular(a, a, True)))
    finally:
        torch.set_num_threads(before)
    for x, y in zip(*found):
        np.testing.assert_array_equal(x, y)


def test_where_a_factorisation_ends():
    """A zero pivot and a minor that isn't positive, in the first block, in a later one, and in a small matrix."""
    for n, at in ((5, 2), (300, 2), (300, 250)):
        a = np.diag(np.where(np.arange(n) == at, 0.0, 2.0))
        assert lapack.lu(a)[2] == at + 1
        assert lapack.cholesky(a)[1] == at + 1
    for bad in (np.nan, np.inf):
        a = np.full((3, 3), bad)
        assert lapack.eigh(a, True, True)[2] == lapack.svd(a, False, True)[3] == lapack.NOT_FINITE


def test_by_the_pointers_that_scipy_exports():
    """Integers of 32 bits: what serves where NumPy's library isn't found."""
    pytest.importorskip("scipy")
    code = (
        "import flambeau.base.blas as b; b._library = lambda: None\n"
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        "from test_lapack import everything\n"
        "for char in 'fD':\n    everything(char, (2,), 5, lambda a: a), everything(char, (), 66, lambda a: a)\n"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
