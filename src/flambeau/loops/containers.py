"""Lists, deques, dicts and sets of numbers that a loop changes: objects of the kernel's own (csrc/runtime/containers.c), which become Python's
behind it.

Where a container is made, or given empty or with a few numbers, is its *site*; what its items are is found while the region is run on types, and
where a site learns more the region is run again. Items are words of 8 bytes: numbers, and tuples of them.
"""

from __future__ import annotations

import collections
import functools
from typing import Any

import numpy as np

from ..base.records import replace, slotted
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Operand, integer
from . import array_items, conversions, text
from .arguments import NULL
from .array_items import ArrayItem
from .emitter import BOOL, F64, I64, constant
from .machine import InterpreterPart, Machine
from .values import (
    CHARACTER,
    TABLES,
    ArrayView,
    Container,
    Declined,
    Empty,
    Expression,
    Known,
    Scalar,
    ScalarType,
    Tuple,
    TupleType,
)

__all__ = ["CHAIN", "Changed", "Containers", "Given", "Site", "made", "take"]

CHAIN = "@containers.b"  # the slot of the chain; its name has it begin as NULL
ITEMS, COUNT, USED, WIDTH, CHANGES = 1, 2, 3, 5, 9  # words of the object
MOST = 64  # items that a container may have before the loop
MOST_ALIKE = 1 << 16  # the same of a list of one number


class Changed(Exception):
    """More is known of a site: the region has to be run again."""


@slotted
class Given:
    """A container from outside: ``items`` of a list or set, pairs of a dict, as what the loop may read (see operands.py). ``by``: by how much the
    integers of a list grow, where that is the same for all, as in ``list(range(n))``. ``behind``: the items are any things, which the loop doesn't
    read: it only appends to them."""

    kind: str
    items: tuple
    by: int | None = None
    behind: bool = False


@slotted(frozen=False)
class Site:
    """``kind``: "list", "deque", "dict" or "set"; the types of what it holds: None where nothing is known yet. ``key`` is also that of a set's
    elements."""

    kind: str
    key: Any = None
    value: Any = None
    changes: bool = False
    """Whether the loop changes it."""
    removes: bool = False
    """Whether elements leave it: the order of a set's others is then Python's own."""
    behind: bool = False
    """Whether it has items before the loop that the kernel doesn't know: see Given."""

    @property
    def nkey(self) -> int:
        return words(self.key) if self.kind in TABLES else 0

    @property
    def nvalue(self) -> int:
        return words(self.value) if self.kind != "set" else 0

    @property
    def width(self) -> int:
        return self.nkey + self.nvalue + (self.kind in TABLES)


@slotted
class NestedItem:
    """A list, deque, dict or set within another: one word, where it lies. ``sites``: see Container."""

    sites: frozenset
    kind: str


def words(t) -> int:
    if t is None or isinstance(t, NestedItem):
        return 1
    if isinstance(t, ArrayItem):
        return t.words
    return sum(map(words, t.items)) if isinstance(t, TupleType) else 1


def as_item(value):
    """What a container holds of a value: a string of one character is a character."""
    if isinstance(value, Tuple):
        return replace(value, items=tuple(map(as_item, value.items)))
    return text.character(value)


def plain_type(value):
    """The type of an item. Declined for what isn't one."""
    if isinstance(value, Tuple) and not value.listed and value.items:
        return TupleType(tuple(map(plain_type, value.items)))
    if isinstance(value, ArrayView) and value.owner is not None and value.ndim:
        return array_items.type_of(value)
    if isinstance(value, Container) and not value.view:
        if any(isinstance(key, str) for key in value.sites):
            raise Declined("a container that is made outside of the loop, within another one")
        return NestedItem(value.sites, value.kind)
    if (
        not isinstance(value, Scalar)
        or value.kind not in "biufU"
        or value.dtype.itemsize < 8
        and value.kind not in "bU"
    ):
        raise Declined("a container of other things than numbers")
    if value.weak is None:
        raise Declined("a container of numbers of which it isn't known whether they are Python's")
    return ScalarType(value.dtype, value.weak)


def _sites_in(t) -> frozenset:
    if isinstance(t, TupleType):
        return frozenset().union(*map(_sites_in, t.items))
    return t.sites if isinstance(t, NestedItem) else frozenset()


