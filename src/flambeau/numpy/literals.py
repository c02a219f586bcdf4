"""Arguments of NumPy functions as literals: the text of a call in a graph is made of them, so that a graph that holds it can be kept on disk."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .promotion import is_tensor

__all__ = ["literal", "value"]


def literal(x, arrays: list) -> Any:
    """A value as a literal: ("a", number) for arrays ("o" for those that are written), ("v", value), ("f", text) for infinities and nan,
    ("s", dtype, value) for scalars, ("d", name) for dtypes, ("r", fields) for those of records, ("w", dtype, number) for dates, ("z", ends and
    step) for slices, or a container."""
    if is_tensor(x) or isinstance(x, np.ndarray):
        arrays.append(x)
        return ("a", len(arrays) - 1)
    if type(x) is complex:
        return ("c", str(x))
    if isinstance(x, np.generic) and x.dtype.kind in "biufc":  # NOTE: before numbers, since np.float64 is a float
        return ("s", x.dtype.str, str(x.item()) if x.dtype.kind in "fc" else x.item())
    # No expressions: their names would be read as variables.
    if isinstance(x, float) and not math.isfinite(x):
        return ("f", float.__repr__(x))
    if x is None or isinstance(x, (bool, int, float, str, bytes)):
        return ("v", x)
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        return ("d", np.dtype(x).str)
    if isinstance(x, type) and x in (bool, int, float, complex):
        return ("d", np.dtype(x).str)
    if type(x) is slice:
        return ("z", [literal(y, arrays) for y in (x.start, x.stop, x.step)])
    if type(x) in (list, tuple):
        return ("l" if type(x) is list else "t", [literal(y, arrays) for y in x])
    raise TypeError(f"{type(x).__name__} can't be an argument of a NumPy function in a graph")


def value(item, arrays) -> Any:
    """What a literal says, with the arrays of its numbers."""
    kind = item[0]
    if kind == "a":
        return arrays[item[1]]
    if kind == "o":
        return np.array(arrays[item[1]])
    if kind == "v":
        return item[1]
    if kind == "c":  # NOTE: read as an expression, the text of a complex number loses signs of zeros
        return complex(item[1])
    if kind == "f":
        return float(item[1])
    if kind == "s":
        dtype, number = np.dtype(item[1]), item[2]
        return dtype.type({"f": float, "c": complex}.get(dtype.kind, lambda n: n)(number))
    if kind == "d":
        return np.dtype(item[1])
    if kind == "r":
        return np.lib.format.descr_to_dtype(item[1])
    if kind == "w":
        return np.array(item[2], "i8").view(item[1])[()]
    values = [value(y, arrays) for y in item[1]]
    return values if kind == "l" else slice(*values) if kind == "z" else tuple(values)
