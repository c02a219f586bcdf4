"""Functions of numbers: NumPy's ufuncs, the modules math and cmath, rounding and tests."""

from __future__ import annotations

import math

import numpy as np

from ...base.records import replace
from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand
from ..emitter import BOOL, F64, Emitter, constant
from ..values import Declined, Scalar, libm, register_type
from . import complex_functions, complexes
from .arithmetic import BINARY, absolute, binary, negate, numpy_operation
from .comparisons import COMPARISONS, clip, compare, extreme
from .conversions import cast, fitting, loop_dtypes, to_bool, to_int

__all__ = ["MATH", "is_integer", "rounded_to"]

_LIBM = {
    np.sin: "sin", np.cos: "cos", np.tan: "tan", np.exp: "exp", np.log: "log", np.log2: "log2", np.log10: "log10", np.exp2: "exp2",
    np.expm1: "expm1", np.log1p: "log1p", np.sinh: "sinh", np.cosh: "cosh", np.tanh: "tanh", np.arcsin: "asin", np.arccos: "acos",
    np.arctan: "atan",
}  # fmt: skip  # fmt: skip
_EXPANDED = (
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log1p",
    "tanh",
)  # straight-line code, which LLVM vectorises
_INTRINSIC = {np.sqrt: "sqrt", np.floor: "floor", np.ceil: "ceil", np.trunc: "trunc", np.rint: "rint", np.fabs: "fabs"}


def _one(uf, external: str | None, intrinsic: str = ""):
    def call(e: Emitter, x: Scalar) -> Scalar:
        compute, result = loop_dtypes(uf, x)
        if compute.kind == "c" and uf in complexes.MATH:
            return Scalar(result, False, complexes.MATH[uf](e, cast(e, x, compute), result))
        if compute.kind != "f" or compute.itemsize < 4:
            if compute.kind in "iu" and uf in (np.floor, np.ceil, np.trunc):
                return Scalar(compute, False, fitting(e, x, compute))
            raise Declined(f"np.{uf.__name__} of {x.dtype}")
        t, v = register_type(compute), fitting(e, x, compute)
        if external in _EXPANDED:
            return Scalar(result, False, e.expanded(external, t.suffix, v))
        made = e.intrinsic(intrinsic, v) if external is None else e.external(libm(external, t), t, v)
        return Scalar(result, False, made)

    return call


def _two(uf, name: str):
    def call(e: Emitter, x: Scalar, y: Scalar) -> Scalar:
        compute, result = loop_dtypes(uf, x, y)
        if compute.kind != "f" or compute.itemsize < 4:
            raise Declined(f"np.{uf.__name__} of {x.dtype} and {y.dtype}")
        t = register_type(compute)
        v = e.external(libm(name, t), t, fitting(e, x, compute), fitting(e, y, compute))
        return Scalar(result, False, v)

    return call


def _operator(op: str):
    def call(e, x, y):
        compute, result = loop_dtypes(BINARY[op], x, y)
        return Scalar(result, False, numpy_operation(e, op, compute, fitting(e, x, compute), fitting(e, y, compute)))

    return call


def _python_math(name: str, external: str | None, valid=None, integer: bool = False, magnitude: bool = False):
    """A function of the module math: the C library's, or LLVM's of the same name. ``valid``: (comparison, number) that its argument, or
    ``magnitude`` of it, has to meet."""

    def call(e: Emitter, x: Scalar) -> Scalar:
        v = cast(e, x, F64, True).v
        if valid is not None:
            tested = e.intrinsic("fabs", v) if magnitude else v
            e.check(e.cmp(valid[0], tested, valid[1]), "ValueError", "math domain error")
        out = e.external(external, llvm.DOUBLE, v) if external else e.intrinsic(name, v)
        if name in ("exp", "sinh", "cosh", "expm1"):
            finite = e.cmp("olt", e.intrinsic("fabs", out), math.inf)
            given = e.cmp("olt", e.intrinsic("fabs", v), math.inf)
            e.check(e.op("or", finite, e.flip(given)), "OverflowError", "math range error")
        s = Scalar(F64, True, out)
        return to_int(e, s) if integer else s

    return call


def _python_math_of_two(external: str):
    def call(e: Emitter, x: Scalar, y: Scalar) -> Scalar:
        x, y = cast(e, x, F64, True), cast(e, y, F64, True)
        return Scalar(F64, True, e.external(external, llvm.DOUBLE, x.v, y.v))

    return call


