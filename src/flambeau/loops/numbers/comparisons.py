"""Comparisons of single numbers, and the larger or smaller of them."""

from __future__ import annotations

import numpy as np

from ..emitter import BOOL, F64, I64, Emitter
from ..values import Declined, Scalar
from . import bounds as between
from . import complexes
from .conversions import as_python_takes_it, both_python, cast, exact, fitting, flag_of, loop_dtypes

__all__ = ["COMPARISONS", "choose", "clip", "compare", "extreme"]

COMPARE = {
    "<": ("slt", "ult", "olt"), "<=": ("sle", "ule", "ole"), ">": ("sgt", "ugt", "ogt"), ">=": ("sge", "uge", "oge"),
    "==": ("eq", "eq", "oeq"), "!=": ("ne", "ne", "une"),
}  # fmt: skip  # fmt: skip
COMPARISONS = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip  # fmt: skip


def compare(e: Emitter, op: str, a: Scalar, b: Scalar) -> Scalar:
    """``a op b``; integers of all types are compared as the numbers they are."""
    if "U" in (a.kind, b.kind):
        if a.kind != b.kind:
            raise Declined("a comparison of a character with a number")
        return Scalar(BOOL, True, e.cmp(COMPARE[op][1], a.v, b.v))
    b = as_python_takes_it(a, b)
    weak = True if a.weak and b.weak else None if both_python(a, b) else False
    if "c" in (a.kind, b.kind):
        dtype = complexes.C128 if both_python(a, b) else loop_dtypes(np.equal, a, b)[0]
        return Scalar(BOOL, weak, complexes.equal(e, op, cast(e, a, dtype).v, cast(e, b, dtype).v))
    if "f" in (a.kind, b.kind):
        if both_python(a, b):
            dtype = F64
        else:
            dtype, _ = loop_dtypes(np.less, a, b)
        x, y = cast(e, a, dtype).v, cast(e, b, dtype).v
        return Scalar(BOOL, weak, e.cmp(COMPARE[op][2], x, y))
    if np.uint64 in (a.dtype, b.dtype):
        if a.dtype != b.dtype:
            raise Declined("a comparison of unsigned and signed 64-bit integers")
        return Scalar(BOOL, weak, e.cmp(COMPARE[op][1], a.v, b.v))
    x, y = cast(e, a, I64).v, cast(e, b, I64).v
    return Scalar(BOOL, weak, e.cmp(COMPARE[op][0], x, y))


def choose(e: Emitter, greater: bool, values: list[Scalar]) -> Scalar:
    """Python's max() and min() of several numbers: the first unless a later one is better."""
    if any(v.kind == "c" for v in values):
        raise Declined("max or min of complex numbers")
    out = values[0]
    for v in values[1:]:
        better = compare(e, ">" if greater else "<", v, out).v
        if v.dtype != out.dtype:
            if {v.dtype, out.dtype} != {I64, F64} or not (v if v.dtype == I64 else out).weak:
                raise Declined("max or min of numbers of different types")
            v, out = (exact(e, s) if s.dtype == I64 else cast(e, s, F64, None) for s in (v, out))
        flag = None
        if v.weak is not out.weak or v.weak is None:
            x, y = flag_of(e, v), flag_of(e, out)
            flag = e.select(better, x, y) if x is not None and y is not None else None
        bounds = None
        if v.dtype == I64 and (v.bounds or out.bounds):
            ends = [s.bounds or between.ALL for s in (v, out)]
            best = max if greater else min
            bounds = best(x[0] for x in ends), best(x[1] for x in ends)
        weak = v.weak if v.weak is out.weak else None
        below = (between.either_below if greater else between.both_below)(out.below, v.below)
        out = Scalar(v.dtype, weak, e.select(better, v.v, out.v), bounds, None, flag, below=below)
    return out


def extreme(e: Emitter, greater: bool, a: Scalar, b: Scalar) -> Scalar:
    """np.maximum and np.minimum: nan when either is."""
    compute, result = loop_dtypes(np.maximum, a, b)
    if compute.kind == "c":
        raise Declined("the larger of complex numbers")
    x, y = fitting(e, a, compute), fitting(e, b, compute)
    if compute.kind == "f":
        keep = e.cmp("oge" if greater else "ole", x, y)
        keep = e.op("or", keep, e.cmp("uno", x, x))
    elif compute.kind == "b":
        return Scalar(result, False, e.op("or" if greater else "and", x, y))
    else:
        keep = e.cmp(f"{'s' if compute.kind == 'i' else 'u'}{'ge' if greater else 'le'}", x, y)
    return Scalar(result, False, e.select(keep, x, y))


def clip(e: Emitter, x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    return extreme(e, False, extreme(e, True, Scalar(x.dtype, False, x.v), low), high)
