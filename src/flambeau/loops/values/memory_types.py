"""Types of elements in memory and in registers; sizes, of which some are known."""

from __future__ import annotations

import numpy as np

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import ConstantOperand, Operand, Type
from .declined import Declined

__all__ = ["CHARACTER", "LLVM", "Size", "alignment", "known", "libm", "memory_type", "plain", "register_type"]

# A character of text, which is one of Python's strings: its code in 32 bits.
CHARACTER = np.dtype("U1")
LLVM = {
    "b": llvm.I8,
    "i1": llvm.I8,
    "i2": llvm.I16,
    "i4": llvm.I32,
    "i8": llvm.I64,
    "u1": llvm.I8,
    "u2": llvm.I16,
    "u4": llvm.I32,
    "u8": llvm.I64,
    "f4": llvm.FLOAT,
    "f8": llvm.DOUBLE,
    "c8": llvm.FLOAT.vector(2),
    "c16": llvm.DOUBLE.vector(2),
}
"""Type in memory, by NumPy's kind and size."""
Size = Operand | int
"""A size, a stride, an offset: a Python int where it is known."""


def plain(v: Size) -> Size:
    """A constant as the number that it is."""
    return v.value if isinstance(v, ConstantOperand) else v


def known(v: Size) -> int | None:
    """The number that a size is, where that is known."""
    v = plain(v)
    return v if type(v) is int else None


def memory_type(dtype: np.dtype) -> Type:
    key = "b" if dtype.kind == "b" else dtype.str[1:]
    if key not in LLVM or not dtype.isnative:
        raise Declined(f"elements of {dtype}")
    return LLVM[key]


def register_type(dtype: np.dtype) -> Type:
    if dtype == CHARACTER:
        return llvm.I32
    return llvm.I1 if dtype.kind == "b" else memory_type(dtype)


def libm(name: str, t: Type) -> str:
    """The C library's name of a function of this floating type."""
    return name if t is llvm.DOUBLE else f"{name}f"


def alignment(dtype: np.dtype) -> int:
    """Of elements in memory: a complex one lies as its parts do."""
    return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
