"""LLVM instructions as text, scalar or vector.

A :class:`Builder` appends instructions to ``out`` and returns the name of each result. Types are given by short names: ``f32 f64 i8 .. i64
u8 .. u64 bool`` and the storage-only ``f16 bf16`` (a value of those lives in a register as float, already rounded). One builder emits for
a fixed number of lanes: with ``lanes == 8`` the type ``f32`` is ``<8 x float>``; the same expansion therefore serves the vector loop and
its scalar tail. Intrinsics need no declaration in LLVM assembly; other callees are collected in ``Names.declares``.
"""

import struct

__all__ = ["Builder", "Names", "bits_of", "compute_type", "is_float", "is_int", "is_unsigned", "itemsize", "letter"]

_LLVM = {
    "f32": "float",
    "f64": "double",
    "f16": "float",
    "bf16": "float",
    "bool": "i1",
    "i8": "i8",
    "i16": "i16",
    "i32": "i32",
    "i64": "i64",
    "u8": "i8",
    "u16": "i16",
    "u32": "i32",
    "u64": "i64",
}
_SIZE = {
    "f32": 4,
    "f64": 8,
    "f16": 2,
    "bf16": 2,
    "bool": 1,
    "i8": 1,
    "i16": 2,
    "i32": 4,
    "i64": 8,
    "u8": 1,
    "u16": 2,
    "u32": 4,
    "u64": 8,
}


_OVERLOAD = {"float": "f32", "double": "f64", "half": "f16"}  # in the names of intrinsics


def itemsize(t: str) -> int:
    return _SIZE[t]


def is_float(t: str) -> bool:
    return t[0] == "f" or t == "bf16"


def is_unsigned(t: str) -> bool:
    return t[0] == "u"


def is_int(t: str) -> bool:
    return t[0] in "iu"


def compute_type(t: str) -> str:
    """The type a value of dtype ``t`` is computed in: half floats in float32, everything else in itself."""
    return "f32" if t in ("f16", "bf16") else t


def letter(t: str) -> str:
    """The column of the scalar table's LLVM texts that type ``t`` uses."""
    return "b" if t == "bool" else "f" if is_float(t) else t[0]


def bits_of(t: str) -> int:
    return 32 if t in ("f16", "bf16") else 1 if t == "bool" else _SIZE[t] * 8


class Names:
    """What the builders of one function share: the counter of names, stack slots of the entry block, external declarations."""

    def __init__(self):
        self.count = 0
        self.entry: list[str] = []
        self.declares: dict[str, str] = {}

    def fresh(self, prefix: str = "v") -> str:
        self.count += 1
        return f"%{prefix}{self.count}"

    def slot(self, llvm_type: str) -> str:
        """A stack slot made in the entry block, so that SROA can turn it into registers."""
        name = self.fresh("slot")
        self.entry.append(f"{name} = alloca {llvm_type}")
        return name


