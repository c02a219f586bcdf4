"""What a program does with lists, deques, dicts and sets: it makes them, subscripts them, calls their methods, and uses them after the loop."""

from __future__ import annotations

from ...base.records import replace
from ...inductor.assembly import instructions as llvm
from ...inductor.assembly.instructions import Operand, integer
from .. import arrays
from ..arguments import NULL
from ..emitter import I64
from ..numbers import conversions
from ..values import ArrayView, Container, Declined, Known, Scalar, Tuple, TupleType
from . import descriptions
from .array_items import ArrayItem
from .descriptions import ArrayDescription, ContainerDescription, Description, NumberDescription, TupleDescription
from .item_types import NestedItem
from .items import Word
from .sites import MOST, Given
from .turns import ContainerTurns

__all__ = ["Containers"]


class Containers(ContainerTurns):
    # ---- making ----
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
        e = self.e
        call = descriptions.printed_call(self._described(c))
        n = self.field(c, Word.USED)
        items = self.field(c, Word.ITEMS, llvm.PTR)
        words = ArrayView(items, I64, (n, site.width), (8 * site.width, 8), frozenset())
        out = arrays.temporary(e, I64, (1,), f"handle {sorted(map(str, c.sites))}")
        e.python(call, self.rerunnable, [words, out])
        return Scalar(I64, True, e.load(out.ptr, I64))

    def _described(self, c: Container) -> ContainerDescription:
        site = self.site(c)
        return ContainerDescription(c.kind, self._described_item(site.key), self._described_item(site.value))

    def _described_item(self, t) -> Description | None:
        if t is None:
            return None
        if isinstance(t, ArrayItem):
            return ArrayDescription(t.dtype, t.ndim)
        if isinstance(t, TupleType):
            return TupleDescription(tuple(map(self._described_item, t.items)))
        if isinstance(t, NestedItem):
            return self._described(Container(t.sites, t.kind, NULL))
        return NumberDescription(t.dtype, t.weak)

    def array_result(self, name: str, view: ArrayView) -> Scalar:
        """The same of an array."""
        e = self.e
        out = arrays.temporary(e, I64, (1,), f"handle {name}")
        e.python(descriptions.printed_call(ContainerDescription("array")), self.rerunnable, [view, out])
        return Scalar(I64, True, e.load(out.ptr, I64))
