"""``torch._numpy.testing``: NumPy's assertions, on arrays of tensors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .ndarrays import attribute

__all__ = ["assert_allclose"]


def assert_allclose(
    actual: ArrayLike,
    desired: ArrayLike,
    rtol: float = 1e-7,
    atol: float = 0,
    equal_nan: bool = True,
    err_msg: str = "",
    verbose: bool = True,
    check_dtype: bool = False,
) -> None:
    """AssertionError unless the arrays agree within the tolerances, and in dtype with ``check_dtype``."""
    attribute("assert_allclose", np.testing)(actual, desired, rtol, atol, equal_nan, err_msg, verbose)
    if check_dtype and np.asarray(actual).dtype != np.asarray(desired).dtype:
        raise AssertionError(f"dtype mismatch: {np.asarray(actual).dtype} != {np.asarray(desired).dtype}")


def __getattr__(name):
    value = globals()[name] = attribute(name, np.testing)
    return value
