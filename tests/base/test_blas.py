"""Which library makes the products that aren't ours."""

import subprocess
import sys
import textwrap
from importlib import metadata

import pytest

PROGRAM = """
    import numpy as np
    import flambeau as torch
    from flambeau.base import blas

    print(blas.product_library())
    for dtype, bound in ((torch.float32, 1e-5), (torch.float64, 1e-14)):
        for m, k, n in ((1, 1, 1), (33, 70, 1), (5, 300, 17), (130, 64, 257), (1024, 32, 1024), (1100, 1030, 1040)):
            a, b = torch.randn(k, m, dtype=dtype).t(), torch.randn(k, n, dtype=dtype)
            rows = a.numpy()[-20:]
            exact = rows.astype(np.longdouble) @ b.numpy().astype(np.longdouble)
            size = np.abs(rows) @ np.abs(b.numpy())
            for product in (torch.mm, torch.compile(torch.mm)):
                assert (np.abs(product(a, b).numpy()[-20:] - exact) <= bound * size).all(), (dtype, m, k, n)
"""


def products(monkeypatch, **environment) -> subprocess.CompletedProcess:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=100)


def has_mkl() -> bool:
    try:
        return bool(metadata.version("mkl"))
    except metadata.PackageNotFoundError:
        return False


@pytest.mark.parametrize("products_of", ["", "library"])
def test_openblas_makes_products(monkeypatch, products_of):
    done = products(monkeypatch, FLAMBEAU_BLAS="openblas", FLAMBEAU_PRODUCTS=products_of)
    assert done.returncode == 0, done.stderr
    assert "mkl" not in done.stdout


@pytest.mark.skipif(not has_mkl(), reason="the extra mkl isn't installed")
@pytest.mark.parametrize("products_of", ["", "library"])
def test_mkl_makes_products_where_it_is_installed(monkeypatch, products_of):
    done = products(monkeypatch, FLAMBEAU_PRODUCTS=products_of)
    assert done.returncode == 0, done.stderr
    assert "mkl_rt" in done.stdout


def test_another_library_is_refused(monkeypatch):
    done = products(monkeypatch, FLAMBEAU_BLAS="atlas")
    assert done.returncode != 0
    assert "FLAMBEAU_BLAS is 'atlas': expected mkl or openblas" in done.stderr
