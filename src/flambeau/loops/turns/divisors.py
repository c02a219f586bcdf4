"""Elements divided by a number that is the same for all of them: NumPy's bits from the number's reciprocal, see inductor/machine/divisors.py."""

from __future__ import annotations

import math

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import ConstantOperand, Instruction, Operand
from ...inductor.machine.divisors import ATTRIBUTES, CALLED, SMALLEST
from ..emitter import Emitter

__all__ = ["divided", "quotient"]


def quotient(e: Emitter, x: Operand, y: Operand) -> Operand:
    """``x / y`` of floats. In an element loop, of a divisor that stays the same, LLVM makes vectors of it that don't divide."""
    if y.type is not llvm.DOUBLE or not e.inside or e.noting or e.fast or not _stays(e, y):
        return e.op("fdiv", x, y)
    size = e.intrinsic("fabs", y)
    usual = e.op("and", e.cmp("oge", size, SMALLEST), e.cmp("ole", size, 1 / SMALLEST))
    reciprocal = e.select(usual, e.op("fdiv", 1.0, e.select(usual, y, 1.0)), math.nan)
    made = e.call(llvm.DOUBLE, CALLED, x, y, reciprocal)
    made.attributes = f" {ATTRIBUTES}"
    return made


def _stays(e: Emitter, y: Operand) -> bool:
    if isinstance(y, ConstantOperand):  # by a power of two is exact, and LLVM multiplies
        return math.isfinite(y.value) and abs(math.frexp(y.value)[0]) not in (0.0, 0.5)
    return y.text in e.same


def divided(i: Instruction) -> Instruction:
    """The same instruction, or the division that a call stands for."""
    if i.operation != "call" or i.args[0].text != CALLED:
        return i
    return Instruction(i.text, i.type, "fdiv", i.args[1:3])
