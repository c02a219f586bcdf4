"""LLVM instructions as objects, and functions made of them.

An :class:`Operand` has a type, and a text by which it is referred to. An :class:`Instruction` is the operand that it computes. A
:class:`~.code.Code` appends instructions to a list; a :class:`Function` has such a list as its body, and is printed last (:mod:`.printing`;
:mod:`.verification` checks it). Code that moves, changes or differentiates instructions looks at operations and operands, never at text.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence

from .printing import printed

__all__ = [
    "DOUBLE", "FLOAT", "HALF", "I1", "I8", "I16", "I32", "I64", "LABEL", "PTR", "VOID",
    "ConstantOperand", "Function", "Instruction", "Operand", "ParameterOperand", "Type", "aggregate", "constant", "integer", "label",
]  # fmt: skip


# --- types ------------------------------------------------------------------------------------------------------------------
class Type:
    """A type of LLVM, one object for each. ``element`` and ``lanes``: of a vector; a scalar is its own element, with one lane. ``bits``: of an
    element, 0 where it is no number. ``suffix``: how overloaded intrinsics name it. ``truth``: the type of its comparisons."""

    __slots__ = ("text", "element", "lanes", "bits", "floating", "suffix", "truth", "_vectors")

    text: str
    element: Type
    lanes: int
    bits: int
    floating: bool
    suffix: str
    truth: Type
    _vectors: dict[int, Type]

    def __init__(self, text: str, bits: int = 0, floating: bool = False, element: Type | None = None, lanes: int = 1):
        self.text, self.bits, self.floating, self.lanes = text, bits, floating, lanes
        self.element = self if element is None else element
        self.suffix = ("" if lanes == 1 else f"v{lanes}") + ("f" if floating else "i") + str(bits)
        self._vectors = {1: self}
        self.truth = self if bits == 1 else I1.vector(lanes)

    def __repr__(self) -> str:
        return self.text

    def vector(self, lanes: int) -> Type:
        """The vector of so many elements of this scalar type; of one, the scalar."""
        found = self._vectors.get(lanes)
        if found is None:
            text = f"<{lanes} x {self.text}>"
            found = self._vectors[lanes] = Type(text, self.bits, self.floating, self, lanes)
        return found


I1 = Type("i1", 1)
I8, I16, I32, I64 = (Type(f"i{n}", n) for n in (8, 16, 32, 64))
HALF, FLOAT, DOUBLE = Type("half", 16, True), Type("float", 32, True), Type("double", 64, True)
PTR, VOID, LABEL = Type("ptr"), Type("void"), Type("label")


@functools.cache
def aggregate(text: str) -> Type:
    """A structure or an array, by its text."""
    return Type(text)


# --- values -----------------------------------------------------------------------------------------------------------------
class Operand:
    """An operand. ``text``: ``%name`` of a register or label, ``@name`` of a global, the number of a constant."""

    __slots__ = ("text", "type")

    def __init__(self, text: str, type: Type):
        self.text, self.type = text, type

    def __repr__(self) -> str:
        return f"{self.type.text} {self.text}"


class ConstantOperand(Operand):
    """A number that is known. ``value``: it, in every lane."""

    __slots__ = ("value",)

    def __init__(self, type: Type, value):
        text = _literal(type.element, value)
        super().__init__(text if type.lanes == 1 else f"splat ({type.element.text} {text})", type)
        self.value = value


class ParameterOperand(Operand):
    """Of a function. ``attributes``: what is promised of it, such as ``noalias``."""

    __slots__ = ("attributes",)

    def __init__(self, text: str, type: Type, attributes: str = ""):
        super().__init__(text, type)
        self.attributes = attributes


class Instruction(Operand):
    """``operation`` on ``args``. ``text`` is empty where there is no result. ``flags``: what stands between the operation and its operands (a
    predicate, ``nsw``, the type that an address counts in or that is allocated). ``attributes``: what follows them, with its comma."""

    __slots__ = ("operation", "args", "flags", "attributes")

    def __init__(
        self, text: str, type: Type, operation: str, args: Sequence[Operand], flags: str = "", attributes: str = ""
    ):
        self.text, self.type, self.operation, self.args = text, type, operation, args
        self.flags, self.attributes = flags, attributes

    def __repr__(self) -> str:
        (line,) = printed([self])
        return line.strip()


def constant(type: Type, value) -> ConstantOperand:
    """A number of this type, in every lane. Floats are exact; integers wrap."""
    if not value and str(value)[0] == "-":
        return ConstantOperand(type, value)  # equals 0.0, and isn't the same
    return _constant(type, value)


@functools.lru_cache(4096)
def _constant(type: Type, value) -> ConstantOperand:
    return ConstantOperand(type, value)


def integer(n: int | Operand) -> Operand:
    """A number of 64 bits as an operand."""
    return n if isinstance(n, Operand) else _constant(I64, n)


def label(name: str) -> Operand:
    return Operand(f"%{name}", LABEL)


def _literal(type: Type, value) -> str:
    """A Python number as LLVM writes it. Floats are written as the bits of a double, which is exact."""
    if type is I1:
        return "true" if value else "false"
    if type is HALF:
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    if type.floating:
        value = float(value)
        if type.bits == 32:
            try:
                value = struct.unpack("<f", struct.pack("<f", value))[0]
            except OverflowError:
                value = float("inf") if value > 0 else float("-inf")
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    value = int(value) & ((1 << type.bits) - 1)
    return str(value - (1 << type.bits) if value >> (type.bits - 1) else value)


class Function:
    """A function. ``linkage``: such as ``internal``; ``attributes``: what is promised of it."""

    def __init__(
        self,
        name: str,
        type: Type,
        parameters: Sequence[Operand],
        body: list[Instruction],
        linkage: str = "",
        attributes: str = "",
    ):
        self.name, self.type, self.parameters, self.body = name, type, parameters, body
        self.linkage, self.attributes = linkage, attributes

    def lines(self) -> list[str]:
        """The text, line by line."""
        given = [
            f"{p.type.text} {p.attributes} {p.text}"
            if isinstance(p, ParameterOperand) and p.attributes
            else f"{p.type.text} {p.text}"
            for p in self.parameters
        ]
        words = ["define", self.linkage, self.type.text, f"@{self.name}({', '.join(given)})", self.attributes, "{"]
        return [" ".join([w for w in words if w]), *printed(self.body), "}"]
