"""Operators on values of any type, and what code asks of the run."""

from __future__ import annotations

import operator
import warnings

from .. import values
from .table import prim, row


def _warned(message: str, stacklevel: int = 2) -> None:
    warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)


def _unwrapped(x):
    if x is None:
        raise RuntimeError("Unwrapping null optional")
    return x


row("__is__", operator.is_, "a, b -> bool")
row("__isnot__", operator.is_not, "a, b -> bool")
row("hash", hash, "t -> int")
row("str", values.shown, "t -> str")
row("is_scripting", lambda: True, " -> bool")
row("_get_tracing_state", lambda: False, " -> bool")
row("has_torch_function", lambda x: False, "t -> bool")
row("warn", _warned, "str -> NoneType", "str, int -> NoneType")
row("wait", lambda x: x, "Future[t] -> t")
prim("EnumName", lambda x: x.name, "Enum -> str")
prim("unchecked_unwrap_optional", lambda x: x, "Optional[t] -> t")
prim("IfThenElse", lambda c, a, b: a if c else b, "bool, t, t -> t")
prim("AutogradZero", lambda: None, " -> Any")
row("_unwrap_optional", _unwrapped, "Optional[t] -> t")
