"""Functions of elements with the bits of compiled code (csrc/kernels/elements.c)."""

from __future__ import annotations

import functools

import numpy as np

from .. import _runtime

__all__ = ["FUNCTIONS", "OWN", "element_function", "pair_function"]

OWN: set[np.ufunc] = set()
"""All that :func:`element_function` has made."""
FUNCTIONS = frozenset(_runtime.element_functions())
"""Names of rows of the scalar table whose loop in eager calls is the expansion of compiled code."""


def element_function(name: str, numpy: np.ufunc | None = None) -> np.ufunc:
    """The ufunc of a row of the scalar table on float32 and float64. Numbers of complex types go to the loops of ``numpy``, NumPy's ufunc of the
    same function. Where NumPy has none, the ufunc raises no floating-point errors, as SciPy's don't; else it may raise more than NumPy's, and
    never less but underflow. LookupError where csrc/kernels/element_loops.h (written by tools/element_loops.py) has none of that name."""
    made = _runtime.element_function(name, numpy)
    OWN.add(made)
    return made


@functools.cache
def pair_function(name: str) -> np.ufunc:
    """A ufunc of two operands (csrc/kernels/pairs.c): "gammainc", "gammaincc" and "zeta", which import SciPy, and "complex". LookupError where
    there is none of that name."""
    other = None
    if name in ("gammainc", "gammaincc", "zeta"):
        from scipy.special import _ufuncs

        other = getattr(_ufuncs, "_zeta" if name == "zeta" else name)
    made = _runtime.pair_function(name, other)
    OWN.add(made)
    return made
