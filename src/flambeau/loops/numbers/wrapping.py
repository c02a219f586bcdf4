"""NumPy tells of it when an operator of its integer scalars overflows (arrays of integers wrap around silently). A kernel notes it, and raises the
processor's overflow flag at its end, for which a call is made again plainly (dynamo/numpy/floating_errors.py)."""

from __future__ import annotations

import numpy as np

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.code import Code
from ...inductor.assembly.instructions import Operand
from ..emitter import I64, Emitter
from ..values import Scalar
from .bounds import LEAST, MOST, of
from .conversions import cast

__all__ = ["note", "note_negative", "raise_flag"]

SLOT = ("@wrapped", llvm.I8)
# exp() of it overflows. (feraiseexcept() would raise the x87's flag, which nobody reads.)
HUGE = 1e4


def note(e: Emitter, op: str, a: Scalar, b: Scalar, out: Scalar) -> None:
    """Note whether ``out``, of ``a op b``, has wrapped around, where all are numbers."""
    if op not in ("+", "-", "*", "//") or not _is_numpys(out) or _fits(op, a, b, out):
        return
    signed = out.kind == "i"
    x, y, r = cast(e, a, out.dtype).v, cast(e, b, out.dtype).v, out.v
    known = b.const if type(b.const) is int else None
    if op == "//":
        if not signed or known not in (None, -1):
            return
        wrapped = e.op("and", e.cmp("eq", x, int(np.iinfo(out.dtype).min)), e.cmp("eq", y, -1))
    elif op == "*":
        wrapped = _product_wraps(e, signed, x, y, r, out.dtype)
    elif known is not None and signed:
        wrapped = e.cmp("slt" if (known >= 0) == (op == "+") else "sgt", r, x)
    elif op == "+":
        wrapped = e.cmp("slt", e.op("and", e.op("xor", x, r), e.op("xor", y, r)), 0) if signed else e.cmp("ult", r, x)
    else:
        wrapped = e.cmp("slt", e.op("and", e.op("xor", x, y), e.op("xor", x, r)), 0) if signed else e.cmp("ult", x, y)
    _set(e, wrapped)


def note_negative(e: Emitter, x: Scalar, out: Scalar) -> None:
    """The same of ``-x`` and ``abs(x)``."""
    if _is_numpys(out):
        least = int(np.iinfo(out.dtype).min)
        _set(e, e.cmp("ne", x.v, 0) if out.kind == "u" else e.cmp("eq", x.v, least))


def raise_flag(code: Code, e: Emitter) -> None:
    """Behind all turns."""
    if SLOT in e.slots:
        wrapped = code.cmp("ne", code.read(llvm.I8, e.slots[SLOT]), 0)
        code.call(llvm.DOUBLE, "@exp", code.select(wrapped, *(llvm.constant(llvm.DOUBLE, x) for x in (HUGE, 0.0))))


def _is_numpys(out: Scalar) -> bool:
    return out.kind in "iu" and out.weak is False and out.const is None


def _fits(op: str, a: Scalar, b: Scalar, out: Scalar) -> bool:
    bounds = of(op, a.bounds, b.bounds) if out.dtype == I64 else None
    return bounds is not None and LEAST <= bounds[0] and bounds[1] <= MOST


def _product_wraps(e: Emitter, signed: bool, x: Operand, y: Operand, r: Operand, dtype: np.dtype) -> Operand:
    if dtype.itemsize == 8:
        pair = e.call(llvm.aggregate("{ i64, i1 }"), f"@llvm.{'s' if signed else 'u'}mul.with.overflow.i64", x, y)
        return e.field(pair, 1, llvm.I1)
    how = "sext" if signed else "zext"
    wide = e.op("mul", *(e.to(how, v, llvm.I64) for v in (x, y)))
    return e.cmp("ne", wide, e.to(how, r, llvm.I64))


def _set(e: Emitter, wrapped: Operand) -> None:
    e.declare("exp", llvm.DOUBLE, [llvm.constant(llvm.DOUBLE, 0.0)])
    e.set(*SLOT, e.op("or", e.get(*SLOT), e.to("zext", wrapped, llvm.I8)))
