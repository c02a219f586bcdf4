"""Sizes, strides and offsets: integers of 64 bits that are known now, known to lie between bounds, or known when the kernel starts."""

from __future__ import annotations

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.code import Names
from ...inductor.assembly.instructions import Instruction, Operand, ParameterOperand, Type, integer, label
from ..numbers import bounds as between
from ..numbers.bounds import Bounds
from ..values import Size, plain
from .arithmetic import Arithmetic

__all__ = ["SMALL_SIZE", "SizeCode"]

SMALL_SIZE = 16  # sizes up to this are part of the text where they are known


class SizeCode(Arithmetic):
    """``sizes``: bounds of values that are known when the kernel starts, ``known``: and of others, which sizes are made of."""

    def __init__(self, sizes: dict[Operand, tuple[int, int]] | None, fast: bool):
        super().__init__(Names("t"), [], fast)
        self.sizes = sizes if sizes is not None else {}
        self.known: dict[Operand, tuple[int, int]] = {}
        self.entry: dict[tuple, Instruction] = {}  # instructions at the start of the kernel, by what they do

    # -- names --
    def unique(self, prefix: str) -> str:
        return self.names.fresh(prefix)[1:]

    def new_label(self) -> Operand:
        return label(self.unique("L"))

    def bounds_of(self, v: Size) -> Bounds:
        v = plain(v)
        return (v, v) if isinstance(v, int) else self.sizes.get(v) or self.known.get(v)

    def know(self, v: Size, bounds: Bounds) -> Size:
        """The value, of which that is known; a number or a size of an operand where it is one of these."""
        v = plain(v)
        if isinstance(v, int) or bounds is None:
            return v
        if bounds[0] == bounds[1]:
            if 0 <= bounds[0] <= SMALL_SIZE:
                return bounds[0]
            same = next((size for size, b in self.sizes.items() if b == bounds), None)
            if same is not None:
                return same
        self.known.setdefault(v, bounds)
        return v

    def add(self, a: Size, b: Size) -> Size:
        a, b = plain(a), plain(b)
        if a == 0:
            return b
        if b == 0:
            return a
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        return self.know(self.op("add", a, b), between.of("+", self.bounds_of(a), self.bounds_of(b)))

    def sub(self, a: Size, b: Size) -> Size:
        a, b = plain(a), plain(b)
        if b == 0:
            return a
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return self.know(self.op("sub", a, b), between.of("-", self.bounds_of(a), self.bounds_of(b)))

    def mul(self, a: Size, b: Size) -> Size:
        a, b = plain(a), plain(b)
        if a == 1:
            return b
        if b == 1:
            return a
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        return self.op("mul", a, b)

    def smaller(self, a: Size, b: Size) -> Size:
        a, b = plain(a), plain(b)
        x, y = self.bounds_of(a), self.bounds_of(b)
        if x and y and (x[1] <= y[0] or y[1] <= x[0]):
            return a if x[1] <= y[0] else b
        return self.select(self.cmp("slt", a, b), a, b)

    def larger(self, a: Size, b: Size) -> Size:
        a, b = plain(a), plain(b)
        x, y = self.bounds_of(a), self.bounds_of(b)
        if x and y and (x[1] <= y[0] or y[1] <= x[0]):
            return b if x[1] <= y[0] else a
        return self.select(self.cmp("sgt", a, b), a, b)

    # -- what is known when the kernel starts --
    def at_entry(self, operation: str, type: Type, *args: Operand, flags: str = "") -> Instruction:
        """An instruction whose operands are known when the kernel starts, written once, there."""
        key = operation, type, flags, *(a.text for a in args)
        found = self.entry.get(key)
        if found is None:
            found = self.entry[key] = Instruction(f"%e{len(self.entry)}", type, operation, args, flags)
        return found

    def is_at_entry(self, v: Operand) -> bool:
        """Whether a size is known when the kernel starts."""
        return isinstance(v, ParameterOperand) or any(v is made for made in self.entry.values())

    def added_at_entry(self, v: Operand, n: int) -> Operand:
        return self.at_entry("add", llvm.I64, v, integer(n))

    def larger_at_entry(self, a: Operand, n: int) -> Operand:
        above = self.at_entry("icmp", llvm.I1, a, integer(n), flags="sgt")
        return self.at_entry("select", llvm.I64, above, a, integer(n))

    def field_at_entry(self, p: Operand, n: int, element: Type = llvm.I64) -> Operand:
        """The address that lies at element ``n``."""
        return self.at_entry(
            "load", llvm.PTR, self.at_entry("getelementptr", llvm.PTR, p, integer(n), flags=element.text)
        )
