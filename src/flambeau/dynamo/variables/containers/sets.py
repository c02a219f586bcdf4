"""Sets and frozensets."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from ...bytecode.versions import PY312
from ...exc import unsupported
from ...guards.source import ConstSource
from ...rules.constants import is_constant_value
from ...rules.reflect import has_item
from ...tracing.wrapping import exactly
from ..base import Variable, hashable_key, method_of
from ..iterators.container_iterators import KeyedIteratorVariable
from ..iterators.protocol import each
from ..values.constant import ConstantVariable
from .set_history import Elements, SetHistory

__all__ = ["SetVariable", "elements_of", "taken_over"]

COMBINED = {
    **{n: n for n in ("union", "intersection", "difference", "symmetric_difference")},
    "__or__": "union",
    "__and__": "intersection",
    "__sub__": "difference",
    "__xor__": "symmetric_difference",
}
CHANGES = ("add", "discard", "remove", "update", "clear", "pop", *(f"{n}_update" for n in COMBINED))


def taken_over(tx, v: Variable) -> SetHistory | Elements | None:
    """The history or elements of ``v`` where another set takes it over as a whole: of a set, or a dict. None where ``v`` is iterated, as an
    object derived from a dict is."""
    v = v.unwrap()
    contents = getattr(v, "contents", v)
    if isinstance(contents, SetVariable):
        if contents.dirty and len(contents.entries) > 1 and not contents.history.is_certain():
            # Of one that existed before only the order is known: not where a changed one has its elements.
            unsupported("set-order", f"taking the elements of {contents!r}", "Their order is not known while tracing.")
        return contents.history.snapshot()
    if v.python_type() is dict and v.is_container:
        return Elements(dict, v.items(tx))
    return None


def elements_of(tx, v: Variable) -> Iterator[Variable]:
    """The elements that a set takes from ``v``, one by one. The elements of another set are read without calling its ``__iter__``, in any order."""
    contents = getattr(v.unwrap(), "contents", v)
    if isinstance(contents, SetVariable):
        return iter(contents.items(tx))
    return each(tx, v)


class SetVariable(Variable):
    """A set or frozenset: ``entries`` maps hashable keys to variables."""

    is_container = True
    mutable = True

    def __init__(self, elements, source=None, cls=set, order=None, history=None):
        super().__init__(source)
        self.entries: dict = {}
        elements = list(elements)
        for e in elements:
            self.entries.setdefault(hashable_key(e), e)
        self.cls = cls
        self.dirty = False
        self.removed = 0  # how often elements were
        self.order = order  # of a set that existed before: it is guarded
        # Of a set that existed before only the order is known.
        self.history: SetHistory = history or SetHistory(Elements(list, elements), cls, certain=source is None)

    def ordered(self) -> list[Variable]:
        """The elements in the order in which the real set has them."""
        if len(self.entries) < 2:
            return list(self.entries.values())
        if self.order is not None and not self.dirty:
            return [self.entries[k] for k in self.order]
        real, variables = self.real()
        return [variables[v] for v in real]

    def next_popped(self) -> Variable:
        """The element that ``pop`` takes: the first one behind the place where the last ``pop`` ended."""
        if len(self.entries) == 1:
            return next(iter(self.entries.values()))
        real, variables = self.real()
        return variables[real.pop()]

    def real(self) -> tuple[set, dict]:
        """A real set with all that was done to this one, and the variables of its elements."""
        known = self.history.of_values() if self.history.is_certain() else None
        if known is None:
            unsupported(
                "set-order",
                f"iterating over {self!r}",
                "The order of its elements is not known while tracing.",
                "Sort it.",
            )
        return known.made(), {e.as_constant(): e for e in self.entries.values()}

    def python_type(self):
        return self.cls

    def can_constant(self):
        return all(e.can_constant() for e in self.entries.values())

    def as_constant(self):
        return self.cls(e.as_constant() for e in self.entries.values())

    def items(self, tx):
        """In whatever order."""
        return list(self.entries.values())

    def iter(self, tx):
        return KeyedIteratorVariable(self.ordered(), self, self, type(iter(set())))

    def rewritten(self):
        return self.dirty and (self.holder or self).source is not None

    def length(self, tx):
        return len(self.entries)

    def truth(self, tx):
        return bool(self.entries)

    def key(self, v: Variable):
        """What an element is looked up by; a set in the place of an equal frozenset is as good."""
        v = v.unwrap()
        if isinstance(v, SetVariable) and v.cls is set and v.can_constant():
            return frozenset(v.as_constant())
        return hashable_key(v)

    def contains(self, tx, key):
        return ConstantVariable(self.key(key) in self.entries)

    def getattr(self, tx, name):
        if name == "__class__":
            return tx.wrap_known(self.cls)
        return method_of(tx, self, name)

    def hasattr(self, tx, name):
        return has_item(self.cls, name)

    def reconstruct(self, cg):
        known = None if self.history.only_grew() and self.cls is set else self.history.of_values()
        if known is not None:
            cg.call_function(known.made, lambda: None, 0)
            return
        cg.all(self.entries.values())
        cg.emit("BUILD_SET", len(self.entries))
        if self.cls is not set:
            t = cg.temp()
            cg.emit("STORE_FAST", t)
            cg.call_function(self.cls, lambda: cg.emit("LOAD_FAST", t), 1)

    def changed(self, tx):
        self.dirty = True
        tx.side_effects.touch(self)

    def put(self, e: Variable) -> None:
        k = hashable_key(e)
        if k not in self.entries:
            self.entries[k] = e
            self.history.add("add", e)

    def drop(self, k) -> None:
        if k in self.entries:
            self.removed += 1
            self.history.add("discard", self.entries.pop(k))

    def made_of(self, entries: dict, name: str, operands: list) -> SetVariable:
        """What the method ``name`` returns."""
        return SetVariable(entries.values(), cls=self.cls, history=self.history.result(name, operands))

    def update(self, tx, a: Variable) -> None:
        whole = taken_over(tx, a)
        for e in elements_of(tx, a):
            self.changed(tx)
            if whole is None:
                self.put(e)
            else:
                self.entries.setdefault(hashable_key(e), e)
        if whole is not None:
            self.history.add("update", whole)

    def combined(self, tx, name: str, args) -> tuple[dict, list[SetHistory | Elements]]:
        """The entries of the union, intersection, ... with the arguments, and what the arguments are in its history; of equal elements CPython
        keeps the same one."""
        out = dict(self.entries)
        operands = []
        for a in args:
            seen: list[Variable] = []
            operands.append(taken_over(tx, a) or Elements(list, seen))
            swap = isinstance(a, SetVariable) and len(a.entries) > len(out)  # the smaller set is gone through
            other: dict = {}
            common = 0
            for e in elements_of(tx, a):
                k = hashable_key(e)
                seen.append(e)
                common += k in out and k not in other
                other.setdefault(k, e)
                if name == "intersection" and common == len(out) and k in out and not isinstance(a, SetVariable):
                    break  # nothing can come any more
            if name == "union":
                out = {**other, **out}
            elif name == "intersection":
                out = {k: out[k] for k in out if k in other} if swap else {k: e for k, e in other.items() if k in out}
            elif name == "difference":
                out = {k: e for k, e in out.items() if k not in other}
            else:
                new = {k: e for k, e in other.items() if k not in out}
                out = {**{k: e for k, e in out.items() if k not in other}, **new}
        return out, operands

    def call_method(self, tx, name, args, kwargs):
        if name in CHANGES and self.cls is frozenset:
            tx.raise_user(AttributeError(f"'frozenset' object has no attribute '{name}'"))
        if name == "add":
            self.changed(tx)
            self.put(args[0])
        elif name in ("discard", "remove"):
            k = self.key(args[0])
            if name == "remove" and k not in self.entries:
                tx.raise_missing(args[0].holder or args[0])
            self.changed(tx)
            self.drop(k)
        elif name == "update":
            for a in args:
                self.update(tx, a)
        elif name == "difference_update":
            for a in args:
                for e in elements_of(tx, a):
                    k = hashable_key(e)
                    self.changed(tx)
                    self.drop(k)
                # Behind the last element places are given up.
                self.history.add(name, Elements(list, []))
        elif name == "clear":
            self.changed(tx)
            self.removed += 1
            self.entries.clear()
            self.history.add(name)
        elif name == "copy":
            return self if self.cls is frozenset else self.made_of(self.entries, name, [])
        elif name == "__contains__":
            return self.contains(tx, *args)
        elif name == "__len__":
            return ConstantVariable(len(self.entries))
        elif name == "__iter__" and not args:
            return self.iter(tx)
        elif name in COMBINED and name.startswith("__") and not issubclass(args[0].python_type(), (set, frozenset)):
            # Operators leave what is no set to it.
            return ConstantVariable(NotImplemented)
        elif name in COMBINED:
            entries, operands = self.combined(tx, COMBINED[name], args)
            return self.made_of(entries, COMBINED[name], operands)
        elif name in ("intersection_update", "symmetric_difference_update"):
            entries, operands = self.combined(tx, name.removesuffix("_update"), args)
            self.changed(tx)
            self.removed += 1
            self.entries = entries
            self.history.add(name, *operands)
        elif name == "pop" and not args:
            if not self.entries:
                tx.raise_user(KeyError("pop from an empty set"))
            e = self.next_popped()
            self.changed(tx)
            self.removed += 1
            del self.entries[hashable_key(e)]
            self.history.add(name)
            return e
        elif name in ("issubset", "issuperset", "isdisjoint") and len(args) == 1:
            return ConstantVariable(self.compared(tx, name, args[0]))
        else:
            unsupported("set-method", f"calling {name} of {self!r}", f"set.{name} is not traced.")
        return ConstantVariable(None)

    def compared(self, tx, name: str, other: Variable) -> bool:
        """Whether it is a subset, a superset or has nothing in common; what decides that is the last element that is taken of ``other``."""
        keys = (hashable_key(e) for e in elements_of(tx, other))
        if name == "issuperset":
            return all(k in self.entries for k in keys)
        if name == "isdisjoint":
            return not any(k in self.entries for k in keys)
        found = set()
        for k in keys:
            if k in self.entries:
                found.add(k)
                if PY312 and len(found) == len(self.entries):
                    break
        return len(found) == len(self.entries)

    def replay(self, replay):
        target, cg = replay.target(self), replay.cg
        # What is done to the real set leaves its own order; where not all is known, its elements are put in anew.
        known = self.history.of_values()
        if known is not None:
            replay.later(lambda r: r.call(known.done_to, [target], []))
            return
        new = replay.keep(lambda: (cg.all(self.entries.values()), cg.emit("BUILD_SET", len(self.entries))))
        replay.later(lambda r: r.method(target, "clear"))
        replay.later(lambda r: r.method(target, "update", new))


@exactly(set)
def _(tx, value, source):
    if not all(is_constant_value(v) or type(v) is type for v in value):
        unsupported("set", "a set that holds more than constants and classes")
    snapshot = copy.copy(value)
    if list(snapshot) != list(value):  # what is guarded is the order too
        unsupported("set", "a set whose copy has another order")
    tx.output.guard(source, "TYPE_MATCH", type(value))
    tx.output.guard(source, "EQUALS_MATCH", snapshot)
    elements = [tx.wrap(v, ConstSource(v, "const")) for v in snapshot]
    history = SetHistory(snapshot, certain=False)
    return SetVariable(elements, source, cls=type(value), order=list(snapshot), history=history)


@exactly(frozenset)
def _(tx, value, source):
    """One that holds more than constants, classes for instance: what is in it is settled by which object it is."""
    tx.output.guard(source, "ID_MATCH", value)
    return SetVariable([tx.wrap(v, ConstSource(v, "const")) for v in value], source, cls=frozenset, order=list(value))
