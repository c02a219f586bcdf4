"""Items of containers in memory: the words that are written and read, and the fields of the object itself."""

from __future__ import annotations

from typing import Any

from ...base.records import replace
from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand
from ..arguments import NULL
from ..emitter import BOOL, F64, I64, constant
from ..machine import Machine
from ..values import CHARACTER, ArrayView, Container, Declined, Expression, Scalar, Tuple, TupleType
from . import array_items
from .array_items import ArrayItem
from .item_types import NestedItem, as_item
from .sites import Site, Sites

__all__ = ["CHAIN", "Items", "Word"]

CHAIN = "@containers.b"  # the slot of the chain; its name has it begin as NULL


class Word:
    """Numbers of the words of the object, a struct of csrc/runtime/containers.c. Plain ints: constants of the kernel's text are made of them."""

    ITEMS, COUNT, USED, WIDTH, CHANGES = 1, 2, 3, 5, 9


class Items(Sites):
    def __init__(self, machine: Machine, rerunnable: bool):
        super().__init__(machine, rerunnable)
        machine.count = self.count

    def create(self, key, kind: str) -> Container:
        """A new one, empty."""
        if not self.rerunnable:
            raise Declined(f"a {kind} that changes, after something that can't be done twice")
        if self.e.noting or self.e.turns:
            raise Declined(f"a {kind} that changes, where a gradient is asked for")
        site = self.sites.setdefault(key, Site(kind))
        e = self.e
        chain = e.slot(CHAIN, llvm.PTR)
        e.leaves_to_python = True  # its turns are taken in order
        p = e.call(llvm.PTR, Operand("%container_new", llvm.PTR), chain, constant(site.nkey).v, constant(site.nvalue).v)
        e.check(e.cmp("ne", p, NULL), "MemoryError", "")
        return Container(frozenset((key,)), kind, p)

    def store(self, p: Operand, value, at: int = 0) -> int:
        """Write an item's words; the number of the next word."""
        e, value = self.e, as_item(value)
        if isinstance(value, ArrayView):
            return array_items.store(e, p, value, at)
        if isinstance(value, Container):
            e.write(value.ptr, e.place(llvm.I64, p, at))
            return at + 1
        if isinstance(value, Tuple):
            for item in value.items:
                at = self.store(p, item, at)
            return at
        v = e.to("zext", value.v, llvm.I64) if value.kind in "bU" else value.v
        e.write(v, e.place(llvm.I64, p, at))
        return at + 1

    def load(self, p: Operand, t, at: int = 0) -> tuple[Any, int]:
        """An item, and the number of the word behind it."""
        e = self.e
        if isinstance(t, ArrayItem):
            return array_items.load(e, p, t, at)
        if isinstance(t, NestedItem):
            return Container(t.sites, t.kind, e.read(llvm.PTR, e.place(llvm.I64, p, at))), at + 1
        if isinstance(t, TupleType):
            items = []
            for part in t.items:
                item, at = self.load(p, part, at)
                items.append(item)
            return Tuple(tuple(items)), at
        place = e.place(llvm.I64, p, at)
        if t.dtype == BOOL:
            return Scalar(BOOL, t.weak, e.cmp("ne", e.read(llvm.I64, place), 0)), at + 1
        if t.dtype == CHARACTER:
            return Scalar(CHARACTER, True, e.to("trunc", e.read(llvm.I64, place), llvm.I32)), at + 1
        v = e.read(llvm.DOUBLE if t.dtype == F64 else llvm.I64, place)
        return Scalar(t.dtype, t.weak, v), at + 1

    def field(self, c: Container, n: int, type=llvm.I64) -> Operand:
        return self.e.read(type, self.e.place(llvm.I64, c.ptr, n))

    def count(self, c: Container) -> Scalar:
        self.require_whole(c)
        return Scalar(I64, True, self.field(c, Word.COUNT), (0, 1 << 48))

    def kept(self, value):
        """A value that is about to become an item: the memory of an array is kept for it."""
        if isinstance(value, Tuple):
            return replace(value, items=tuple(map(self.kept, value.items)))
        if not isinstance(value, ArrayView | Expression):
            return value
        return array_items.item_of(self.e, value, self.e.slot(CHAIN, llvm.PTR), f"item@{self.machine.at}")

    def _room(self, name: str, n: int) -> Operand:
        return self.e.slot(name, llvm.aggregate(f"[{n} x i64]"))
