"""Strings of bytes in a loop: constants of the kernel's module, whose elements are Python's integers."""

from __future__ import annotations

import hashlib

from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand, integer
from .emitter import I64, Emitter
from .numbers import conversions
from .values import Declined, Known, Scalar

__all__ = ["LONGEST", "element", "is_bytes", "subscript"]

LONGEST = 1 << 16  # bytes that are part of the text


def is_bytes(v) -> bool:
    return isinstance(v, Known) and type(v.value) is bytes


def element(e: Emitter, data: bytes, at: Operand) -> Scalar:
    """The byte with this number, which there is."""
    if not 0 < len(data) <= LONGEST:
        raise Declined("a string of bytes that is empty, or very long")
    name = f"@bytes.{hashlib.blake2b(data, digest_size=12).hexdigest()}"
    said = "".join(f"\\{c:02x}" for c in data)
    e.functions[name] = f'{name} = private unnamed_addr constant [{len(data)} x i8] c"{said}"'
    v = e.read(llvm.I8, e.place(llvm.I8, Operand(name, llvm.PTR), at))
    return Scalar(I64, True, e.to("zext", v, llvm.I64), (0, 255))


def subscript(e: Emitter, data: bytes, key) -> Scalar:
    if not isinstance(key, Scalar) or key.kind not in "iu":
        raise Declined("a part of a string of bytes")
    n, k = len(data), conversions.to_int(e, key).v
    if not (key.bounds and key.bounds[0] >= 0):
        k = e.select(e.cmp("slt", k, 0), e.op("add", k, n), k)
    if not (key.bounds and 0 <= key.bounds[0] and key.bounds[1] < n):
        e.check(e.cmp("ult", k, n), "IndexError", "index out of range")
    return element(e, data, integer(k))
