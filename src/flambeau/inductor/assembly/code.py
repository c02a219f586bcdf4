"""Writing LLVM instructions.

A Python number among the operands of a :class:`Code` stands for a constant: of the type of the other operand, or an i64 where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

from .instructions import I1, I64, LABEL, PTR, VOID, Instruction, Operand, Type, constant, integer

__all__ = ["Code", "Given", "Names"]


class Names:
    """What the codes of one function share: the counter of names (registers begin with ``prefix``), stack slots of the entry block, declarations of
    external functions by name."""

    __slots__ = ("count", "prefix", "entry", "declares")

    def __init__(self, prefix: str = "v") -> None:
        self.count, self.prefix = 0, prefix
        self.entry: list[Instruction] = []
        self.declares: dict[str, str] = {}

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"%{prefix}{self.count}"

    def label(self, prefix: str) -> Operand:
        return Operand(self.fresh(prefix), LABEL)

    def slot(self, type: Type, prefix: str = "slot", align: int = 0) -> Instruction:
        """A stack slot made in the entry block, so that SROA can turn it into registers."""
        attributes = f", align {align}" if align else ""
        made = Instruction(self.fresh(prefix), PTR, "alloca", (), type.text, attributes)
        self.entry.append(made)
        return made


Given = Operand | int | float


class Code:
    """Instructions that are appended to ``out``. What has a result returns it."""

    def __init__(self, names: Names, out: list[Instruction]):
        self.names, self.out = names, out

    def emit(
        self,
        operation: str,
        type: Type,
        args: Sequence[Operand],
        flags: str = "",
        attributes: str = "",
        prefix: str = "",
    ) -> Instruction:
        """Append an instruction that has a result."""
        names = self.names
        names.count = n = names.count + 1
        made = Instruction(f"%{prefix or names.prefix}{n}", type, operation, args, flags, attributes)
        self.out.append(made)
        return made

    def named(
        self, name: str, operation: str, type: Type, *args: Operand, flags: str = "", attributes: str = ""
    ) -> Instruction:
        """Append an instruction whose result has this name."""
        made = Instruction(name, type, operation, args, flags, attributes)
        self.out.append(made)
        return made

    def do(self, operation: str, *args: Operand, flags: str = "", attributes: str = "") -> Instruction:
        """Append an instruction that has none."""
        made = Instruction("", VOID, operation, args, flags, attributes)
        self.out.append(made)
        return made

    def op(self, operation: str, x: Given, y: Given, flags: str = "") -> Instruction:
        """Arithmetic on two operands of one type."""
        if not (isinstance(x, Operand) and isinstance(y, Operand)):
            x, y = _pair(x, y)
        return self.emit(operation, x.type, (x, y), flags)

    def cmp(self, predicate: str, x: Given, y: Given) -> Instruction:
        if not (isinstance(x, Operand) and isinstance(y, Operand)):
            x, y = _pair(x, y)
        return self.emit("fcmp" if x.type.floating else "icmp", x.type.truth, (x, y), predicate)

    def neg(self, x: Operand) -> Instruction:
        """Of a float."""
        return self.emit("fneg", x.type, (x,))

    def select(self, c: Operand, x: Given, y: Given) -> Instruction:
        x, y = _pair(x, y)
        return self.emit("select", x.type, (c, x, y))

    def to(self, operation: str, x: Operand, type: Type) -> Instruction:
        """Convert to another type."""
        return self.emit(operation, type, (x,))

    def read(self, type: Type, p: Operand, attributes: str = "", prefix: str = "") -> Instruction:
        return self.emit("load", type, (p,), "", attributes, prefix)

    def write(self, x: Operand | int, p: Operand, attributes: str = "") -> Instruction:
        return self.do("store", integer(x), p, attributes=attributes)

    def field(self, x: Operand, n: int, type: Type) -> Instruction:
        """Field ``n`` of a structure."""
        return self.emit("extractvalue", type, (x,), "", f", {n}")

    def place(self, element: Type, p: Operand, index: Operand | int, inbounds: bool = False) -> Instruction:
        """The address of an element."""
        flags = f"inbounds {element.text}" if inbounds else element.text
        return self.emit("getelementptr", PTR, (p, integer(index)), flags)

    def call(self, type: Type, callee: str | Operand, *args: Operand, prefix: str = "") -> Instruction:
        if not isinstance(callee, Operand):
            callee = Operand(callee, PTR)
        if type is VOID:
            return self.do("call", callee, *args)
        return self.emit("call", type, (callee, *args), "", "", prefix)

    def intrinsic(self, name: str, *args: Given) -> Instruction:
        """An overloaded intrinsic, with a result of the operands' type."""
        first = next((a for a in args if isinstance(a, Operand)), None)
        type = I64 if first is None else first.type
        operands = [a if isinstance(a, Operand) else constant(type, a) for a in args]
        return self.call(type, f"@llvm.{name}.{type.suffix}", *operands)

    def abs(self, x: Operand) -> Instruction:
        """Of integers; the least number stays what it is."""
        return self.call(x.type, f"@llvm.abs.{x.type.suffix}", x, constant(I1, False))

    def flip(self, c: Operand) -> Instruction:
        """The opposite of a truth value."""
        return self.op("xor", c, constant(c.type, True))

    def label(self, name: Operand) -> None:
        self.out.append(Instruction("", VOID, "label", (name,)))

    def jump(self, target: Operand, attributes: str = "") -> None:
        self.do("br", target, attributes=attributes)

    def branch(self, c: Operand, yes: Operand, no: Operand, attributes: str = "") -> None:
        self.do("br", c, yes, no, attributes=attributes)


def _pair(x: Given, y: Given) -> tuple[Operand, Operand]:
    """Two operands, of which numbers become constants."""
    if not isinstance(x, Operand):
        x = constant(y.type if isinstance(y, Operand) else I64, x)
    return x, y if isinstance(y, Operand) else constant(x.type, y)
