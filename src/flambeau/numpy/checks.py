"""Checks that graphs call for their errors."""

from __future__ import annotations

import numpy as np

__all__ = ["all_finite"]


def all_finite(a: np.ndarray) -> np.bool_:
    """True for an array without infinities and NaN; of another NumPy's ValueError."""
    np.asarray_chkfinite(a)
    return np.True_
