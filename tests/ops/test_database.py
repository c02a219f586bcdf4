"""A portion of PyTorch's operator database beside PyTorch: the whole is tools/op_coverage.py's table docs/reference/coverage.md."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.parity

TOOL = Path(__file__).parents[2] / "tools" / "op_coverage.py"
FACETS = ("forward", "gradient", "out", "vmap", "forward_ad", "forward_over_reverse", "complex128")
ENTRIES = """
linalg.cholesky linalg.qr linalg.svd linalg.eigh linalg.solve linalg.inv linalg.det linalg.slogdet matrix_exp linalg.pinv linalg.lu
linalg.solve_triangular linalg.multi_dot cholesky_solve fft.fft fft.rfft fft.irfft fft.hfft fft.fftn stft special.entr special.zeta
special.bessel_j0 special.chebyshev_polynomial_t polygamma igamma mvlgamma view_as_real angle sgn polar frexp histogram trapezoid gradient
permute_copy diagonal_scatter take_along_dim
""".split()


@pytest.fixture(scope="module")
def sweep():
    spec = importlib.util.spec_from_file_location("op_coverage", TOOL)
    module = sys.modules["op_coverage"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.load()
    return module


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTRIES)
def test_entry(sweep, name):
    entries = [e for e in sweep.op_db if e.name == name]
    assert entries
    for facet in FACETS:
        # What the table gives a reason for is left to it.
        if not sweep.reason(name, facet):
            assert sweep.cell(entries[0], facet) in ("ok", "-"), facet
