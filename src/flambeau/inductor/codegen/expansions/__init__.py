"""Elementary and special functions as straight-line code on any number of lanes.

Each is within 2 ulp of the true value (tests/inductor/codegen/test_expansions.py measures), with NaN, infinities and
signed zeros as NumPy has them. A family of functions is a file; float32 is computed through float64 where that is
shorter or an identity would lose digits."""

from . import bessel, error_functions, exponentials, floats, gamma, hyperbolic, integers, trigonometric  # noqa: F401
from .table import EXPANSIONS

__all__ = ["EXPANSIONS"]