def _finite_python_math(external: str):
    """A function of two finite numbers, whose result is finite where Python doesn't raise."""

    def call(e: Emitter, x: Scalar, y: Scalar) -> Scalar:
        x, y = cast(e, x, F64, True), cast(e, y, F64, True)
        out = e.external(external, llvm.DOUBLE, x.v, y.v)
        for v in (x.v, y.v, out):
            e.check(e.cmp("olt", e.intrinsic("fabs", v), math.inf), "ValueError", "math domain error")
        return Scalar(F64, True, out)

    return call


def _of_floats(test):
    """A test of floats that is the same for all integers."""

    def call(e: Emitter, x: Scalar) -> Scalar:
        if x.kind == "c":
            of = {_nan: complexes.is_nan, _finite: complexes.is_finite}.get(test)
            if of is None:
                raise Declined("np.isinf of a complex number")
            return of(e, x)
        if x.kind != "f":
            return constant(np.bool_(test is _finite))
        return Scalar(BOOL, False, test(e, x))

    return call


def _nan(e: Emitter, x: Scalar) -> Operand:
    return e.cmp("uno", x.v, 0.0)


def _infinite(e: Emitter, x: Scalar) -> Operand:
    return e.cmp("oeq", absolute(e, x).v, math.inf)


def _finite(e: Emitter, x: Scalar) -> Operand:
    return e.cmp("olt", absolute(e, x).v, math.inf)


def sign(e: Emitter, x: Scalar) -> Scalar:
    x = Scalar(np.dtype(np.int64) if x.kind == "i" and x.weak else x.dtype, False, x.v)
    if x.kind in "bc":
        raise Declined("np.sign of bools or complex numbers")
    if x.kind == "f":
        up, down = e.cmp("ogt", x.v, 0.0), e.cmp("olt", x.v, 0.0)
        v = e.select(up, 1.0, x.v)
        v = e.select(down, -1.0, v)
        zero = e.cmp("oeq", x.v, 0.0)
        return Scalar(x.dtype, False, e.select(zero, 0.0, v))
    nonzero = e.to("zext", e.cmp("ne", x.v, 0), register_type(x.dtype))
    if x.kind == "u":
        return Scalar(x.dtype, False, nonzero)
    below = e.cmp("slt", x.v, 0)
    return Scalar(x.dtype, False, e.select(below, -1, nonzero))


def rounded(e: Emitter, x: Scalar) -> Scalar:
    """np.round(x)"""
    if x.kind in "iu":
        return Scalar(x.dtype, False, x.v, x.bounds)
    return _one(np.rint, None, "rint")(e, x)


def rounded_to(e: Emitter, x: Scalar, digits: Scalar) -> Scalar:
    """round(x, digits) and np.round(x, digits) of NumPy's floats."""
    if x.dtype != F64 or x.weak is not False or type(digits.const) is not int or abs(digits.const) > 15:
        raise Declined("round() to digits, of other numbers than NumPy's floats")
    factor = 10.0 ** abs(digits.const)
    up, down = ("fmul", "fdiv") if digits.const >= 0 else ("fdiv", "fmul")
    return Scalar(F64, False, e.op(down, e.intrinsic("rint", e.op(up, x.v, factor)), factor))


def is_integer(e: Emitter, x: Scalar) -> Scalar:
    if x.kind != "f":
        raise Declined("is_integer() of an integer")
    whole = e.cmp("oeq", e.intrinsic("floor", x.v), x.v)
    return Scalar(BOOL, True, e.op("and", whole, e.cmp("olt", e.intrinsic("fabs", x.v), math.inf)))


def _cut(e: Emitter, s: Scalar) -> Scalar:
    """math.trunc(x): of NumPy's scalars, only float64 has the method."""
    if s.weak is not True and s.dtype != F64:
        raise Declined(f"math.trunc of a {s.dtype}")
    return to_int(e, s)


def _logical(op: str):
    def call(e, x, y):
        return Scalar(BOOL, False, e.op(op, to_bool(e, x), to_bool(e, y)))

    return call


def _comparison(op: str):
    def call(e: Emitter, x: Scalar, y: Scalar) -> Scalar:
        return replace(compare(e, op, x, y), weak=False)

    return call


