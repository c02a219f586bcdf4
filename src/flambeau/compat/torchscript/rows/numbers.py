"""Operators on numbers. Semantics are those of ``torch/csrc/jit/runtime/register_prim_ops.cpp`` as its schemas state them: ``div`` and ``pow`` of
ints are floats, ``round`` gives one, and a float divided by zero is infinite.
"""

from __future__ import annotations

import math
import operator

from .table import NUMBERS, prim, row


def _over(a: float, zero: float) -> float:
    """A float divided by zero: nothing is raised."""
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, zero)


for _name, _fn in {"add": operator.add, "sub": operator.sub, "mul": operator.mul}.items():
    row(_name, _fn, NUMBERS)
for _name, _fn in {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}.items():
    row(_name, _fn, "number, number -> bool", "str, str -> bool")
for _name, _fn in {"eq": operator.eq, "ne": operator.ne}.items():
    row(_name, _fn, "Device, Device -> bool", "List[int], List[int] -> bool", "List[float], List[float] -> bool")
    row(_name, _fn, "List[bool], List[bool] -> bool", "List[str], List[str] -> bool", "Enum, Enum -> bool")
    row(_name, _fn, "NoneType, NoneType -> bool")
row("neg", operator.neg, "number -> =")
row("floordiv", operator.floordiv, "int, int -> int")
row("floordiv", lambda a, b: a // b if b else _over(a, b), NUMBERS)
row("remainder", operator.mod, "int, int -> int")
row("remainder", lambda a, b: a % b if b else math.nan, NUMBERS)
row("divmod", divmod, "int, int -> Tuple[int, int]", "number, number -> Tuple[float, float]")
row("div", operator.truediv, "complex, complex -> complex", "int, int -> float")
row("div", lambda a, b: a / b if b else _over(a, b), "number, number -> float")
row("pow", lambda a, b: a**b, "complex, complex -> complex")
row("pow", lambda a, b: float(a) ** b, "number, number -> float")
row("fmod", math.fmod, "number, number -> float")
row("mathremainder", math.remainder, "number, number -> float")
row("copysign", math.copysign, "number, number -> float")
row("atan2", math.atan2, "number, number -> float")
row("gcd", math.gcd, "int, int -> int")
row("ldexp", math.ldexp, "float, int -> float")
row("frexp", math.frexp, "float -> Tuple[float, int]")
row("modf", math.modf, "float -> Tuple[float, float]")
row("factorial", math.factorial, "int -> int")
row("log", math.log, "number -> float", "number, number -> float")
for _name in (
    "exp expm1 log1p log10 sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc gamma lgamma "
    "degrees radians fabs"
).split():
    row(_name, getattr(math, _name), "number -> float")
row("floor", math.floor, "number -> int")
row("ceil", math.ceil, "number -> int")
row("round", lambda a: math.copysign(float(round(a)), a), "number -> float")
row("isfinite", math.isfinite, "float -> bool")
row("isinf", math.isinf, "float -> bool")
row("isnan", math.isnan, "float -> bool")
row("__not__", operator.not_, "bool -> bool")
row("__and__", operator.and_, "bool, bool -> bool", "int, int -> int")
row("__or__", operator.or_, "bool, bool -> bool", "int, int -> int")
row("__xor__", operator.xor, "bool, bool -> bool", "int, int -> int")
row("__lshift__", operator.lshift, "int, int -> int")
row("__rshift__", operator.rshift, "int, int -> int")
row("__range_length", lambda lo, hi, step: len(range(lo, hi, step)), "int, int, int -> int")
row("__derive_index", lambda index, start, step: start + index * step, "int, int, int -> int")
row("__round_to_zero_floordiv", lambda a, b: _toward_zero(a, b), "int, int -> int")
prim("abs", abs, "number -> =", "Tensor -> Tensor")
for _name, _fn in {"min": min, "max": max}.items():
    prim(_name, _fn, NUMBERS)
row("bin", bin, "int -> str")
row("hex", hex, "int -> str")
row("oct", oct, "int -> str")
row("chr", chr, "int -> str")
row("ord", ord, "str -> int")
row("Int", int, "number -> int", "Tensor -> int", "str -> int")
row("Float", float, "number -> float", "Tensor -> float", "str -> float")
row("Bool", bool, "number -> bool", "Tensor -> bool")
row("IntImplicit", int, "Tensor -> int")
row("FloatImplicit", float, "Tensor -> float")
row("ScalarImplicit", lambda x: x.item(), "Tensor -> number")
row("Complex", complex, "number -> complex", "Tensor -> complex", "number, number -> complex")


def _toward_zero(a: int, b: int) -> int:
    return a // b if (a < 0) == (b < 0) else -(-a // b)
