"""Comparisons of tuples, and of lists that don't change, item by item."""

from __future__ import annotations

from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand
from . import text
from .emitter import BOOL, Emitter
from .faults import Limit
from .numbers import comparisons
from .values import Declined, Scalar, Tuple

__all__ = ["compare"]

_SWAPPED = {">": "<", ">=": "<="}


def compare(e: Emitter, op: str, a: Tuple, b: Tuple) -> Scalar:
    """``a op b``. Python takes an item for equal to itself whatever ``==`` says; so a NaN, which isn't equal to itself, ends the kernel."""
    if a.listed != b.listed:
        if op not in ("==", "!="):
            raise Declined("a comparison of a tuple and a list")
        return Scalar(BOOL, True, llvm.constant(llvm.I1, op == "!="))
    if op in ("==", "!="):
        same = _equal(e, a, b)
        return Scalar(BOOL, True, e.flip(same) if op == "!=" else same)
    if op in _SWAPPED:
        return compare(e, _SWAPPED[op], b, a)
    out: Operand = llvm.constant(llvm.I1, len(a.items) < len(b.items) + (op == "<="))
    for x, y in reversed(list(zip(a.items, b.items))):
        less = compare(e, "<", x, y).v if isinstance(x, Tuple) and isinstance(y, Tuple) else _numbers(e, "<", x, y)
        out = e.op("or", less, e.op("and", _equal(e, x, y), out))
    return Scalar(BOOL, True, out)


def _equal(e: Emitter, a, b) -> Operand:
    if not (isinstance(a, Tuple) and isinstance(b, Tuple)):
        return _numbers(e, "==", a, b)
    out: Operand = llvm.constant(llvm.I1, a.listed == b.listed and len(a.items) == len(b.items))
    for x, y in zip(a.items, b.items):
        out = e.op("and", out, _equal(e, x, y))
    return out


def _numbers(e: Emitter, op: str, a, b) -> Operand:
    a, b = text.character(a), text.character(b)
    if not (isinstance(a, Scalar) and isinstance(b, Scalar)) or "c" in (a.kind, b.kind):
        raise Declined("a comparison of tuples of other things than numbers")
    for s in (a, b):
        if s.kind == "f":
            ordered = e.cmp("ord", s.v, s.v)
            e.check(ordered, "RuntimeError", Limit("a NaN in a tuple that a compiled loop compares"))
    return comparisons.compare(e, op, a, b).v
