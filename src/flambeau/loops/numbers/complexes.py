"""Complex numbers in a native loop: two floats in one value, with the formulas of NumPy's scalars (and Python's where they are Python's).

A product is ``(ac - bd, ad + bc)`` without the recovery of infinities that C99 describes; a quotient is Smith's (Smith 1962, "Algorithm 116");
NumPy's and Python's differ in the last step. NumPy's products of whole arrays round once less where the processor has fused
multiply-add, so elements of those differ in the last place.
"""

from __future__ import annotations

import math

import numpy as np

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand
from ..emitter import BOOL, Emitter
from ..values import Declined, Scalar, libm, register_type

__all__ = [
    "MATH",
    "absolute",
    "absolute_of_element",
    "conjugate",
    "equal",
    "by_libm",
    "from_float",
    "imag",
    "made",
    "number",
    "operation",
    "part",
    "parts",
    "python_quotient",
    "real",
    "truth",
    "width",
]

C128 = np.dtype(np.complex128)


def part(dtype: np.dtype) -> np.dtype:
    """The dtype of the real and the imaginary part."""
    return np.dtype(f"f{dtype.itemsize // 2}")


def parts(e: Emitter, v: Operand) -> tuple[Operand, Operand]:
    return e.parts(v)


def made(e: Emitter, re: Operand, im: Operand) -> Operand:
    return e.complex(re, im)


def from_float(e: Emitter, v: Operand) -> Operand:
    return made(e, v, llvm.constant(v.type, 0.0))


def width(e: Emitter, v: Operand, dtype: np.dtype) -> Operand:
    """A complex number in another precision."""
    t = register_type(dtype)
    return e.to("fpext" if t.bits > v.type.bits else "fptrunc", v, t)


def truth(e: Emitter, v: Operand) -> Operand:
    re, im = (e.cmp("une", x, 0.0) for x in parts(e, v))
    return e.op("or", re, im)


def equal(e: Emitter, op: str, x: Operand, y: Operand) -> Operand:
    (a, b), (c, d) = parts(e, x), parts(e, y)
    if op == "==":
        return e.op("and", e.cmp("oeq", a, c), e.cmp("oeq", b, d))
    if op == "!=":
        return e.op("or", e.cmp("une", a, c), e.cmp("une", b, d))
    raise Declined(f"{op} of complex numbers")


def operation(e: Emitter, op: str, x: Operand, y: Operand) -> Operand:
    """One element of the ufunc's loop."""
    if op in "+-":
        (a, b), (c, d), name = parts(e, x), parts(e, y), "fadd" if op == "+" else "fsub"
        return made(e, e.op(name, a, c), e.op(name, b, d))
    if op == "*":
        return _product(e, x, y)
    if op == "/":
        return _quotient(e, x, y)
    raise Declined(f"{op} of complex numbers")


def _product(e: Emitter, x: Operand, y: Operand) -> Operand:
    (a, b), (c, d) = parts(e, x), parts(e, y)
    mul = lambda p, q: e.op("fmul", p, q)  # noqa: E731
    return made(e, e.op("fsub", mul(a, c), mul(b, d)), e.op("fadd", mul(a, d), mul(b, c)))


def _smith(e: Emitter, x: Operand, y: Operand):
    """(whether the real part of the divisor is the larger, numerators of both parts, denominator, divisor's parts)."""
    (a, b), (c, d) = parts(e, x), parts(e, y)
    do = e.op
    size = [e.intrinsic("fabs", v) for v in (c, d)]
    first = e.cmp("oge", size[0], size[1])
    pick = lambda p, q: e.select(first, p, q)  # noqa: E731
    big, small = pick(c, d), pick(d, c)
    ratio = do("fdiv", small, big)
    below = do("fadd", big, do("fmul", small, ratio))
    along = pick(do("fadd", a, do("fmul", b, ratio)), do("fadd", do("fmul", a, ratio), b))
    across = pick(do("fsub", b, do("fmul", a, ratio)), do("fsub", do("fmul", b, ratio), a))
    return first, along, across, below, (a, b), size


def _quotient(e: Emitter, x: Operand, y: Operand) -> Operand:
    _, along, across, below, (a, b), size = _smith(e, x, y)
    scale = e.op("fdiv", 1.0, below)
    zero = e.op("and", e.cmp("oeq", size[0], 0.0), e.cmp("oeq", size[1], 0.0))
    out = []
    for numerator, alone in ((along, a), (across, b)):
        by_zero = e.op("fdiv", alone, size[0])
        out.append(e.select(zero, by_zero, e.op("fmul", numerator, scale)))
    return made(e, *out)