def merged(a, b):
    """The type of items of both types, which differ by where their memory is from; None for other types."""
    if isinstance(a, NestedItem) and isinstance(b, NestedItem) and a.kind == b.kind:
        return replace(a, sites=a.sites | b.sites)
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.items) == len(b.items):
        parts = [x if x == y else merged(x, y) for x, y in zip(a.items, b.items)]
        return None if None in parts else replace(a, items=tuple(parts))
    return array_items.merged(a, b)


class Containers(InterpreterPart):
    """``sites``: by name of a variable from outside, or number of the instruction that makes one."""

    def __init__(self, machine: Machine, rerunnable: bool):
        super().__init__(machine)
        self.sites: dict[Any, Site] = {}
        machine.count = self.count
        self.rerunnable = rerunnable

    # ---- making ----------------------------------------------------------------------------------------------------------
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

    def given(self, key, what: Given) -> Container:
        """A container from outside, with what it holds."""
        c = self.create(key, what.kind)
        self.sites[key].behind = what.behind
        self.e.set(f"given {key}", llvm.PTR, c.ptr)
        if len(what.items) > MOST:
            first = what.items[0]
            for (k,) in self.e.loop([len(what.items)]):
                grown = what.by and integer(self.e.add(first.const, self.e.mul(k, what.by)))
                self.append(c, Scalar(I64, True, grown) if grown else first)
            return c
        for item in what.items:
            if not c.is_table:
                self.append(c, item)
            elif what.kind == "set":
                self.put(c, item, None)
            else:
                self.put(c, *item.items)
        return c

    def repeated(self, items: tuple, times: Scalar) -> Container:
        """``[*items] * times``."""
        c, n = self.create(self.machine.at, "list"), conversions.to_int(self.e, times).v
        for _ in self.e.loop([self.e.larger(n, 0)]):
            for item in items:
                self.append(c, item)
        return c

    def changed(self, names: list[str]) -> list[tuple[str, Container]]:
        """Those of the containers from outside that the loop may have changed."""
        out = []
        for name in names:
            if self.sites[name].changes:
                c = Container(frozenset((name,)), self.sites[name].kind, self.e.get(f"given {name}", llvm.PTR))
                out.append((name, c))
        return out

    # ---- words -----------------------------------------------------------------------------------------------------------
    def site(self, c: Container) -> Site:
        """What is known of a container, which may be one of several sites: the same of all of them."""
        members = [self.sites[key] for key in c.sites]
        for what in ("key", "value"):
            known = [t for m in members if (t := getattr(m, what)) is not None]
            both = functools.reduce(lambda a, b: a if a == b else a and merged(a, b), known) if known else None
            if known and both is None:
                raise Declined(f"a {c.kind} of things of different types")
            if any(getattr(m, what) != both for m in members):
                for m in members:
                    setattr(m, what, both)
                raise Changed
        return members[0]

    def origins(self, c) -> frozenset:
        """Where the memory of arrays may be from that a container holds."""

        def of(t) -> frozenset:
            if isinstance(t, TupleType):
                return frozenset().union(*map(of, t.items))
            return t.origins if isinstance(t, ArrayItem) else frozenset()

        return of(self.sites[next(iter(c.sites))].value)

    def reached(self, sites: frozenset) -> frozenset:
        """These sites, and those of what is held there."""
        found, todo = set(sites), list(sites)
        while todo:
            for key in _sites_in(self.sites[todo.pop()].value) - found:
                found.add(key)
                todo.append(key)
        return frozenset(found)

    def within(self, t) -> frozenset:
        """The sites of all that an item holds."""
        return self.reached(_sites_in(t))

    def changes(self, c: Container, removes: bool = False) -> None:
        for key in c.sites:
            self.sites[key].changes = True
            self.sites[key].removes |= removes

    def learn(self, c: Container, what: str, value) -> None:
        """An item of this type is one of the container's."""
        site, t = self.site(c), plain_type(as_item(value))
        known = getattr(site, what)
        if isinstance(t, NestedItem | TupleType) and c.sites & (self.within(t)):
            raise Declined(f"a {c.kind} that may hold itself")
        if known is None:
            setattr(site, what, t)
            raise Changed
        both = merged(known, t)
        if both is not None and both != known:
            setattr(site, what, both)
            raise Changed
        if both is None and known != t:
            raise Declined(f"a {c.kind} of things of different types")

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

    def require_whole(self, c: Container) -> None:
        """Declined for a list to which the loop only may append."""
        if any(self.sites[key].behind for key in c.sites):
            raise Declined("a list of other things than known numbers, to which the loop does more than append")

    def count(self, c: Container) -> Scalar:
        self.require_whole(c)
        return Scalar(I64, True, self.field(c, COUNT), (0, 1 << 48))

    # ---- lists -----------------------------------------------------------------------------------------------------------
    def kept(self, value):
        """A value that is about to become an item: the memory of an array is kept for it."""
        if isinstance(value, Tuple):
            return replace(value, items=tuple(map(self.kept, value.items)))
        if not isinstance(value, ArrayView | Expression):
            return value
        return array_items.item_of(self.e, value, self.e.slot(CHAIN, llvm.PTR), f"item@{self.machine.at}")

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
            changes = self.e.op("add", self.field(c, CHANGES), 1)
            self.e.write(changes, self.e.place(llvm.I64, c.ptr, CHANGES))

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
        e, n = self.e, self.field(c, USED)
        k = conversions.to_int(e, key).v
        if not (key.bounds and key.bounds[0] >= 0):
            k = e.select(e.cmp("slt", k, 0), e.op("add", k, n), k)
        e.check(e.cmp("ult", k, n), "IndexError", text)
        return e.place(llvm.I64, self.field(c, ITEMS, llvm.PTR), e.mul(k, self.site(c).width))

    def pop(self, c: Container):
        e, t = self.e, self.item_of(c)
        n = self.field(c, USED)
        e.check(e.cmp("ne", n, 0), "IndexError", "pop from empty list")
        n = e.op("sub", n, 1)
        for word in (COUNT, USED):
            e.write(n, e.place(llvm.I64, c.ptr, word))
        p = e.place(llvm.I64, self.field(c, ITEMS, llvm.PTR), e.mul(n, self.site(c).width))
        self._moved(c)
        return self.load(p, t)[0]

    def shift(self, c: Container):
        e, t = self.e, self.item_of(c)
        e.check(e.cmp("ne", self.field(c, USED), 0), "IndexError", "pop from empty list")
        out = self._room(f"shift@{self.machine.at}", self.site(c).width)
        e.call(llvm.VOID, Operand("%list_shift", llvm.PTR), c.ptr, out)
        self._moved(c)
        return self.load(out, t)[0]

    def _room(self, name: str, n: int) -> Operand:
        return self.e.slot(name, llvm.aggregate(f"[{n} x i64]"))

    def has(self, c: Container, at: Operand) -> Operand:
        """Whether a list has an item with this number now, or a table an entry."""
        return self.e.cmp("ult", at, self.field(c, USED))

    def next(self, c: Container, key: str) -> tuple[Operand, Operand]:
        """For a loop over a list that counts in slot ``key``: the number of the next item, and whether there is one. A list may grow meanwhile. The
        same of a dict's entries, of which some may have left it; it may not get or lose keys."""
        if c.kind != "list":
            same = self.e.cmp("eq", self.e.get(f"{key}.changes", llvm.I64), self.field(c, CHANGES))
            self.e.check(same, "RuntimeError", f"a {c.kind} of a compiled loop changed size during iteration")
        at = self.e.get(f"{key}.cur", llvm.I64)
        return at, self.has(c, at)

    def begin(self, c: Container, key: str, down: bool) -> None:
        """A loop begins that counts in slot ``key``, from the last item down or from the first."""
        self.require_whole(c)
        self.e.set(f"{key}.cur", llvm.I64, self.e.op("sub", self.field(c, USED), 1) if down else 0)
        if c.kind != "list":
            self.e.set(f"{key}.changes", llvm.I64, self.field(c, CHANGES))

    def item(self, c: Container, at: Operand):
        """The item with this number, which was there when the turn began; the list may have shrunk. Of a dict what its view gives."""
        if c.is_table:
            return self.entry(c, at)
        k = Scalar(I64, True, at, (0, 1 << 48))
        return self.load(self.place(c, k, "list index out of range"), self.item_of(c))[0]

    def is_there(self, c: Container, at: Operand) -> Operand:
        """Whether the entry of a dict or set with this number has not left it."""
        width = self.site(c).width
        last = self.e.place(llvm.I64, self.field(c, ITEMS, llvm.PTR), self.e.add(self.e.mul(at, width), width - 1))
        return self.e.cmp("ne", self.e.read(llvm.I64, last), 0)

    def entry(self, c: Container, at: Operand):
        """What a loop over a dict, a view of one, or a set has of the entry with this number."""
        site = self.site(c)
        if site.key is None:
            raise Empty(f"an item of a {c.kind} that stays empty")
        p = self.e.place(llvm.I64, self.field(c, ITEMS, llvm.PTR), self.e.mul(at, site.width))
        if c.view == "values":
            return self.value(c, p)
        key = self.load(p, site.key)[0]
        return Tuple((key, self.value(c, p))) if c.view == "items" else key

    # ---- dicts and sets --------------------------------------------------------------------------------------------------
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
        text = f"get() of a key that a dict of a compiled loop doesn't have{conversions.INSTEAD}"
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

    # ---- what programs write ---------------------------------------------------------------------------------------------
    def subscript(self, c: Container, key):
        if not c.is_table:
            return self.load(self.place(c, key, f"{c.kind} index out of range"), self.item_of(c))[0]
        if c.kind == "set" or c.view:
            raise Declined("a subscript of a set, or of a view of a dict")
        p = self.find(c, key)
        self.e.check(self.e.cmp("ne", p, NULL), "KeyError", "a key that a dict of a compiled loop doesn't have")
        return self.value(c, p)

    def store_subscript(self, c: Container, key, value) -> None:
        self.changes(c)
        if c.kind == "dict":
            self.put(c, key, value)
            return
        if c.kind == "set":
            raise Declined("a subscript of a set")
        value = self.kept(value)
        self.learn(c, "value", value)
        self.store(self.place(c, key, f"{c.kind} assignment index out of range"), value)

    def method(self, c: Container, name: str, args: list):
        """The result of a method."""
        if name != "append":
            self.require_whole(c)
        if c.view:
            raise Declined(f"{name}() of a view of a dict")
        if name not in ("get", "keys", "values", "items"):
            self.changes(c)
        match c.kind, name, len(args):
            case "list" | "deque", "append", 1:
                self.append(c, *args)
            case "deque", "appendleft", 1:
                self.append_left(c, *args)
            case "list" | "deque", "extend", 1 if isinstance(args[0], Tuple):
                for item in args[0].items:
                    self.append(c, item)
            case "list" | "deque", "pop", 0:
                return self.pop(c)
            case "deque", "popleft", 0:
                return self.shift(c)
            case "list", "pop", 1 if getattr(args[0], "const", None) == 0:
                return self.shift(c)
            case "dict", "get", 1:
                return self.known_value(c, *args)
            case "dict", "get", 2:
                return self.get(c, *args)
            case "dict", "pop", 1:
                value = self.subscript(c, *args)
                self.remove(c, *args, True)
                return value
            case "dict", "setdefault", 2:
                return self.setdefault(c, *args)
            case "set", "add", 1:
                self.put(c, args[0], None)
            case "set", "discard" | "remove", 1:
                self.remove(c, args[0], name == "remove")
            case "dict", "keys" | "values" | "items", 0:
                return replace(c, view=name)
            case _, "clear", 0:
                self.e.call(llvm.VOID, Operand("%container_clear", llvm.PTR), c.ptr)
            case _:
                raise Declined(f"{name}() of a {c.kind} that changes")
        return Known(None)

    # ---- behind the loop -------------------------------------------------------------------------------------------------
    def result(self, c: Container) -> Scalar:
        """The number under which Python has the object: see :func:`take`."""
        site = self.site(c)
        if any(self.sites[key].kind == "set" and self.sites[key].removes for key in self.reached(c.sites)):
            raise Declined("a set is used after the loop, and elements leave it in the loop")
        from . import arrays

        e = self.e
        call = f"container {c.kind} {self.said(site.key)} {self.said(site.value)}"
        n = self.field(c, USED)
        items = self.field(c, ITEMS, llvm.PTR)
        made_ = arrays.ArrayView(items, I64, (n, site.width), (8 * site.width, 8), frozenset())
        out = arrays.temporary(e, I64, (1,), f"handle {sorted(map(str, c.sites))}")
        e.python(call, self.rerunnable, [made_, out])
        return Scalar(I64, True, e.load(out.ptr, I64))

    def said(self, t) -> str:
        """A type as text: the dtype and whether it is Python's, or several of them."""
        if t is None:
            return "-"
        if isinstance(t, ArrayItem):
            return t.said
        if isinstance(t, TupleType):
            return "(" + ",".join(map(self.said, t.items)) + ")"
        if isinstance(t, NestedItem):
            site = self.site(Container(t.sites, t.kind, NULL))
            return "{" + ",".join((t.kind, self.said(site.key), self.said(site.value))) + "}"
        return f"{t.dtype.str}{'p' if t.weak else 'n'}"

    def array_result(self, name: str, view: ArrayView) -> Scalar:
        """The same of an array."""
        from . import arrays

        e = self.e
        out = arrays.temporary(e, I64, (1,), f"handle {name}")
        e.python("container array - -", self.rerunnable, [view, out])
        return Scalar(I64, True, e.load(out.ptr, I64))


