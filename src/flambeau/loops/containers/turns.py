"""Loops over containers, which may change meanwhile."""

from __future__ import annotations

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand
from ..emitter import I64
from ..values import Container, Empty, Scalar, Tuple
from .items import Word
from .tables import Tables

__all__ = ["ContainerTurns"]


class ContainerTurns(Tables):
    def has(self, c: Container, at: Operand) -> Operand:
        """Whether a list has an item with this number now, or a table an entry."""
        return self.e.cmp("ult", at, self.field(c, Word.USED))

    def next(self, c: Container, key: str) -> tuple[Operand, Operand]:
        """For a loop over a list that counts in slot ``key``: the number of the next item, and whether there is one. A list may grow meanwhile. The
        same of a dict's entries, of which some may have left it; it may not get or lose keys."""
        if c.kind != "list":
            same = self.e.cmp("eq", self.e.get(f"{key}.changes", llvm.I64), self.field(c, Word.CHANGES))
            self.e.check(same, "RuntimeError", f"a {c.kind} of a compiled loop changed size during iteration")
        at = self.e.get(f"{key}.cur", llvm.I64)
        return at, self.has(c, at)

    def begin(self, c: Container, key: str, down: bool) -> None:
        """A loop begins that counts in slot ``key``, from the last item down or from the first."""
        self.require_whole(c)
        self.e.set(f"{key}.cur", llvm.I64, self.e.op("sub", self.field(c, Word.USED), 1) if down else 0)
        if c.kind != "list":
            self.e.set(f"{key}.changes", llvm.I64, self.field(c, Word.CHANGES))

    def item(self, c: Container, at: Operand):
        """The item with this number, which was there when the turn began; the list may have shrunk. Of a dict what its view gives."""
        if c.is_table:
            return self.entry(c, at)
        k = Scalar(I64, True, at, (0, 1 << 48))
        return self.load(self.place(c, k, "list index out of range"), self.item_of(c))[0]

    def is_there(self, c: Container, at: Operand) -> Operand:
        """Whether the entry of a dict or set with this number has not left it."""
        width = self.site(c).width
        last = self.e.place(llvm.I64, self.field(c, Word.ITEMS, llvm.PTR), self.e.add(self.e.mul(at, width), width - 1))
        return self.e.cmp("ne", self.e.read(llvm.I64, last), 0)

    def entry(self, c: Container, at: Operand):
        """What a loop over a dict, a view of one, or a set has of the entry with this number."""
        site = self.site(c)
        if site.key is None:
            raise Empty(f"an item of a {c.kind} that stays empty")
        p = self.e.place(llvm.I64, self.field(c, Word.ITEMS, llvm.PTR), self.e.mul(at, site.width))
        if c.view == "values":
            return self.value(c, p)
        key = self.load(p, site.key)[0]
        return Tuple((key, self.value(c, p))) if c.view == "items" else key