MATH = {
    **{uf: _one(uf, name) for uf, name in _LIBM.items()},
    **{uf: _one(uf, None, name) for uf, name in _INTRINSIC.items()},
    np.arctan2: _two(np.arctan2, "atan2"),
    np.hypot: _two(np.hypot, "hypot"),
    np.add: _operator("+"), np.subtract: _operator("-"), np.multiply: _operator("*"), np.divide: _operator("/"),
    np.floor_divide: _operator("//"), np.remainder: _operator("%"),
    np.bitwise_and: _operator("&"), np.bitwise_or: _operator("|"), np.bitwise_xor: _operator("^"),
    np.left_shift: _operator("<<"), np.right_shift: _operator(">>"),
    np.isnan: _of_floats(_nan), np.isinf: _of_floats(_infinite), np.isfinite: _of_floats(_finite), np.sign: sign, np.clip: clip,
    **{uf: _comparison(op) for op, uf in COMPARISONS.items()},
    np.logical_and: _logical("and"), np.logical_or: _logical("or"), np.logical_xor: _logical("xor"),
    np.logical_not: lambda e, x: Scalar(BOOL, False, e.flip(to_bool(e, x))),
    np.negative: lambda e, x: negate(e, Scalar(x.dtype, False, x.v)),
    np.cbrt: _one(np.cbrt, "cbrt"), np.arcsinh: _one(np.arcsinh, "asinh"), np.arccosh: _one(np.arccosh, "acosh"),
    np.arctanh: _one(np.arctanh, "atanh"), np.copysign: _two(np.copysign, "copysign"),
    math.isnan: lambda e, x: Scalar(BOOL, True, _of_floats(_nan)(e, cast(e, x, F64)).v),
    math.isfinite: lambda e, x: Scalar(BOOL, True, _of_floats(_finite)(e, cast(e, x, F64)).v),
    math.isinf: lambda e, x: Scalar(BOOL, True, _of_floats(_infinite)(e, cast(e, x, F64)).v),
    np.power: lambda e, x, y: binary(e, "**", Scalar(x.dtype, False, x.v), y),
    np.square: lambda e, x: Scalar(x.dtype, False, binary(e, "*", Scalar(x.dtype, False, x.v), Scalar(x.dtype, False, x.v)).v),
    np.conjugate: complexes.conjugate, np.real: complexes.real, np.imag: complexes.imag, np.angle: complexes.angle,
    np.absolute: lambda e, x: absolute(e, Scalar(x.dtype, False, x.v)),
    np.maximum: lambda e, x, y: extreme(e, True, x, y),
    np.minimum: lambda e, x, y: extreme(e, False, x, y),
    math.sqrt: _python_math("sqrt", None, ("uge", 0.0)),
    math.exp: _python_math("exp", "exp"),
    math.log: _python_math("log", "log", ("ugt", 0.0)),
    **{getattr(math, f): _python_math(f, f, ("une", math.inf), magnitude=True) for f in ("sin", "cos", "tan")},
    **{getattr(math, f): _python_math(f, f, ("ule", 1.0), magnitude=True) for f in ("asin", "acos")},
    **{getattr(math, f): _python_math(f, f) for f in ("tanh", "sinh", "cosh", "expm1", "erf", "erfc", "asinh")},
    **{getattr(math, f): _python_math(f, f, ("ugt", 0.0)) for f in ("log2", "log10")},
    math.log1p: _python_math("log1p", "log1p", ("ugt", -1.0)),
    math.trunc: _cut,
    math.atan2: _python_math_of_two("atan2"), math.copysign: _python_math_of_two("copysign"),
    math.hypot: _python_math_of_two("hypot"),
    np.round: rounded, np.around: rounded,
    math.atan: _python_math("atan", "atan"),
    math.atanh: _python_math("atanh", "atanh", ("olt", 1.0), magnitude=True),
    math.acosh: _python_math("acosh", "acosh", ("uge", 1.0)),
    math.pow: _finite_python_math("pow"), math.fmod: _finite_python_math("fmod"),
    **complex_functions.PYTHONS,
    math.fabs: _python_math("fabs", None),
    math.floor: _python_math("floor", None, integer=True),
    math.ceil: _python_math("ceil", None, integer=True),
}  # fmt: skip  # fmt: skip
"""Python callable -> function of the emitter and numbers."""
