"""The emitter of a kernel: all that the classes before it write, and its results."""

from __future__ import annotations

from collections.abc import Callable

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.code import Code
from ...inductor.assembly.instructions import Operand
from ..values import Scalar
from .calls import CallCode

__all__ = ["Emitter"]


class Emitter(CallCode):
    noting = False  # whether each operation on floats is noted, see tape/

    def __init__(self, sizes: dict[Operand, tuple[int, int]] | None = None, fast: bool = False, turns: bool = False):
        super().__init__(sizes, fast, turns)
        self.results = 0

    def mark(self) -> Callable[[], None]:
        """A function that takes back what is written after this."""
        made = (self.out, self.error_blocks, self.errors, self.at_end, self.pieces, self.turn_products)
        lists = [(each, len(each)) for each in made]
        loops = self.inside, self.group, self.nest, self.expecting, self.rare, self.copies

        def back() -> None:
            for made, n in lists:
                del made[n:]
            self.computed = {}
            self.inside, self.group, self.nest, self.expecting, self.rare, self.copies = loops

        return back

    def result(self, value: Scalar) -> None:
        """Give a number back in the next slot of ``out``."""
        self.store(self.place(llvm.I64, Operand("%out", llvm.PTR), self.results), value.dtype, value.v)
        self.results += 1

    # -- the module --
    def begin(self, code: Code, arrays: int) -> None:
        """Write what else is read when the kernel starts. ``arrays``: how many it is given."""

    def own_functions(self) -> list[str]:
        """The text of further functions of the module."""
        return []
