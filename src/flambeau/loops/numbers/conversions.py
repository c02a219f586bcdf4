"""Numbers in other types: as C, NumPy (NEP 50) and Python convert them, and the dtype in which a ufunc computes."""

from __future__ import annotations

from types import EllipsisType

import numpy as np

from ...base.records import replace
from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand
from ..emitter import BOOL, F64, I64, Emitter, constant
from ..values import Declined, Scalar, register_type
from . import complexes

__all__ = [
    "PYTHONS",
    "NUMPYS",
    "UNKNOWN",
    "as_python_takes_it",
    "as_type",
    "both_python",
    "cast",
    "exact",
    "fitting",
    "flag_of",
    "item",
    "loop_dtypes",
    "met",
    "stored",
    "to_bool",
    "to_float",
    "to_int",
]

EXACT = 1 << 53  # integers up to this are floats
# Flags of numbers, see Scalar; UNKNOWN: it isn't known whether it is Python's.
NUMPYS, PYTHONS, KEPT, UNKNOWN = (llvm.constant(llvm.I8, n) for n in range(4))


def cast(e: Emitter, s: Scalar, dtype: np.dtype, weak: bool | None | EllipsisType = ...) -> Scalar:
    """The number in another dtype, as C converts it."""
    weak = s.weak if weak is ... else weak
    if s.dtype == dtype:
        return replace(s, weak=weak)
    if "U" in (s.kind, dtype.kind):
        raise Declined("a character where a number is wanted")
    if s.const is not None and (dtype.kind == "c" or (dtype.kind in "fb" and s.kind != "c")):
        return Scalar(dtype, weak, constant(dtype.type(s.const)).v, None, s.const)
    if dtype.kind == "c":
        of = complexes.part(dtype)
        v = complexes.from_float(e, cast(e, s, of).v) if s.kind != "c" else complexes.width(e, s.v, dtype)
        return Scalar(dtype, weak, v)
    if s.kind == "c":
        if dtype.kind != "b":
            raise Declined(f"a complex number as {dtype}")
        return Scalar(dtype, weak, complexes.truth(e, s.v))
    a, b, kind = register_type(s.dtype), register_type(dtype), s.kind + dtype.kind
    if dtype.kind == "b":
        v = e.cmp("une" if s.kind == "f" else "ne", s.v, 0)
    elif kind in ("ff",):
        v = e.to("fpext" if dtype.itemsize > s.dtype.itemsize else "fptrunc", s.v, b)
    elif dtype.kind == "f":
        v = e.to("sitofp" if s.kind == "i" else "uitofp", s.v, b)
    elif s.kind == "f" and dtype == np.uint64:
        v = e.call(b, f"@llvm.fptoui.sat.i64.{a.suffix}", s.v)
    elif s.kind == "f":
        # As x86 does it: to 64 bits, or to 32 for shorter ones; nan and what is out of range become the least number.
        bits = 64 if dtype.itemsize == 8 or dtype == np.uint32 else 32
        end = 2.0 ** (bits - 1)
        low = e.cmp("oge", s.v, -end)
        inside = e.op("and", low, e.cmp("olt", s.v, end))
        v = e.select(inside, e.to("fptosi", s.v, llvm.I64 if bits == 64 else llvm.I32), -(1 << bits - 1))
        v = e.to("trunc", v, b) if 8 * dtype.itemsize < bits else v
    elif s.kind == "b" or dtype.itemsize > s.dtype.itemsize:
        v = e.to("sext" if s.kind == "i" else "zext", s.v, b)
    elif dtype.itemsize < s.dtype.itemsize:
        v = e.to("trunc", s.v, b)
    else:
        v = s.v
    bounds = s.bounds if s.kind in "iu" else (0, 1) if s.kind == "b" else None
    if dtype == I64 and bounds is None and s.kind in "iu" and s.dtype.itemsize < 8:
        bounds = int(np.iinfo(s.dtype).min), int(np.iinfo(s.dtype).max)
    return Scalar(dtype, weak, v, bounds if dtype == I64 else None)


