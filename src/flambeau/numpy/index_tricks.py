"""``np.mgrid[...]``, ``np.ogrid``, ``np.r_`` and ``np.c_`` as functions of their keys: NumPy makes them from inside a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from .graph_calls import FUNCTIONS_BY_MODULE
from .opaque import opaque
from .table import FUNCTIONS

__all__ = ["c_", "mgrid", "ogrid", "r_"]


def mgrid(key: Any) -> np.ndarray:
    return np.mgrid[key]


def ogrid(key: Any) -> np.ndarray | tuple[np.ndarray, ...]:
    return np.ogrid[key]


def r_(key: Any) -> np.ndarray:
    return np.r_[key]


def c_(key: Any) -> np.ndarray:
    return np.c_[key]


FUNCTIONS_BY_MODULE[__name__] = " ".join(__all__)
FUNCTIONS.extend((getattr(np, name), opaque(__name__, name)) for name in __all__)
