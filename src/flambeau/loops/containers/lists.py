"""Lists and deques: items at either end, items by number."""

from __future__ import annotations

from typing import Any

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand
from ..arguments import NULL
from ..numbers import conversions
from ..values import Container, Declined, Empty, Scalar
from .items import Items, Word

__all__ = ["Lists"]


class Lists(Items):
    def append(self, c: Container, value) -> None:
        value = self.kept(value)
        self.learn(c, "value", value)
        self._put_at_an_end(c, value, "list_append")

    def _put_at_an_end(self, c: Container, value, call: str) -> None:
        e = self.e
        p = e.call(llvm.PTR, Operand(f"%{call}", llvm.PTR), c.ptr)
        e.check(e.cmp("ne", p, NULL), "MemoryError", "")
        self.store(p, value)
        self._moved(c)

    def append_left(self, c: Container, value) -> None:
        value = self.kept(value)
        self.learn(c, "value", value)
        self._put_at_an_end(c, value, "list_prepend")

    def _moved(self, c: Container) -> None:
        """Items of a deque came or went, which a loop over it doesn't allow."""
        if c.kind == "deque":
            changes = self.e.op("add", self.field(c, Word.CHANGES), 1)
            self.e.write(changes, self.e.place(llvm.I64, c.ptr, Word.CHANGES))

    def item_of(self, c: Container) -> Any:
        """The type of a list's items. An empty list's are asked for in vain."""
        t = self.site(c).value
        if t is None:
            raise Empty("an item of a list that stays empty")
        return t

    def place(self, c: Container, key, text: str) -> Operand:
        """Where an item of a list lies."""
        self.require_whole(c)
        if not isinstance(key, Scalar) or key.kind != "i":
            raise Declined("a subscript of a list that isn't an integer")
        e, n = self.e, self.field(c, Word.USED)
        k = conversions.to_int(e, key).v
        if not (key.bounds and key.bounds[0] >= 0):
            k = e.select(e.cmp("slt", k, 0), e.op("add", k, n), k)
        e.check(e.cmp("ult", k, n), "IndexError", text)
        return e.place(llvm.I64, self.field(c, Word.ITEMS, llvm.PTR), e.mul(k, self.site(c).width))

    def pop(self, c: Container):
        e, t = self.e, self.item_of(c)
        n = self.field(c, Word.USED)
        e.check(e.cmp("ne", n, 0), "IndexError", "pop from empty list")
        n = e.op("sub", n, 1)
        for word in (Word.COUNT, Word.USED):
            e.write(n, e.place(llvm.I64, c.ptr, word))
        p = e.place(llvm.I64, self.field(c, Word.ITEMS, llvm.PTR), e.mul(n, self.site(c).width))
        self._moved(c)
        return self.load(p, t)[0]

    def shift(self, c: Container):
        e, t = self.e, self.item_of(c)
        e.check(e.cmp("ne", self.field(c, Word.USED), 0), "IndexError", "pop from empty list")
        out = self._room(f"shift@{self.machine.at}", self.site(c).width)
        e.call(llvm.VOID, Operand("%list_shift", llvm.PTR), c.ptr, out)
        self._moved(c)
        return self.load(out, t)[0]
