"""Python's operators as functions of :mod:`operator`, with the methods that classes define them by."""

from __future__ import annotations

import operator

import numpy as np

__all__ = ["COMPARISONS", "INPLACE", "NUMPY_UNARY", "OPERATORS", "REFLECTED", "SWAPPED", "UNARY"]

# The left operand's method, and the right one's.
REFLECTED = {
    operator.add: ("__add__", "__radd__"), operator.sub: ("__sub__", "__rsub__"), operator.mul: ("__mul__", "__rmul__"),
    operator.truediv: ("__truediv__", "__rtruediv__"), operator.floordiv: ("__floordiv__", "__rfloordiv__"),
    operator.mod: ("__mod__", "__rmod__"), operator.pow: ("__pow__", "__rpow__"), operator.matmul: ("__matmul__", "__rmatmul__"),
    operator.and_: ("__and__", "__rand__"), operator.or_: ("__or__", "__ror__"), operator.xor: ("__xor__", "__rxor__"),
    operator.lshift: ("__lshift__", "__rlshift__"), operator.rshift: ("__rshift__", "__rrshift__"),
    operator.lt: ("__lt__", "__gt__"), operator.le: ("__le__", "__ge__"), operator.gt: ("__gt__", "__lt__"),
    operator.ge: ("__ge__", "__le__"), operator.eq: ("__eq__", "__eq__"), operator.ne: ("__ne__", "__ne__"),
}  # fmt: skip
INPLACE = {
    operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul, operator.itruediv: operator.truediv,
    operator.ifloordiv: operator.floordiv, operator.imod: operator.mod, operator.ipow: operator.pow, operator.imatmul: operator.matmul,
    operator.iand: operator.and_, operator.ior: operator.or_, operator.ixor: operator.xor, operator.ilshift: operator.lshift,
    operator.irshift: operator.rshift,
}  # fmt: skip
OPERATORS = {*REFLECTED, *INPLACE}
UNARY = {
    operator.neg: "__neg__",
    operator.pos: "__pos__",
    operator.invert: "__invert__",
    operator.abs: "__abs__",
    operator.not_: None,
}
NUMPY_UNARY = {
    operator.neg: np.negative,
    operator.pos: np.positive,
    operator.invert: np.invert,
    operator.abs: np.absolute,
}
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.gt, operator.le, operator.ge)
# A comparison with its operands the other way round.
SWAPPED = {fn: getattr(operator, REFLECTED[fn][1]) for fn in COMPARISONS}
