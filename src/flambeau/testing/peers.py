"""Arguments for another implementation of the same interface, from those of a sample."""

from __future__ import annotations

import numpy as np

from ..base.dtypes import DType
from ..base.memory_format import MemoryFormat

__all__ = ["arguments_for"]


def arguments_for(module, array, x):
    """``x`` for ``module``: arrays become what ``array`` makes of them, dtypes and names of memory formats those of ``module``; containers are
    kept."""
    if isinstance(x, DType):
        return getattr(module, x.name)
    if isinstance(x, MemoryFormat):
        return getattr(module, x.name)
    if isinstance(x, str) and x.endswith("_format"):
        return getattr(module, x)
    if isinstance(x, (list, tuple)):
        return type(x)(arguments_for(module, array, v) for v in x)
    if isinstance(x, dict):
        return {k: arguments_for(module, array, v) for k, v in x.items()}
    return array(x) if isinstance(x, np.ndarray) else x
