"""Which values are constants of captured code."""

from __future__ import annotations

import enum
import types

import numpy as np

from ...base.device import Device
from ...base.dtypes import DType, finfo, iinfo
from ...base.memory_format import MemoryFormat
from ...core.tensor import Layout
from .reflect import is_a

__all__ = ["OTHERS", "PLAIN", "is_constant_value"]

PLAIN = frozenset(
    (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), types.CodeType)
)
OTHERS = frozenset(
    (types.FunctionType, types.ModuleType, types.MethodType, types.BuiltinFunctionType, type, dict, list, set)
)
"""Classes whose objects are no constants: those that are looked at most, to save the questions."""


def is_constant_value(v) -> bool:
    """Values that are equal whenever their guards say so and can be a code constant."""
    t = type(v)
    if type(t) is type:  # a metaclass may have a hash of its own
        if t in PLAIN:
            return True
        if t in OTHERS:
            return False
    if t is tuple or t is frozenset:
        for x in v:
            if not is_constant_value(x):
                return False
        return True
    if is_a(v, (np.dtype, enum.Enum, np.bool_, np.integer, np.inexact)):
        return True
    if t is np.datetime64:
        return v == v  # what is no time isn't equal to itself
    return is_a(v, (DType, Device, finfo, iinfo, MemoryFormat, Layout))
