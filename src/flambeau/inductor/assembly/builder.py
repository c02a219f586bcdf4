"""LLVM instructions on elements of dtypes, scalar or vector.

A :class:`Builder` is a :class:`~.instructions.Code` for a fixed number of lanes. Dtypes are given by short names (dtypes.py).
With ``lanes == 8`` the type of ``f32`` is ``<8 x float>``; the same expansion therefore serves the vector loop
and its scalar tail. Intrinsics need no declaration in LLVM assembly; other callees are collected in ``Names.declares``.
"""

from __future__ import annotations

from collections.abc import Callable

from .code import Code, Given, Names
from .dtypes import LLVM, SIZE, STORED, bits_of, compute_type, is_float, is_unsigned
from .instructions import (
    I1,
    I32,
    PTR,
    ConstantOperand,
    Instruction,
    Operand,
    Type,
    constant,
    integer,
)
from .printing import declared

__all__ = ["Builder"]


class Builder(Code):
    def __init__(self, names: Names, lanes: int, out: list[Instruction]):
        super().__init__(names, out)
        self.lanes = lanes

    # --- types and constants ------------------------------------------------------------------------------------------
    def ty(self, t: str) -> Type:
        return LLVM[t].vector(self.lanes)

    def memory_type(self, t: str) -> Type:
        return STORED[t].vector(self.lanes)

    def const(self, t: str, value) -> ConstantOperand:
        return constant(LLVM[t].vector(self.lanes), value)

    # --- arithmetic ---------------------------------------------------------------------------------------------------
    def fma(self, x: Operand, y: Operand, z: Operand) -> Instruction:
        return self.intrinsic("fma", x, y, z)

    def add(self, x: Given, y: Given) -> Instruction:
        return self.op("fadd" if _floating(x, y) else "add", x, y)

    def sub(self, x: Given, y: Given) -> Instruction:
        return self.op("fsub" if _floating(x, y) else "sub", x, y)

    def mul(self, x: Given, y: Given) -> Instruction:
        return self.op("fmul" if _floating(x, y) else "mul", x, y)

    def div(self, x: Given, y: Given) -> Instruction:
        return self.op("fdiv", x, y)

    def convert(self, operation: str, x: Operand, t: str) -> Instruction:
        return self.emit(operation, self.ty(t), (x,))

    def poly(self, x: Operand, coefficients) -> Operand:
        """Horner's scheme with fused multiply-adds, highest coefficient first."""
        acc: Operand = constant(x.type, coefficients[0])
        for c in coefficients[1:]:
            acc = self.fma(acc, x, constant(x.type, c))
        return acc

    # --- dtype conversion ---------------------------------------------------------------------------------------------
    def cast(self, source: str, x: Operand, target: str) -> Operand:
        """Convert a value as ``ndarray.astype`` does. bf16 and f16 mean: rounded to that precision, held as float."""
        if source == target:
            return x
        a, b = compute_type(source), compute_type(target)
        if b == "bool":
            return self.cmp("une" if is_float(a) else "ne", x, self.const(a, 0))
        if a == "bool":
            return self.convert("uitofp" if is_float(b) else "zext", x, b)
        if is_float(a):
            if is_float(b):
                if a != b:
                    x = self.convert("fpext" if bits_of(b) > bits_of(a) else "fptrunc", x, b)
                return self.round_half(x, target) if target in ("f16", "bf16") else x
            # NOTE: fptosi is poison outside its range; NumPy goes through int32 for the narrow types and so do we.
            if bits_of(b) < 32:
                return self.convert("trunc", self._to_signed(x, "i32"), b)
            if b == "u32":
                return self.convert("trunc", self._to_signed(x, "i64"), b)
            return self.convert("fptoui", x, b) if is_unsigned(b) else self._to_signed(x, b)
        if is_float(b):
            x = self.convert("uitofp" if is_unsigned(a) else "sitofp", x, b)
            return self.round_half(x, target) if target in ("f16", "bf16") else x
        if bits_of(a) == bits_of(b):
            return x
        return self.convert("trunc" if bits_of(b) < bits_of(a) else "zext" if is_unsigned(a) else "sext", x, b)

    def _to_signed(self, x: Operand, t: str) -> Operand:
        """NaN is the least number, as the processor has it; one that LLVM knows while compiling would be any."""
        least = self.const(t, -(1 << (int(t[1:]) - 1)))
        return self.select(self.cmp("uno", x, x), least, self.convert("fptosi", x, t))

    def round_half(self, x: Operand, target: str) -> Operand:
        """Round a float to the nearest float16 or bfloat16, ties to even; it stays a float."""
        if target == "f16":
            return self.convert("fpext", self.to("fptrunc", x, self.memory_type("f16")), "f32")
        bits = self.convert("bitcast", x, "i32")
        odd = self.op("and", self.op("lshr", bits, self.const("i32", 16)), self.const("i32", 1))
        up = self.add(bits, self.add(odd, self.const("i32", 0x7FFF)))
        cut: Operand = self.op("and", up, self.const("i32", -65536))
        nan = self.cmp("uno", x, x)
        cut = self.select(nan, self.const("i32", 0x7FC00000), cut)
        return self.convert("bitcast", cut, "f32")

    # --- memory -------------------------------------------------------------------------------------------------------
    def load(self, t: str, p: Operand) -> Operand:
        """Load ``lanes`` neighbouring elements of storage type ``t``."""
        return self.from_memory(t, self.read(self.memory_type(t), p, f", align {SIZE[t]}"))

    def from_memory(self, t: str, raw: Operand) -> Operand:
        if t == "bool":
            return self.cmp("ne", raw, Operand("zeroinitializer", raw.type))
        if t == "f16":
            return self.convert("fpext", raw, "f32")
        if t == "bf16":
            wide = self.convert("zext", raw, "i32")
            return self.convert("bitcast", self.op("shl", wide, self.const("i32", 16)), "f32")
        return raw

    def to_memory(self, t: str, x: Operand) -> Operand:
        if t == "bool":
            return self.to("zext", x, self.memory_type(t))
        if t == "f16":
            return self.to("fptrunc", x, self.memory_type(t))
        if t == "bf16":  # x is rounded already: the low half is zero
            bits = self.convert("bitcast", x, "i32")
            return self.to("trunc", self.op("lshr", bits, self.const("i32", 16)), self.memory_type(t))
        return x

    def store(self, t: str, x: Operand, p: Operand) -> Instruction:
        return self.write(self.to_memory(t, x), p, f", align {SIZE[t]}")

    def load_masked(self, t: str, p: Operand, mask: Operand) -> Operand:
        """Load the lanes of ``mask``; the others are 1 and their memory is not touched."""
        type = self.memory_type(t)
        one = constant(type, 0x3F80 if t == "bf16" else 1)
        name = f"@llvm.masked.load.{type.suffix}.p0"
        return self.from_memory(t, self.call(type, name, p, constant(I32, SIZE[t]), mask, one))

    def store_masked(self, t: str, x: Operand, p: Operand, mask: Operand) -> None:
        raw = self.to_memory(t, x)
        name = f"@llvm.masked.store.{raw.type.suffix}.p0"
        self.do("call", Operand(name, PTR), raw, p, constant(I32, SIZE[t]), mask)

    def load_alternate(self, t: str, p: Operand) -> Operand:
        """Load every second element (a part of complex numbers); the memory of the others is not touched."""
        wide, mask = self._alternate()
        return self.shuffle(wide.load_masked(t, p, mask), range(0, 2 * self.lanes, 2))

    def store_alternate(self, t: str, x: Operand, p: Operand) -> None:
        """Store to every second element."""
        wide, mask = self._alternate()
        spread = self.shuffle(x, [lane for i in range(self.lanes) for lane in (i, None)])
        wide.store_masked(t, spread, p, mask)

    def _alternate(self) -> tuple[Builder, Operand]:
        wide = Builder(self.names, 2 * self.lanes, self.out)
        return wide, Operand("<" + ", ".join(["i1 true, i1 false"] * self.lanes) + ">", wide.ty("bool"))

    # --- lanes --------------------------------------------------------------------------------------------------------
    def steps(self) -> Operand:
        """0, 1, 2, ... in the lanes."""
        return Operand("<" + ", ".join([f"i64 {i}" for i in range(self.lanes)]) + ">", self.ty("i64"))

    def splat(self, x: Operand | int) -> Operand:
        """A scalar in every lane."""
        x = integer(x)
        if self.lanes == 1:
            return x
        type = x.type.vector(self.lanes)
        one = self.emit("insertelement", type, (Operand("poison", type), x, integer(0)))
        return self.emit(
            "shufflevector", type, (one, Operand("poison", type), Operand("zeroinitializer", I32.vector(self.lanes)))
        )

    def shuffle(self, x: Operand, lanes, y: Operand | None = None) -> Instruction:
        """The vector of these lanes of ``x`` and ``y``; None for any."""
        mask = ["i32 poison" if i is None else f"i32 {i}" for i in lanes]
        at = Operand(f"<{', '.join(mask)}>", I32.vector(len(mask)))
        other = Operand("poison", x.type) if y is None else y
        return self.emit("shufflevector", x.type.element.vector(len(mask)), (x, other, at))

    def reversed(self, x: Operand) -> Instruction:
        return self.shuffle(x, range(self.lanes - 1, -1, -1))

    def extract(self, x: Operand, lane: int) -> Operand:
        return x if self.lanes == 1 else self.emit("extractelement", x.type.element, (x, integer(lane)))

    def insert(self, x: Operand, value: Operand, lane: int) -> Operand:
        return value if self.lanes == 1 else self.emit("insertelement", x.type, (x, value, integer(lane)))

    def any(self, c: Operand) -> Operand:
        return c if self.lanes == 1 else self.call(I1, f"@llvm.vector.reduce.or.{c.type.suffix}", c)

    def by_lane(self, fast: Operand, rare: Operand, callee: str, *args: Operand) -> Operand:
        """``fast``, except in lanes of ``rare``, which call the C function ``callee``."""
        type = fast.type
        one = type.element
        self.names.declares[callee] = declared(callee, one, [one] * len(args))
        slot = self.names.slot(type)
        self.write(fast, slot)
        slow, done = self.names.label("slow"), self.names.label("done")
        self.branch(self.any(rare), slow, done)
        self.label(slow)
        value = Operand("poison", type)
        for lane in range(self.lanes):
            parts = [self.extract(a, lane) for a in args]
            value = self.insert(value, self.call(one, f"@{callee}", *parts), lane)
        self.write(self.select(rare, value, fast), slot)
        self.jump(done)
        self.label(done)
        return self.read(type, slot)

    def rarely(
        self, rare: Callable[[], Operand], usual: Callable[[], Operand], whole: Callable[[], Operand]
    ) -> Operand:
        """``whole()``. Where ``rare()`` is false ``usual()`` has the same bits and is shorter: what calls elements one by one makes use of that."""
        return whole()


def _floating(x: Given, y: Given) -> bool:
    """Of two operands, at most one of which is a number."""
    return (x if isinstance(x, Operand) else y).type.floating  # type: ignore[union-attr]