def _given(s: Scalar, weak: bool):
    """A number as ufunc.resolve_dtypes wants it: its dtype, or Python's type for a weak one. Python's truth values are NumPy's there."""
    if not weak or s.kind == "b":
        return s.dtype
    return {"i": int, "u": int, "f": float, "c": complex}[s.kind]


def loop_dtypes(uf, *operands: Scalar) -> tuple[np.dtype, np.dtype]:
    """(dtype in which a ufunc computes, dtype of its result) for these numbers. Declined when that depends on which of them are Python's."""
    found = set()
    for choice in range(1 << sum(s.weak is None for s in operands)):
        given, at = [], 0
        for s in operands:
            weak = s.weak
            if weak is None:
                weak = bool(choice >> at & 1)
                at += 1
            given.append(_given(s, weak))
        if all(isinstance(g, type) for g in given):
            given = [np.dtype(g) for g in given]
        try:
            dtypes = uf.resolve_dtypes((*given, None))
        except TypeError as error:
            raise Declined(f"np.{uf.__name__}: {error}") from None
        found.add((dtypes[0], dtypes[-1]))
        if any(d != dtypes[0] for d in dtypes[1:-1]):
            raise Declined(f"np.{uf.__name__} of different dtypes")
    if len(found) > 1:
        raise Declined(f"np.{uf.__name__}: the dtype depends on whether a number is Python's or NumPy's")
    return found.pop()


def fitting(e: Emitter, s: Scalar, dtype: np.dtype) -> Operand:
    """The number in the loop's dtype. A Python integer that doesn't fit is NumPy's OverflowError."""
    if s.weak is True and s.kind == "i" and dtype.kind in "iu" and dtype != I64:
        info = np.iinfo(dtype)
        if s.const is not None and not info.min <= s.const <= info.max:
            raise Declined(f"the integer {s.const} in {dtype}")
        if s.const is None and not (s.bounds and info.min <= s.bounds[0] and s.bounds[1] <= info.max):
            if dtype == np.uint64:
                ok = e.cmp("sge", s.v, 0)
            else:
                ok = e.op("and", e.cmp("sge", s.v, info.min), e.cmp("sle", s.v, info.max))
            e.check(ok, "OverflowError", f"Python integer {{0}} out of bounds for {dtype}", s.v)
    return cast(e, s, dtype).v


def stored(e: Emitter, s: Scalar, dtype: np.dtype) -> Operand:
    """The number as an element of an array of ``dtype``, to which it is assigned by itself. Integers have to hold it: NumPy goes through int()."""
    if dtype.kind not in "iu" or s.kind not in "iuf":
        return cast(e, s, dtype).v
    if s.weak is not False and s.kind == "i":
        return fitting(e, s if s.weak else Scalar(s.dtype, True, s.v, s.bounds, s.const), dtype)
    info, text = np.iinfo(dtype), f"a number out of bounds for {dtype} is stored in a compiled loop"
    if s.kind == "f":
        x = cast(e, s, F64)
        # The next numbers outside that are doubles: what lies between them and the ends is cut off.
        low = e.cmp("oge" if dtype == I64 else "ogt", x.v, float(info.min) - (dtype != I64))
        high = e.cmp("olt", x.v, float(info.max + 1))
        e.check(e.op("and", low, high), "OverflowError", text)
        return e.to(f"fpto{'si' if dtype.kind == 'i' else 'ui'}", x.v, register_type(dtype))
    n, given = cast(e, s, I64), np.iinfo(s.dtype)
    least, most = n.bounds or (int(given.min), int(given.max))
    if s.dtype == np.uint64 and dtype != np.uint64:
        e.check(e.cmp("ule", s.v, info.max), "OverflowError", text)
    elif least < info.min:
        e.check(e.cmp("sge", n.v, info.min), "OverflowError", text)
    if most > info.max and s.dtype != np.uint64:
        e.check(e.cmp("sle", n.v, info.max), "OverflowError", text)
    return cast(e, s, dtype).v