def python_quotient(e: Emitter, x: Operand, y: Operand) -> Operand:
    """Of Python's numbers; the divisor isn't zero. With a nan in the divisor both parts are nan."""
    _, along, across, below, _, size = _smith(e, x, y)
    ordered = e.cmp("ord", size[0], size[1])
    out = [e.select(ordered, e.op("fdiv", n, below), math.nan) for n in (along, across)]
    return made(e, *out)


def number(e: Emitter, t: llvm.Type, value: complex) -> Operand:
    return made(e, llvm.constant(t.element, value.real), llvm.constant(t.element, value.imag))


def absolute(e: Emitter, s: Scalar) -> Operand:
    re, im = parts(e, s.v)
    return e.external(libm("hypot", re.type), re.type, re, im)


def absolute_of_element(e: Emitter, s: Scalar) -> Scalar:
    """Of an element of an array: by the greater part and the quotient of both, as NumPy's loops over arrays have it."""
    re, im = parts(e, s.v)
    return Scalar(part(s.dtype), False, e.expanded("hypot", re.type.suffix, re, im))


def conjugate(e: Emitter, s: Scalar) -> Scalar:
    """np.conjugate, and the method; of real numbers, the number."""
    if s.kind != "c":
        if s.kind == "b":
            raise Declined("the conjugate of a bool")
        return s
    re, im = parts(e, s.v)
    return Scalar(s.dtype, s.weak, made(e, re, e.neg(im)))


def _part(k: int):
    def of(e: Emitter, s: Scalar) -> Scalar:
        if s.kind != "c":
            if k or s.kind == "b":
                raise Declined("a part of a number that isn't complex")
            return s
        if s.weak is None:
            raise Declined("a part of a number of which it isn't known whether it is complex")
        return Scalar(part(s.dtype), s.weak, parts(e, s.v)[k])

    return of


real, imag = _part(0), _part(1)


def by_libm(name: str):
    """A function of C's complex numbers, by whose name NumPy calls it too."""

    def call(e: Emitter, s: Scalar, result: np.dtype) -> Operand:
        v = s.v if s.dtype == C128 else width(e, s.v, C128)
        re, im = parts(e, v)
        pair = e.external(name, llvm.aggregate("{ double, double }"), re, im)
        out = made(e, *(e.field(pair, k, llvm.DOUBLE) for k in (0, 1)))
        return out if result == C128 else width(e, out, result)

    return call


def exp(e: Emitter, s: Scalar, result: np.dtype) -> Operand:
    """C's function. Of an imaginary number it is the cosine and the sine, which ``cexp`` takes from the same library: they are multiplied by 1."""
    if e.noting:
        return _EXP(e, s, result)
    v = s.v if s.dtype == C128 else width(e, s.v, C128)
    re, im = parts(e, v)
    turning, other, on = e.new_label(), e.new_label(), e.new_label()
    e.branch(e.cmp("oeq", re, 0.0), turning, other)
    e.label(turning)
    for name in ("cos", "sin"):
        e.set(f"@exp.{name}", llvm.DOUBLE, e.intrinsic(name, im))
    e.jump(on)
    e.label(other)
    whole = parts(e, _EXP(e, Scalar(C128, False, v), C128))
    for name, x in zip(("cos", "sin"), whole):
        e.set(f"@exp.{name}", llvm.DOUBLE, x)
    e.jump(on)
    e.label(on)
    out = made(e, *(e.get(f"@exp.{name}", llvm.DOUBLE) for name in ("cos", "sin")))
    return out if result == C128 else width(e, out, result)


_EXP = by_libm("cexp")
MATH = {np.exp: exp} | {
    uf: by_libm(name) for uf, name in ((np.sqrt, "csqrt"), (np.log, "clog"), (np.sin, "csin"), (np.cos, "ccos"))
}
"""ufunc -> function(emitter, complex number, dtype of the result)"""


def angle(e: Emitter, s: Scalar) -> Scalar:
    if s.kind != "c":
        raise Declined("np.angle of a real number")
    re, im = parts(e, s.v)
    return Scalar(part(s.dtype), False, e.external(libm("atan2", re.type), re.type, im, re))


def is_nan(e: Emitter, s: Scalar) -> Scalar:
    re, im = parts(e, s.v)
    return Scalar(BOOL, False, e.cmp("uno", re, im))


def is_finite(e: Emitter, s: Scalar) -> Scalar:
    re, im = (e.cmp("olt", e.intrinsic("fabs", v), math.inf) for v in parts(e, s.v))
    return Scalar(BOOL, False, e.op("and", re, im))
