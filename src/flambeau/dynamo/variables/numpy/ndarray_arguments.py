"""NumPy arrays that existed before the call: inputs of the graph, as tensors over the same memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...config import config
from ...exc import unsupported
from ...numpy import numpy_bridge
from ...rules import trace_rules
from ...rules.reflect import name_of
from ...tracing.wrapping import WRAPPERS
from .ndarray import as_ndarray

__all__ = ["OTHER_ARRAYS"]

OTHER_ARRAYS: list[Callable] = []
"""Rules for arrays whose elements tensors don't have: the variable, or None."""


@WRAPPERS.row("ndarray")
def _(tx, value, source):
    return ndarray_argument(tx, value, source) if trace_rules.is_a(value, np.ndarray) else None


def ndarray_argument(tx, value, source):
    if not config.trace_numpy or type(value) not in (np.ndarray, numpy_bridge.Carried):
        unsupported(
            "numpy",
            f"a NumPy array of class {name_of(type(value))}",
            "Only plain ndarrays are captured (and only with config.trace_numpy).",
        )
    for rule in OTHER_ARRAYS:
        found = rule(tx, value, source)
        if found is not None:
            return found
    if value.dtype.kind not in "biufc" or not value.dtype.isnative or any(s < 0 for s in value.strides):
        unsupported(
            "numpy",
            f"an ndarray of dtype {value.dtype}, strides {value.strides}",
            "A view that runs backwards; tensors have no negative strides."
            if any(s < 0 for s in value.strides)
            else "Tensors have no counterpart of it.",
        )
    if any(s % value.itemsize for s in value.strides):
        unsupported(
            "numpy", "an ndarray whose strides are no multiples of its item size", "Tensors have no counterpart of it."
        )
    try:
        return as_ndarray(tx.output.add_input(value, source, ndarray=True))
    except TypeError as e:
        unsupported("numpy", f"an ndarray of dtype {value.dtype}: {e}", "Tensors have no counterpart of it.")