# ---- Python's objects ------------------------------------------------------------------------------------------------------
_TAKEN: dict[int, Any] = {}
_NUMBERS = iter(range(1, 1 << 62))
KEPT = 1000  # objects that nobody has asked for (a call that was made again plainly)


def made(call: str, arrays_: tuple[np.ndarray, ...]) -> int:
    """Make the object that a kernel tells of; its number goes into the last array."""
    _, kind, key, value = call.split(" ")
    table, out = arrays_
    it: Any = np.array(table) if kind == "array" else _container(table, kind, key, value, {})
    n = next(_NUMBERS)
    _TAKEN[n] = it
    while len(_TAKEN) > KEPT:
        _TAKEN.pop(next(iter(_TAKEN)), None)
    out[0] = n
    return 0


def _container(table: np.ndarray, kind: str, key: str, value: str, nested: dict[int, Any]) -> Any:
    """``nested``: the objects that are made of containers within, by their addresses."""
    if kind in TABLES:
        table = table[table[:, -1] != 0]
    keys, at = _column(table, key, 0, nested) if kind in TABLES else ([], 0)
    if kind == "set":
        return set(keys)
    values, _ = _column(table, value, at, nested)
    if kind == "dict":
        return dict(zip(keys, values))
    return collections.deque(values) if kind == "deque" else values


