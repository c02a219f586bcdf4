"""Memory: the stack slots of variables, the elements of arrays, and what LLVM is told of which accesses may meet.

Each operand that is written, and shares no memory with others, is an alias scope (LLVM Language Reference, "noalias" and "alias.scope" metadata).
"""

from __future__ import annotations

import numpy as np

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Instruction, Operand, Type, integer
from ..values import Size, alignment, known, memory_type
from .sizes import SizeCode

__all__ = ["FIRST_NODE", "SCOPES", "MemoryCode"]


SCOPES = 100_000  # number of the first metadata node that tells memory apart
FIRST_NODE = 10  # number of the first metadata node that a kernel makes
_PLACES = [llvm.constant(llvm.I32, k) for k in (0, 1)]


class MemoryCode(SizeCode):
    def __init__(self, sizes: dict[Operand, tuple[int, int]] | None, fast: bool):
        super().__init__(sizes, fast)
        self.slots: dict[tuple[str, Type], Operand] = {}
        self.zeroed: dict[str, int] = {}  # slots that are 0 when the kernel starts, and how many integers they have
        self.parts_of: dict[Operand, tuple[Operand, Operand]] = {}  # complex numbers -> what they were made of
        self.metadata: list[str] = []
        self.group: int | None = None  # the metadata node of the accesses of a parallel loop
        self.scopes: set[int] = set()  # operands whose accesses have been told apart
        self.scope_of: dict[str, int] = {}  # attributes of such accesses -> the number of the operand
        # Operands -> what is known of all elements that are read and written, see ArrayView.turn.
        self.touched: dict[int, frozenset] = {}
        self.foreign: set[int | str] = set()  # origins of elements that may be in other rows, see row_blocks.py
        self.row: Operand | None = None  # index of the outermost element loop
        self.apart = False  # whether elements of a row that element loops read or write lie apart

    # -- stack slots --
    def slot(self, name: str, type: Type) -> Operand:
        """A stack slot of this name and type."""
        found = self.slots.get((name, type))
        if found is None:
            found = self.slots[name, type] = Operand(f"%s.{len(self.slots)}", llvm.PTR)
        return found

    def counters(self, name: str, n: int) -> Operand:
        """A slot for ``n`` integers that are 0 when the kernel starts."""
        self.zeroed[name] = n
        return self.slot(name, llvm.I64 if n == 1 else llvm.aggregate(f"[{n} x i64]"))

    def get(self, name: str, type: Type) -> Operand:
        return self.read(type, self.slot(name, type))

    def set(self, name: str, type: Type, v: Operand | int) -> Instruction:
        return self.write(v if isinstance(v, Operand) else llvm.constant(type, v), self.slot(name, type))

    def argument(self, which: str, i: int, type: Type) -> Operand:
        return self.read(type, self.place(llvm.I64, Operand(f"%{which}", llvm.PTR), i))

    # -- elements of arrays --
    def load(self, p: Operand, dtype: np.dtype, origins: frozenset = frozenset()) -> Operand:
        how = self._accessed(dtype, origins)
        if dtype.kind == "c":  # by parts: LLVM vectorises loops over numbers, not over vectors
            part = memory_type(dtype).element
            return self.complex(*(self.read(part, q, how) for q in (p, self.place(part, p, 1, inbounds=True))))
        v = self.read(memory_type(dtype), p, how)
        return self.cmp("ne", v, 0) if dtype.kind == "b" else v

    def store(self, p: Operand, dtype: np.dtype, v: Operand, origins: frozenset = frozenset()) -> None:
        how = self._accessed(dtype, origins)
        if dtype.kind == "c":
            for k, part in enumerate(self.parts(v)):
                self.write(part, self.place(part.type, p, k, inbounds=True), how)
            return
        if dtype.kind == "b":
            v = self.to("zext", v, llvm.I8)
        self.write(v, p, how)

    def _accessed(self, dtype: np.dtype, origins: frozenset) -> str:
        group = "" if self.group is None else f", !llvm.access.group !{self.group}"
        operand = _only_operand(origins)
        told = f", align {alignment(dtype)}{group}{'' if operand is None else self._scope(operand)}"
        if operand is not None:
            self.scope_of[told] = operand
        return told

    def touch(self, view, in_row: bool = False) -> None:
        """Elements of the view are read or written. ``in_row``: in the row that the outermost element loop has come to."""
        for n in view.origins:
            self.touched[n] = self.touched.get(n, view.turn) & view.turn
        if not in_row:
            self.foreign |= view.origins
        if self.row is not None and view.strides and known(view.strides[-1]) not in (0, view.dtype.itemsize):
            self.apart = True

    def _scope(self, operand: int) -> str:
        """What tells LLVM that an operand which is written shares no memory with others."""
        self.scopes.add(operand)
        return f", !alias.scope !{SCOPES + 3 * operand + 1}, !noalias !{SCOPES + 3 * operand + 2}"

    def apart_from_others(self, access: Instruction) -> int | None:
        """The number of the operand whose elements a load or store reaches, where LLVM is told that it shares no memory with others; else None."""
        return self.scope_of.get(access.attributes)

    def node(self, text: str) -> int:
        """A metadata node, by number."""
        self.metadata.append(f"!{len(self.metadata) + FIRST_NODE} = distinct {text}")
        return len(self.metadata) + FIRST_NODE - 1

    def at(self, p: Operand, offset: Size) -> Operand:
        """The address ``offset`` bytes behind ``p``."""
        if known(offset) == 0:
            return p
        key = "at", p.text, integer(offset).text
        found = self.computed.get(key)
        if found is None:
            found = self.computed[key] = self.place(llvm.I8, p, offset, inbounds=True)
        return found

    # -- complex numbers, which are vectors of two --
    def complex(self, re: Operand, im: Operand) -> Operand:
        t = re.type.vector(2)
        half = self.emit("insertelement", t, (Operand("undef", t), re, _PLACES[0]))
        made = self.emit("insertelement", t, (half, im, _PLACES[1]))
        self.parts_of[made] = re, im
        return made

    def parts(self, v: Operand) -> tuple[Operand, Operand]:
        """The real and the imaginary part."""
        found = self.parts_of.get(v)
        if found is None:
            re, im = (self.emit("extractelement", v.type.element, (v, k)) for k in _PLACES)
            found = re, im
        return found


def _only_operand(origins: frozenset) -> int | None:
    """The number of the operand that is the only place where memory is from; None for memory of the loop's own, or of several operands. ``origins``:
    see ArrayView."""
    if len(origins) != 1:
        return None
    (n,) = origins
    return n if isinstance(n, int) else None