def as_type(e: Emitter, s: Scalar, dtype: np.dtype) -> Scalar:
    """``np.int32(number)`` and the like."""
    v = cast(e, s, dtype).v if s.weak is False and s.kind != "f" else stored(e, s, dtype)
    return Scalar(dtype, False, v)


def both_python(a: Scalar, b: Scalar) -> bool:
    return a.weak is not False and b.weak is not False


def as_python_takes_it(a: Scalar, b: Scalar) -> Scalar:
    """NumPy's float64 on the right of a complex number of Python's is a float of Python's: it is asked first."""
    first = a.kind == "c" and a.weak is not False and b.dtype == F64 and not b.weak
    return replace(b, weak=True, flag=None) if first else b


def flag_of(e: Emitter, s: Scalar) -> Operand | None:
    """The flag that tells whether a number is Python's, see Scalar; None when it isn't known."""
    return NUMPYS if s.weak is False else PYTHONS if s.weak else s.flag


def met(e: Emitter, s: Scalar, dtype: np.dtype) -> Scalar:
    """A Python number in a variable that elsewhere holds numbers of another dtype (see values.join). It has to be exact there."""
    out = cast(e, s, dtype)
    back = s if s.kind == "c" else cast(e, cast(e, s, complexes.part(dtype)) if dtype.kind == "c" else out, s.dtype)
    if s.kind == "c":
        return replace(out, weak=None, flag=PYTHONS)
    if s.kind == "i":
        same = e.cmp("eq", back.v, s.v)
        if dtype.kind == "u":
            same = e.op("and", same, e.cmp("sge", s.v, 0))
    else:
        same = e.cmp("ueq", back.v, s.v)
    e.check(same, "RuntimeError", f"a Python number that {dtype} doesn't hold, in a compiled loop")
    return replace(out, weak=None, flag=KEPT if s.kind == "i" and dtype.kind in "fc" else PYTHONS)


def exact(e: Emitter, s: Scalar) -> Scalar:
    """Python's int as a float of the same value."""
    if s.bounds and -EXACT <= s.bounds[0] and s.bounds[1] <= EXACT:
        return cast(e, s, F64, None)
    out = met(e, s, F64)
    return replace(out, weak=None, flag=None)


def to_bool(e: Emitter, s: Scalar) -> Operand:
    """What ``if`` asks: an i1."""
    return cast(e, s, BOOL).v


def to_int(e: Emitter, s: Scalar) -> Scalar:
    """int(x)"""
    if s.kind == "c":
        raise Declined("int() of a complex number")
    if s.kind == "f":
        x = cast(e, s, F64)
        e.check(e.cmp("ord", x.v, 0.0), "ValueError", "cannot convert float NaN to integer")
        inside = e.cmp("olt", e.intrinsic("fabs", x.v), 2.0**63)
        e.check(
            inside,
            "OverflowError",
            "cannot convert float infinity to integer, or one of more than 64 bits in a compiled loop",
        )
        return Scalar(I64, True, e.to("fptosi", x.v, llvm.I64))
    if s.dtype == np.uint64:
        raise Declined("int() of an unsigned 64-bit integer")
    small = s.kind == "u" or s.dtype.itemsize < 8
    bounds = s.bounds
    if bounds is None and small and s.kind in "iu":
        bounds = (int(np.iinfo(s.dtype).min), int(np.iinfo(s.dtype).max))
    bounds = (0, 1) if s.kind == "b" else bounds
    return Scalar(I64, True, cast(e, s, I64).v, bounds, s.const and int(s.const), below=s.below, relations=s.relations)


def to_float(e: Emitter, s: Scalar) -> Scalar:
    """float(x)"""
    return cast(e, s, F64, True)


def item(e: Emitter, x: Scalar) -> Scalar:
    """``x.item()`` of a number of NumPy's."""
    if x.weak is not False or x.kind not in "bif" or x.dtype.itemsize not in (1, 2, 4, 8):
        raise Declined("item() of this number")
    return cast(e, x, {"b": BOOL, "i": I64, "f": F64}[x.kind], True)
