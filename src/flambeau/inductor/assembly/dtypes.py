"""Types of elements by their short names: ``f32 f64 i8 .. i64 u8 .. u64 bool``, and the storage-only ``f16 bf16``.

A value of a storage-only type lives in a register as a float that is already rounded.
"""

from __future__ import annotations

from .instructions import DOUBLE, FLOAT, HALF, I1, I8, I16, I32, I64, Type

__all__ = ["bits_of", "compute_type", "is_float", "is_int", "is_unsigned", "itemsize", "letter", "stored_type"]

LLVM = {
    "f32": FLOAT,
    "f64": DOUBLE,
    "f16": FLOAT,
    "bf16": FLOAT,
    "bool": I1,
    "i8": I8,
    "i16": I16,
    "i32": I32,
    "i64": I64,
    "u8": I8,
    "u16": I16,
    "u32": I32,
    "u64": I64,
}
STORED = {**LLVM, "bool": I8, "f16": HALF, "bf16": I16}
SIZE = {
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
    "opaque": 1,  # float8: kernels don't compute with it
}


def itemsize(t: str) -> int:
    return SIZE[t]


def is_float(t: str) -> bool:
    return t[0] == "f" or t == "bf16"


def is_unsigned(t: str) -> bool:
    return t[0] == "u"


def is_int(t: str) -> bool:
    return t[0] in "iu"


def compute_type(t: str) -> str:
    """The type a value of dtype ``t`` is computed in: half floats in float32, everything else in itself."""
    return "f32" if t in ("f16", "bf16") else t


def stored_type(t: str) -> Type:
    """The type of one element of dtype ``t`` in memory."""
    return STORED[t]


def letter(t: str) -> str:
    """The column of the scalar table's LLVM texts that type ``t`` uses."""
    return "b" if t == "bool" else "f" if is_float(t) else t[0]


def bits_of(t: str) -> int:
    return 32 if t in ("f16", "bf16") else 1 if t == "bool" else SIZE[t] * 8