def _parts(said: str) -> list[str]:
    """What the commas of a type's text separate."""
    out, depth, start = [], 0, 1
    for k, c in enumerate(said):
        depth += (c in "({") - (c in ")}")
        if (c == "," and depth == 1) or (c in ")}" and depth == 0):
            out.append(said[start:k])
            start = k + 1
    return out


def _nested(p: int, said: str, nested: dict[int, Any]) -> Any:
    """The object that is made of the container at this address."""
    if p not in nested:
        words_ = np.array(array_items.Memory(p, (WIDTH + 1,), (8,), "<i8")).tolist()
        items, used, width = words_[ITEMS], words_[USED], words_[WIDTH]
        memory = array_items.Memory(items, (used, width), (8 * width, 8), "<i8")
        table = np.array(memory) if used else np.zeros((0, width), np.int64)
        nested[p] = _container(table, *_parts(said), nested)
    return nested[p]


def _column(table: np.ndarray, said: str, at: int, nested: dict[int, Any]) -> tuple[list, int]:
    """The objects of some words of each entry, and the number of the word behind them."""
    if said == "-":
        return [], at + 1
    if said.startswith("["):
        return array_items.made(table, said, at)
    if said.startswith("("):
        columns = []
        for part in _parts(said):
            column, at = _column(table, part, at, nested)
            columns.append(column)
        return list(zip(*columns)), at
    if said.startswith("{"):
        return [_nested(p, said, nested) for p in table[:, at].tolist()], at + 1
    dtype = np.dtype(said[:-1])
    words_ = np.ascontiguousarray(table[:, at])
    if dtype == CHARACTER:
        return list(map(chr, words_.tolist())), at + 1
    numbers: np.ndarray = words_ != 0 if dtype == BOOL else words_.view(dtype)
    return (numbers.tolist() if said.endswith("p") else list(numbers)), at + 1


def take(number) -> Any:
    """The object with this number (a tensor), which is asked for once."""
    return _TAKEN.pop(int(number.item()))
