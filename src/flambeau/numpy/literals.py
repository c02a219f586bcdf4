"""Arguments of NumPy functions as literals: the text of a call in a graph is made of them, so that a graph that holds it can be kept on disk."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .promotion import is_tensor

__all__ = ["CONTAINERS", "NONE", "Kind", "Literal", "arguments_of", "as_literal", "holds_arrays", "literal", "value"]


class Kind(enum.StrEnum):
    """What the content of a literal is."""

    ARRAY = "array"
    """Its number among the arrays of the call."""
    WRITTEN = "written"
    """Likewise; the function writes into it, so that it is given a copy."""
    VALUE = "value"
    """A bool, int, finite float, text or None."""
    FLOAT = "float"
    """The text of an infinity or NaN."""
    COMPLEX = "complex"
    """The text of a complex number: as an expression it loses signs of zeros."""
    SCALAR = "scalar"
    """(dtype, value) of a scalar of NumPy's."""
    DTYPE = "dtype"
    FIELDS = "fields"
    """The description of a dtype of records."""
    DATE = "date"
    """(dtype, number) of a date or a span of time."""
    SLICE = "slice"
    """Literals of its ends and its step."""
    LIST = "list"
    TUPLE = "tuple"
    PYTHON_TYPE = "python_type"
    """The name of Python's bool or int, for draws: those of this dtype are Python's."""
    VARYING_INT = "varying_int"
    """The number of an int among those that differ between calls."""
    VARYING_FLOAT = "varying_float"
    """Likewise of a float."""

    def __repr__(self) -> str:
        return repr(self.value)


CONTAINERS = (Kind.LIST, Kind.TUPLE)


class Literal(NamedTuple):
    """An argument. Its text is that of a plain tuple, which :func:`as_literal` reads."""

    kind: Kind
    content: Any

    def __repr__(self) -> str:
        return tuple.__repr__(self)


NONE = Literal(Kind.VALUE, None)


def as_literal(parsed: tuple[str, Any]) -> Literal:
    """The literal whose text was parsed to this."""
    kind, content = Kind(parsed[0]), parsed[1]
    nested = kind in CONTAINERS or kind is Kind.SLICE
    return Literal(kind, [as_literal(part) for part in content] if nested else content)


def arguments_of(args: list, kwargs: dict) -> tuple[list[Literal], dict[str, Literal]]:
    """The literals of a call's arguments, from what their text was parsed to."""
    return [as_literal(a) for a in args], {k: as_literal(v) for k, v in kwargs.items()}


def holds_arrays(item: Literal) -> bool:
    """Whether a value has to be made of the arrays of a call."""
    if item.kind in CONTAINERS or item.kind is Kind.SLICE:
        return any(map(holds_arrays, item.content))
    return item.kind in (Kind.ARRAY, Kind.WRITTEN)


def literal(x: Any, arrays: list) -> Literal:
    """A value as a literal; arrays in it are put behind ``arrays``. TypeError for what no literal says."""
    if is_tensor(x) or isinstance(x, np.ndarray):
        arrays.append(x)
        return Literal(Kind.ARRAY, len(arrays) - 1)
    if type(x) is complex:
        return Literal(Kind.COMPLEX, str(x))
    if isinstance(x, np.generic) and x.dtype.kind in "biufc":  # NOTE: before numbers, since np.float64 is a float
        return Literal(Kind.SCALAR, (x.dtype.str, str(x.item()) if x.dtype.kind in "fc" else x.item()))
    # No expressions: their names would be read as variables.
    if isinstance(x, float) and not math.isfinite(x):
        return Literal(Kind.FLOAT, float.__repr__(x))
    if x is None or isinstance(x, (bool, int, float, str, bytes)):
        return Literal(Kind.VALUE, x)
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        return Literal(Kind.DTYPE, np.dtype(x).str)
    if isinstance(x, type) and x in (bool, int, float, complex):
        return Literal(Kind.DTYPE, np.dtype(x).str)
    if type(x) is slice:
        return Literal(Kind.SLICE, [literal(y, arrays) for y in (x.start, x.stop, x.step)])
    if type(x) in (list, tuple):
        return Literal(Kind.LIST if type(x) is list else Kind.TUPLE, [literal(y, arrays) for y in x])
    raise TypeError(f"{type(x).__name__} can't be an argument of a NumPy function in a graph")


def _scalar(content: tuple) -> np.generic:
    dtype, number = np.dtype(content[0]), content[1]
    return dtype.type({"f": float, "c": complex}.get(dtype.kind, lambda n: n)(number))


_READ: dict[Kind, Callable] = {
    Kind.VALUE: lambda content: content,
    Kind.COMPLEX: complex,
    Kind.FLOAT: float,
    Kind.SCALAR: _scalar,
    Kind.DTYPE: np.dtype,
    Kind.FIELDS: np.lib.format.descr_to_dtype,
    Kind.DATE: lambda content: np.array(content[1], "i8").view(content[0])[()],
}


def value(item: Literal, arrays) -> Any:
    """What a literal says, with the arrays of its numbers."""
    if item.kind is Kind.ARRAY:
        return arrays[item.content]
    if item.kind is Kind.WRITTEN:
        return np.array(arrays[item.content])
    if item.kind in _READ:
        return _READ[item.kind](item.content)
    values = [value(y, arrays) for y in item.content]
    return values if item.kind is Kind.LIST else slice(*values) if item.kind is Kind.SLICE else tuple(values)
