"""Dicts and sets: hash tables whose entries have a key and, in a dict, a value."""

from __future__ import annotations

from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand
from ..arguments import NULL
from ..faults import Limit
from ..values import Container, Declined, Empty, Scalar, Tuple
from .item_types import as_item
from .lists import Lists

__all__ = ["Tables"]


class Tables(Lists):
    def key(self, c: Container, key) -> Operand:
        """The words of a key."""
        key = as_item(key)
        for item in key.items if isinstance(key, Tuple) else (key,):
            if not isinstance(item, Scalar) or item.kind not in "iuU":
                raise Declined("a key that is no integer or character, nor a tuple of them")
        self.learn(c, "key", key)
        out = self._room(f"key@{self.machine.at}", self.site(c).nkey)
        self.store(out, key)
        return out

    def find(self, c: Container, key) -> Operand:
        """Where the entry of a key is, or null."""
        return self.e.call(llvm.PTR, Operand("%table_find", llvm.PTR), c.ptr, self.key(c, key))

    def contains(self, c: Container, key) -> Operand:
        if not c.is_table or c.view in ("values", "items"):
            raise Declined("in, of such items of a list or dict")
        return self.e.cmp("ne", self.find(c, key), NULL)

    def put(self, c: Container, key, value) -> None:
        e, words_ = self.e, self.key(c, key)
        value = self.kept(value)
        if value is not None:
            self.learn(c, "value", value)
        p = e.call(llvm.PTR, Operand("%table_put", llvm.PTR), c.ptr, words_)
        e.check(e.cmp("ne", p, NULL), "MemoryError", "")
        if value is not None:
            self.store(p, value, self.site(c).nkey)

    def value(self, c: Container, p: Operand):
        site = self.site(c)
        if site.value is None:
            raise Empty("a value of a dict that stays empty")
        return self.load(p, site.value, site.nkey)[0]

    def get(self, c: Container, key, default):
        """``d.get(key, default)``."""
        self.learn(c, "value", default)
        e = self.e
        p = self.find(c, key)
        own = self._room(f"default@{self.machine.at}", self.site(c).width)
        self.store(own, default, self.site(c).nkey)
        return self.value(c, e.select(e.cmp("ne", p, NULL), p, own))

    def known_value(self, c: Container, key):
        """``d.get(key)`` of a key that the dict has."""
        p = self.find(c, key)
        text = Limit("get() of a key that a dict of a compiled loop doesn't have")
        self.e.check(self.e.cmp("ne", p, NULL), "RuntimeError", text)
        return self.value(c, p)

    def setdefault(self, c: Container, key, default):
        e = self.e
        there, on = e.new_label(), e.new_label()
        missing = e.new_label()
        e.branch(e.cmp("ne", self.find(c, key), NULL), there, missing)
        e.label(missing)
        self.put(c, key, default)
        e.jump(on)
        e.label(there)
        e.jump(on)
        e.label(on)
        return self.value(c, self.find(c, key))

    def remove(self, c: Container, key, error: bool) -> None:
        e, p = self.e, self.find(c, key)
        self.changes(c, True)
        found = e.cmp("ne", p, NULL)
        if error:
            e.check(found, "KeyError", f"a key that a {c.kind} of a compiled loop doesn't have")
            e.call(llvm.VOID, Operand("%table_remove", llvm.PTR), c.ptr, p)
            return
        yes, on = e.new_label(), e.new_label()
        e.branch(found, yes, on)
        e.label(yes)
        e.call(llvm.VOID, Operand("%table_remove", llvm.PTR), c.ptr, p)
        e.jump(on)
        e.label(on)