class Builder:
    def __init__(self, names: Names, lanes: int, out: list[str]):
        self.names = names
        self.lanes = lanes
        self.out = out

    # --- types and constants ------------------------------------------------------------------------------------------
    def ty(self, t: str) -> str:
        return _LLVM[t] if self.lanes == 1 else f"<{self.lanes} x {_LLVM[t]}>"

    def suffix(self, t: str) -> str:
        """Type suffix of an overloaded intrinsic."""
        base = ("f" if is_float(t) else "i") + str(bits_of(t))
        return base if self.lanes == 1 else f"v{self.lanes}{base}"

    def const(self, t: str, value) -> str:
        text = literal(t, value)
        return text if self.lanes == 1 else f"splat ({_LLVM[t]} {text})"

    # --- instructions -------------------------------------------------------------------------------------------------
    def emit(self, text: str, prefix: str = "v") -> str:
        name = self.names.fresh(prefix)
        self.out.append(f"{name} = {text}")
        return name

    def op(self, opcode: str, t: str, *args: str) -> str:
        return self.emit(f"{opcode} {self.ty(t)} {', '.join(args)}")

    def intrinsic(self, name: str, t: str, *args: str) -> str:
        ty = self.ty(t)
        return self.emit(f"call {ty} @llvm.{name}.{self.suffix(t)}({', '.join(f'{ty} {a}' for a in args)})")

    def intrinsic_abs(self, t: str, x: str) -> str:
        ty = self.ty(t)
        return self.emit(f"call {ty} @llvm.abs.{self.suffix(t)}({ty} {x}, i1 false)")

    def fma(self, t, x, y, z):
        return self.intrinsic("fma", t, x, y, z)

    def add(self, t, x, y):
        return self.op("fadd" if is_float(t) else "add", t, x, y)

    def sub(self, t, x, y):
        return self.op("fsub" if is_float(t) else "sub", t, x, y)

    def mul(self, t, x, y):
        return self.op("fmul" if is_float(t) else "mul", t, x, y)

    def div(self, t, x, y):
        return self.op("fdiv", t, x, y)

    def cmp(self, predicate: str, t: str, x: str, y: str) -> str:
        return self.emit(f"{'fcmp' if is_float(t) else 'icmp'} {predicate} {self.ty(t)} {x}, {y}")

    def select(self, t: str, c: str, x: str, y: str) -> str:
        ty = self.ty(t)
        return self.emit(f"select {self.ty('bool')} {c}, {ty} {x}, {ty} {y}")

    def convert(self, opcode: str, source: str, x: str, target: str) -> str:
        return self.emit(f"{opcode} {self.ty(source)} {x} to {self.ty(target)}")

    def poly(self, t: str, x: str, coefficients) -> str:
        """Horner's scheme with fused multiply-adds, highest coefficient first."""
        acc = self.const(t, coefficients[0])
        for c in coefficients[1:]:
            acc = self.fma(t, acc, x, self.const(t, c))
        return acc

    def splat(self, t: str, x: str) -> str:
        """A scalar in every lane."""
        if self.lanes == 1:
            return x
        ty = self.ty(t)
        one = self.emit(f"insertelement {ty} poison, {_LLVM[t]} {x}, i64 0")
        return self.emit(f"shufflevector {ty} {one}, {ty} poison, <{self.lanes} x i32> zeroinitializer")

    # --- dtype conversion ---------------------------------------------------------------------------------------------
    def cast(self, source: str, x: str, target: str) -> str:
        """Convert a value as ``ndarray.astype`` does. bf16 and f16 mean: rounded to that precision, held as float."""
        if source == target:
            return x
        a, b = compute_type(source), compute_type(target)
        if b == "bool":
            return self.cmp("une" if is_float(a) else "ne", a, x, self.const(a, 0))
        if a == "bool":
            return self.convert("uitofp" if is_float(b) else "zext", a, x, b)
        if is_float(a):
            if is_float(b):
                if a != b:
                    x = self.convert("fpext" if bits_of(b) > bits_of(a) else "fptrunc", a, x, b)
                return self.round_half(x, target) if target in ("f16", "bf16") else x
            # NOTE: fptosi is poison outside its range; NumPy goes through int32 for the narrow types and so do we.
            if bits_of(b) < 32:
                return self.convert("trunc", "i32", self._to_signed(a, x, "i32"), b)
            if b == "u32":
                return self.convert("trunc", "i64", self._to_signed(a, x, "i64"), b)
            return self.convert("fptoui", a, x, b) if is_unsigned(b) else self._to_signed(a, x, b)
        if is_float(b):
            x = self.convert("uitofp" if is_unsigned(a) else "sitofp", a, x, b)
            return self.round_half(x, target) if target in ("f16", "bf16") else x
        if bits_of(a) == bits_of(b):
            return x
        opcode = "trunc" if bits_of(b) < bits_of(a) else "zext" if is_unsigned(a) else "sext"
        return self.convert(opcode, a, x, b)

    def round_half(self, x: str, target: str) -> str:
        """Round a float to the nearest float16 or bfloat16, ties to even; it stays a float."""
        if target == "f16":
            half = "half" if self.lanes == 1 else f"<{self.lanes} x half>"
            h = self.emit(f"fptrunc {self.ty('f32')} {x} to {half}")
            return self.emit(f"fpext {half} {h} to {self.ty('f32')}")
        bits = self.convert("bitcast", "f32", x, "i32")
        odd = self.op("and", "i32", self.op("lshr", "i32", bits, self.const("i32", 16)), self.const("i32", 1))
        up = self.add("i32", bits, self.add("i32", odd, self.const("i32", 0x7FFF)))
        cut = self.op("and", "i32", up, self.const("i32", -65536))
        nan = self.cmp("uno", "f32", x, x)
        cut = self.select("i32", nan, self.const("i32", 0x7FC00000), cut)
        return self.convert("bitcast", "i32", cut, "f32")

    # --- memory -------------------------------------------------------------------------------------------------------
    def memory_type(self, t: str) -> str:
        scalar = {"bool": "i8", "f16": "half", "bf16": "i16"}.get(t, _LLVM[t])
        return scalar if self.lanes == 1 else f"<{self.lanes} x {scalar}>"

    def load(self, t: str, pointer: str) -> str:
        """Load ``lanes`` neighbouring elements of storage type ``t``."""
        raw = self.emit(f"load {self.memory_type(t)}, ptr {pointer}, align {_SIZE[t]}")
        return self.from_memory(t, raw)

    def _to_signed(self, a: str, x: str, b: str) -> str:
        """NaN is the least number, as the processor has it; one that LLVM knows while compiling would be any."""
        least = self.const(b, -(1 << (int(b[1:]) - 1)))
        return self.select(b, self.cmp("uno", a, x, x), least, self.convert("fptosi", a, x, b))

    def from_memory(self, t: str, raw: str) -> str:
        if t == "bool":
            return self.emit(f"icmp ne {self.memory_type(t)} {raw}, zeroinitializer")
        if t == "f16":
            return self.emit(f"fpext {self.memory_type(t)} {raw} to {self.ty('f32')}")
        if t == "bf16":
            wide = self.emit(f"zext {self.memory_type(t)} {raw} to {self.ty('i32')}")
            return self.convert("bitcast", "i32", self.op("shl", "i32", wide, self.const("i32", 16)), "f32")
        return raw

    def to_memory(self, t: str, x: str) -> str:
        if t == "bool":
            return self.emit(f"zext {self.ty('bool')} {x} to {self.memory_type(t)}")
        if t == "f16":
            return self.emit(f"fptrunc {self.ty('f32')} {x} to {self.memory_type(t)}")
        if t == "bf16":  # x is rounded already: the low half is zero
            bits = self.convert("bitcast", "f32", x, "i32")
            return self.emit(
                f"trunc {self.ty('i32')} {self.op('lshr', 'i32', bits, self.const('i32', 16))} to {self.memory_type(t)}"
            )
        return x

    def store(self, t: str, x: str, pointer: str) -> None:
        raw = self.to_memory(t, x)
        self.out.append(f"store {self.memory_type(t)} {raw}, ptr {pointer}, align {_SIZE[t]}")

    def load_masked(self, t: str, pointer: str, mask: str) -> str:
        """Load the lanes of ``mask``; the others are 1 and their memory is not touched."""
        scalar = {"bool": "i8", "f16": "half", "bf16": "i16"}.get(t, _LLVM[t])
        one = {"f16": "0xH3C00", "bf16": str(0x3F80)}.get(t, literal("i8" if t == "bool" else t, 1))
        ty, suffix = self.memory_type(t), _OVERLOAD.get(scalar, scalar)
        raw = self.emit(
            f"call {ty} @llvm.masked.load.v{self.lanes}{suffix}.p0(ptr {pointer}, i32 {_SIZE[t]}, {self.ty('bool')} {mask}, "
            f"{ty} splat ({scalar} {one}))"
        )
        return self.from_memory(t, raw)

    def store_masked(self, t: str, x: str, pointer: str, mask: str) -> None:
        scalar = {"bool": "i8", "f16": "half", "bf16": "i16"}.get(t, _LLVM[t])
        raw, ty = self.to_memory(t, x), self.memory_type(t)
        self.out.append(
            f"call void @llvm.masked.store.v{self.lanes}{_OVERLOAD.get(scalar, scalar)}.p0({ty} {raw}, ptr {pointer}, i32 {_SIZE[t]}, "
            f"{self.ty('bool')} {mask})"
        )

    def load_alternate(self, t: str, pointer: str) -> str:
        """Load every second element (a part of complex numbers); the memory of the others is not touched."""
        wide, mask = self._alternate()
        raw = wide.load_masked(t, pointer, mask)
        lanes = ", ".join(f"i32 {2 * i}" for i in range(self.lanes))
        return self.emit(f"shufflevector {wide.ty(t)} {raw}, {wide.ty(t)} poison, <{self.lanes} x i32> <{lanes}>")

    def store_alternate(self, t: str, x: str, pointer: str) -> None:
        """Store to every second element."""
        wide, mask = self._alternate()
        lanes = ", ".join(f"i32 {i}, i32 poison" for i in range(self.lanes))
        spread = self.emit(f"shufflevector {self.ty(t)} {x}, {self.ty(t)} poison, <{wide.lanes} x i32> <{lanes}>")
        wide.store_masked(t, spread, pointer, mask)

    def _alternate(self):
        return Builder(self.names, 2 * self.lanes, self.out), "<" + ", ".join(["i1 true, i1 false"] * self.lanes) + ">"

    def reversed(self, t: str, x: str) -> str:
        lanes = ", ".join(f"i32 {self.lanes - 1 - i}" for i in range(self.lanes))
        return self.emit(f"shufflevector {self.ty(t)} {x}, {self.ty(t)} poison, <{self.lanes} x i32> <{lanes}>")

    # --- lanes --------------------------------------------------------------------------------------------------------
    def extract(self, t: str, x: str, lane: int) -> str:
        return x if self.lanes == 1 else self.emit(f"extractelement {self.ty(t)} {x}, i64 {lane}")

    def insert(self, t: str, x: str, value: str, lane: int) -> str:
        return (
            value if self.lanes == 1 else self.emit(f"insertelement {self.ty(t)} {x}, {_LLVM[t]} {value}, i64 {lane}")
        )

    def any(self, c: str) -> str:
        return (
            c
            if self.lanes == 1
            else self.emit(f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({self.ty('bool')} {c})")
        )

    def label(self, name: str) -> None:
        self.out.append(f"{name[1:]}:")

    def branch(self, c: str | None, yes: str, no: str | None = None) -> None:
        self.out.append(f"br label {yes}" if c is None else f"br i1 {c}, label {yes}, label {no}")

    def by_lane(self, t: str, fast: str, rare: str, callee: str, *args: str) -> str:
        """``fast``, except that when any lane of ``rare`` holds every lane is computed by calling the C function ``callee``."""
        scalar = _LLVM[t]
        self.names.declares[callee] = f"declare {scalar} @{callee}({', '.join([scalar] * len(args))})"
        slot = self.names.slot(self.ty(t))
        self.out.append(f"store {self.ty(t)} {fast}, ptr {slot}")
        slow, done = self.names.fresh("slow"), self.names.fresh("done")
        self.branch(self.any(rare), slow, done)
        self.label(slow)
        value = "poison"
        for lane in range(self.lanes):
            parts = [f"{scalar} {self.extract(t, a, lane)}" for a in args]
            value = self.insert(t, value, self.emit(f"call {scalar} @{callee}({', '.join(parts)})"), lane)
        self.out.append(f"store {self.ty(t)} {value}, ptr {slot}")
        self.branch(None, done)
        self.label(done)
        return self.emit(f"load {self.ty(t)}, ptr {slot}")


def literal(t: str, value) -> str:
    """A Python number as an LLVM constant of type ``t``. Floats are written as the bits of a double, which is exact."""
    if t == "bool":
        return "true" if value else "false"
    if is_float(t):
        value = float(value)
        if bits_of(t) == 32:
            try:
                value = struct.unpack("<f", struct.pack("<f", value))[0]
            except OverflowError:
                value = float("inf") if value > 0 else float("-inf")
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    bits = bits_of(t)
    value = int(value) & ((1 << bits) - 1)
    return str(value - (1 << bits) if value >> (bits - 1) else value)
