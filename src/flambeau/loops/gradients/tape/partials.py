"""Partial derivatives of operations and functions of one or two numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from ....inductor.assembly import instructions as llvm
from ....inductor.assembly.instructions import Operand
from ...emitter import Arithmetic
from ...values import Declined

__all__ = ["DOUBLE", "I32", "I64", "NOTHING", "ONE", "PTR", "Partial", "Partials", "ZERO"]

DOUBLE, I32, I64, PTR = llvm.DOUBLE, llvm.I32, llvm.I64, llvm.PTR
NOTHING, ZERO, ONE = llvm.constant(I32, 0), llvm.constant(DOUBLE, 0.0), llvm.constant(DOUBLE, 1.0)
Partial = Callable[[], Operand]


class Partials:
    """Writes partial derivatives, as doubles, by ``code``. ``external``: calls a function of the C library. ``of_two``: functions of two numbers."""

    of_two: frozenset[str] = frozenset()

    def __init__(self, code: Arithmetic, external: Callable[..., Operand]):
        self.code, self.external = code, external

    def wide(self, v: Operand) -> Operand:
        if v.type is DOUBLE:
            return v
        if v.text[0] != "%":  # literals of floats are those of the doubles that equal them
            return Operand(v.text, DOUBLE)
        return self.code.to("fpext", v, DOUBLE)

    def times(self, a, b) -> Operand:
        return self.code.op("fmul", a, b)

    def over(self, a, b) -> Operand:
        return self.code.op("fdiv", a, b)

    def plus(self, a, b) -> Operand:
        return self.code.op("fadd", a, b)

    def less(self, a, b) -> Operand:
        return self.code.op("fsub", a, b)

    def square(self, a: Operand) -> Operand:
        return self.times(a, a)

    def root(self, a: Operand) -> Operand:
        return self.code.intrinsic("sqrt", a)

    def called(self, name: str, *args: Operand) -> Operand:
        return self.external(name, DOUBLE, *args)

    def of(self, name: str, r: Operand, x: Operand, y: Operand | None = None) -> Sequence[Partial]:
        """Of the function of this name, with result ``r``, with respect to each operand."""
        if name in _OF_ONE:
            return [partial(_OF_ONE[name], self, r, x)]
        if name not in _OF_TWO:
            raise Declined(f"{name} has no derivative in a loop")
        return [partial(rule, self, r, x, y) for rule in _OF_TWO[name]]

    def sign(self, x: Operand) -> Operand:
        nothing = self.code.cmp("oeq", x, 0.0)
        return self.code.select(nothing, 0.0, self.code.intrinsic("copysign", ONE, x))

    def gaussian(self, x: Operand, factor: float) -> Operand:
        e = self.called("exp", self.code.neg(self.square(x)))
        return self.times(factor / math.sqrt(math.pi), e)

    def whole_turns(self, x: Operand, y: Operand) -> Operand:
        """Less the whole part of the quotient."""
        return self.code.neg(self.code.intrinsic("trunc", self.over(x, y)))

    def of_base(self, x: Operand, y: Operand) -> Operand:
        slope = self.times(y, self.called("pow", x, self.less(y, 1.0)))
        return self.code.select(self.code.cmp("oeq", y, 0.0), 0.0, slope)

    def of_exponent(self, r: Operand, x: Operand) -> Operand:
        return self.code.select(self.code.cmp("ogt", x, 0.0), self.times(r, self.called("log", x)), 0.0)

    def away(self, x: Operand, y: Operand) -> Operand:
        """The square of the distance."""
        return self.plus(self.square(x), self.square(y))


# Name -> function(partials, result, operand).
_OF_ONE: dict[str, Callable[[Partials, Operand, Operand], Operand]] = {
    "sqrt": lambda p, r, x: p.over(0.5, r),
    "exp": lambda p, r, x: r,
    "exp2": lambda p, r, x: p.times(r, math.log(2)),
    "expm1": lambda p, r, x: p.plus(r, 1.0),
    "log": lambda p, r, x: p.over(1.0, x),
    "log2": lambda p, r, x: p.over(1 / math.log(2), x),
    "log10": lambda p, r, x: p.over(1 / math.log(10), x),
    "log1p": lambda p, r, x: p.over(1.0, p.plus(1.0, x)),
    "sin": lambda p, r, x: p.called("cos", x),
    "cos": lambda p, r, x: p.code.neg(p.called("sin", x)),
    "tan": lambda p, r, x: p.plus(1.0, p.square(r)),
    "sinh": lambda p, r, x: p.called("cosh", x),
    "cosh": lambda p, r, x: p.called("sinh", x),
    "tanh": lambda p, r, x: p.less(1.0, p.square(r)),
    "asin": lambda p, r, x: p.over(1.0, p.root(p.less(1.0, p.square(x)))),
    "acos": lambda p, r, x: p.over(-1.0, p.root(p.less(1.0, p.square(x)))),
    "atan": lambda p, r, x: p.over(1.0, p.plus(1.0, p.square(x))),
    "asinh": lambda p, r, x: p.over(1.0, p.root(p.plus(1.0, p.square(x)))),
    "acosh": lambda p, r, x: p.over(1.0, p.root(p.less(p.square(x), 1.0))),
    "atanh": lambda p, r, x: p.over(1.0, p.less(1.0, p.square(x))),
    "erf": lambda p, r, x: p.gaussian(x, 2.0),
    "erfc": lambda p, r, x: p.gaussian(x, -2.0),
    "fabs": lambda p, r, x: p.sign(x),
    "cbrt": lambda p, r, x: p.over(r, p.times(3.0, x)),
}
# Name -> functions(partials, result, first operand, second operand), one for each operand.
_OF_TWO: dict[str, Sequence[Callable[..., Operand]]] = {
    "pow": (lambda p, r, x, y: p.of_base(x, y), lambda p, r, x, y: p.of_exponent(r, x)),
    "atan2": (lambda p, r, x, y: p.over(y, p.away(x, y)), lambda p, r, x, y: p.code.neg(p.over(x, p.away(x, y)))),
    "hypot": (lambda p, r, x, y: p.over(x, r), lambda p, r, x, y: p.over(y, r)),
    "fmod": (lambda p, r, x, y: ONE, lambda p, r, x, y: p.whole_turns(x, y)),
    "copysign": (lambda p, r, x, y: p.times(p.sign(x), p.code.intrinsic("copysign", ONE, y)), lambda p, r, x, y: ZERO),
}
Partials.of_two = frozenset(_OF_TWO)
