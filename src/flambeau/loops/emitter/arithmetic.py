"""Instructions on numbers: common subexpressions of integers, and the liberties of fast arithmetic."""

from __future__ import annotations

from ...inductor.assembly.code import Code, Given, Names
from ...inductor.assembly.instructions import Instruction, Operand, integer

__all__ = ["Arithmetic"]

_ROUNDED = frozenset(("fadd", "fsub", "fmul", "fdiv"))
_COUNTING = frozenset(("add", "sub", "mul"))
_FAST = "reassoc nsz arcp contract"  # nans and infinities stay what they are


class Arithmetic(Code):
    """``fast``: sums may be taken in another order, products and sums contracted, divisions be products."""

    def __init__(self, names: Names, out: list[Instruction], fast: bool):
        super().__init__(names, out)
        self.fast = fast

        # What integers have been computed to in the code that always runs before this, by operation and operands.
        self.computed: dict[tuple, Instruction] = {}

    def op(self, operation: str, x: Given, y: Given, flags: str = "") -> Instruction:
        """Sizes and places that are computed again are the same operand, so that equal sizes need no check."""
        if operation not in _COUNTING:
            return super().op(operation, x, y, _FAST if self.fast and operation in _ROUNDED else flags)
        given = [v if isinstance(v, Operand) else integer(v) for v in (x, y)]
        key = operation, flags, *((v.type, v.text) for v in given)
        found = self.computed.get(key)
        if found is None:
            found = self.computed[key] = super().op(operation, x, y, flags)
        return found

    def label(self, name: Operand) -> None:
        """Another way may lead here."""
        self.computed = {}
        super().label(name)

    def go_on(self, name: Operand) -> None:
        """A label to which all ways lead through the code before it."""
        super().label(name)
