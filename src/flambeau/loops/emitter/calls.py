"""Calls of what isn't part of the kernel: functions of the C library, expansions of transcendental functions, Python."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.builder import Builder
from ...inductor.assembly.instructions import Operand, Type, integer
from ...inductor.assembly.printing import declared
from ...inductor.codegen.expansions import EXPANSIONS
from .buffers import Buffers
from .exits import CLEANUP, CODE, RARELY

__all__ = ["CallCode"]


# FE_DIVBYZERO of fenv.h.
BY_ZERO = 4 if platform.machine() in ("x86_64", "AMD64") else 2


class _Soon(Builder):
    """Writes expansions whose result is waited for, by a turn's branch or by the next turn, rather than one of many elements."""

    def poly(self, x: Operand, coefficients) -> Operand:
        """Estrin's scheme, the highest coefficient first: neighbouring terms are added in pairs, these in pairs, and so on. A few products more than
        Horner's scheme, and a third of its time until the sum is known."""
        terms: list[Operand] = [llvm.constant(x.type, c) for c in reversed(coefficients)]
        while len(terms) > 1:
            pairs = [self.fma(b, x, a) for a, b in zip(terms[::2], terms[1::2])]
            terms = [*pairs, *terms[2 * len(pairs) :]]
            x = self.mul(x, x) if len(terms) > 1 else x
        return terms[0]


class CallCode(Buffers):
    def __init__(self, sizes: dict[Operand, tuple[int, int]] | None, fast: bool, turns: bool):
        super().__init__(sizes, fast, turns)
        self.declared: set[str] = set()
        self.functions: dict[str, str] = {}  # that the kernel calls, by name
        self.leaves_to_python = False  # whether the kernel calls Python
        self.expanded_at: list[tuple[int, str]] = []  # where the code of functions begins

    def external(self, name: str, result: Type, *args: Operand) -> Operand:
        """Call an external function."""
        self.declare(name, result, args)
        return self.call(result, f"@{name}", *args)

    def tell_of_division(self, by_zero: Operand) -> None:
        """Raise the processor's flag of a division by zero, for which NumPy tells of it (dynamo/numpy/floating_errors.py), where an integer is."""
        divided, on = self.new_label(), self.new_label()
        self.branch(by_zero, divided, on, RARELY)
        self.label(divided)
        self.external("feraiseexcept", llvm.I32, llvm.constant(llvm.I32, BY_ZERO))
        self.jump(on)
        self.label(on)

    def declare(self, name: str, result: Type, args: Sequence[Operand]) -> None:
        self.declared.add(declared(name, result, [a.type for a in args]))

    def expanded(self, name: str, t: str, *args: Operand) -> Operand:
        """A function of inductor/expansions; ``t``: "f32" or "f64"."""
        form = Builder if self.inside else _Soon
        if t == "f64":
            self.expanded_at.append((len(self.out), name))
        return EXPANSIONS[name](form(self.names, 1, self.out), t, *args)

    def python(self, text: str, rerunnable: bool, views: Sequence) -> None:
        """Have Python compute what ``text`` says of these views, operands and results (see numpy_calls). ``rerunnable``: see Inputs."""
        self.leaves_to_python = True
        data = text.encode()
        name = f"@said.{self.unique('text')}"
        said = "".join(chr(c) if c not in b'"\\' and 32 <= c < 127 else f"\\{c:02x}" for c in data)
        self.functions[name] = f'{name} = private unnamed_addr constant [{len(data) + 1} x i8] c"{said}\\00"'
        numbers: list[Operand] = []
        for view in views:
            head = (integer(view.dtype.num), integer(view.ndim), self.emit("ptrtoint", llvm.I64, (view.ptr,)))
            numbers += [*head, *map(integer, (*view.sizes, *view.strides))]
        table = self.slot(self.unique("table"), llvm.aggregate(f"[{len(numbers)} x i64]"))
        for k, n in enumerate(numbers):
            self.write(n, self.place(llvm.I64, table, k))
        given = (Operand(name, llvm.PTR), integer(int(rerunnable)), integer(len(views)), table)
        code = self.call(llvm.I64, Operand("%python", llvm.PTR), *given)
        stop, on = self.new_label(), self.new_label()
        self.branch(self.cmp("slt", code, 0), stop, on, RARELY)
        self.label(stop)
        self.write(-1, CODE)
        self.jump(CLEANUP)
        self.label(on)
        self.check(self.cmp("eq", code, 0), "RuntimeError", f"{text} raised in a compiled loop")

    def function(self, name: str, text: str) -> None:
        """A function of the kernel's module; what it declares is in lines of their own."""
        lines = text.strip().split("\n")
        self.declared.update(line for line in lines if line.startswith("declare "))
        self.functions[name] = "\n".join(line for line in lines if not line.startswith("declare "))
