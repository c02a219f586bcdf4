"""Numbers that are known while a loop is compiled, as scalars."""

from __future__ import annotations

import numpy as np

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand
from ..values import Scalar, register_type

__all__ = ["BOOL", "F64", "I64", "constant"]

I64 = np.dtype(np.int64)
F64 = np.dtype(np.float64)
BOOL = np.dtype(bool)


def constant(value, weak: bool | None = True) -> Scalar:
    """A Python or NumPy number as a Scalar."""
    if isinstance(value, np.generic):
        dtype, weak = value.dtype, False
    else:
        dtype = {bool: BOOL, int: I64, complex: np.dtype(np.complex128)}.get(type(value), F64)
    t = register_type(dtype)
    if dtype.kind == "c":
        parts = [llvm.constant(t.element, x) for x in (value.real, value.imag)]
        return Scalar(dtype, weak, Operand(f"<{parts[0]!r}, {parts[1]!r}>", t), None, value)
    n = int(value) if dtype.kind in "iu" else None
    return Scalar(dtype, weak, llvm.constant(t, value), None if n is None else (n, n), value)
