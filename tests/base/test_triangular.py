"""Triangular systems by csrc/kernels/triangular.c (with AVX-512; the library's elsewhere): sizes on both sides of blocks, what isn't read, what isn't finite."""

import itertools

import numpy as np
import pytest

from flambeau.base import lapack
from flambeau.base.kernels import Lapack
from flambeau.testing import guard_pages

SIZES = [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 100, 129, 200]
COLUMNS = [1, 3, 4, 7, 8, 13, 130]
WAYS = list(itertools.product((False, True), (False, True)))  # upper, unit


def triangle(rng, n, upper, unit, char):
    """(matrix whose other triangle isn't finite, the triangle)."""
    a = rng.standard_normal((n, n)) / max(n, 1) ** 0.5
    a[np.arange(n), np.arange(n)] = np.nan if unit else 1 + rng.random(n)
    a = np.where(np.tri(n, k=0).T if upper else np.tri(n, k=0), a, np.inf).astype(char)
    clean = np.where(np.tri(n, k=-1).T if upper else np.tri(n, k=-1), a, 0)
    return a, clean + (np.eye(n) if unit else np.diag(np.diag(a)))


@pytest.mark.parametrize("char", "fd")
@pytest.mark.parametrize("upper, unit", WAYS)
def test_sizes(upper, unit, char):
    rng, bound = np.random.default_rng(0), {"f": 2e-6, "d": 4e-15}[char]
    for n, columns in itertools.product(SIZES, COLUMNS):
        a, clean = triangle(rng, n, upper, unit, char)
        b = rng.standard_normal((n, columns)).astype(char)
        for given in (a, np.asfortranarray(a), np.repeat(a, 2, 1)[:, ::2]):
            x = lapack.solve_triangular(given, b, upper, unit=unit).astype(float)
            size = np.abs(clean) @ np.abs(x) + np.abs(b)
            assert (np.abs(clean @ x - b) <= bound * n**0.5 * size).all(), (n, columns)


@pytest.mark.parametrize("char", "fd")
def test_factors_solve_both_ways(char):
    rng, bound = np.random.default_rng(1), {"f": 2e-6, "d": 4e-15}[char]
    for n, columns in itertools.product(SIZES, COLUMNS):
        a, b = rng.standard_normal((n, n)).astype(char), rng.standard_normal((n, columns)).astype(char)
        factors, pivots, _ = lapack.lu(a)
        for how, op in (("N", a), ("T", a.T), ("C", a.T)):
            x = lapack.lu_solve(factors, pivots, b, how).astype(float)
            grown = np.abs(np.tril(factors, -1) + np.eye(n)) @ np.abs(np.triu(factors))
            grown = grown.max() * np.abs(x).sum(0) + np.abs(b).max()
            assert (np.abs(op.astype(float) @ x - b) <= bound * n * grown).all(), (n, columns, how)


@pytest.mark.parametrize("upper, unit", WAYS)
def test_what_is_not_finite_goes_only_where_it_must(upper, unit):
    """As substitution by hand: unknowns that were found before stay, and so do other right-hand sides."""
    rng = np.random.default_rng(2)
    for n, place, bad in itertools.product((5, 16, 40, 64), (0, 3, 4), (np.inf, -np.inf, np.nan)):
        a, clean = triangle(rng, n, upper, unit, "f")
        b = rng.standard_normal((n, 9)).astype("f")
        good = lapack.solve_triangular(np.asfortranarray(a), b, upper, unit=unit)
        b[place, 2] = bad
        x = lapack.solve_triangular(np.asfortranarray(a), b, upper, unit=unit)
        others = [c for c in range(9) if c != 2]
        before = slice(place + 1, None) if upper else slice(0, place)
        assert np.array_equal(x[:, others], good[:, others]) and np.array_equal(x[before, 2], good[before, 2])
        assert not np.isfinite(x[place, 2])


def test_a_zero_on_the_diagonal():
    a = np.asfortranarray(np.eye(20, dtype="f"))
    a[7, 7] = 0
    x = lapack.solve_triangular(a, np.ones((20, 9), "f"), False)
    assert np.isfinite(x[:7]).all() and np.isinf(x[7]).all()


def within_pages() -> None:
    rng = np.random.default_rng(3)
    for char, n, columns, at_end in itertools.product("fd", (1, 7, 16, 33, 64, 70), (1, 4, 9), (False, True)):
        place = guard_pages.GuardPages(at_end)
        for upper, unit in WAYS:
            a = rng.standard_normal((n, n)).astype(char) + 9 * np.eye(n, dtype=char)
            b, x = rng.standard_normal((n, columns)).astype(char), place(np.zeros((columns, n), char)).T
            letters = {"uplo": "U" if upper else "L", "diag": "U" if unit else "N"}
            operands = place(np.ascontiguousarray(a.T)).T, place(b)
            lapack._run(Lapack.TRIANGULAR, operands, [x], **letters)
            assert np.array_equal(x, lapack.solve_triangular(np.asfortranarray(a), b, upper, unit=unit))


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
def test_kernels_stay_in_their_arrays():
    guard_pages.run_alone(__file__, "within_pages()")
