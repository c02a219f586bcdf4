"""Lists, and their writes."""

from __future__ import annotations

from ...bytecode.versions import PY313
from ...exc import unsupported
from ...rules.reflect import name_of
from ...tracing.current_frame import current
from ...tracing.wrapping import exactly, pin
from ..base import Variable
from ..iterators.container_iterators import ListIteratorVariable
from ..iterators.protocol import each, fast_sequence
from ..values.constant import ConstantVariable
from .sequences import SequenceVariable, existing_elements
from .slices import SliceVariable

__all__ = ["ListVariable"]


class ListVariable(SequenceVariable):
    """A list. One with a source is *open* until its length matters: appending to it needs no guard on what it holds."""

    mutable = True
    cls = list

    def __init__(self, elements, source=None, cls=None, open_value=None):
        super().__init__(elements, source, cls)
        self.open_value = open_value
        self.appended = 0  # appended while open: how many of elements, at its end, are new
        self.dirty = False

    def _close(self, tx):
        if self.open_value is not None:
            value, self.open_value = self.open_value, None
            tx.output.guard(self.source, "LENGTH", len(value))
            self.elements = existing_elements(value, self.source) + self.elements

    def seen(self):
        if self.open_value is not None:
            self._close(current())
        return self.elements

    def can_constant(self):
        if self.open_value is not None:
            self._close(current())
        return super().can_constant()

    def realized(self, tx=None):
        if self.open_value is not None:
            self._close(tx or current())
        return super().realized(tx)

    def iter(self, tx):
        self.realized(tx)
        return ListIteratorVariable(self)

    def length(self, tx):
        self._close(tx)
        return len(self.elements)

    def getitem(self, tx, key):
        self._close(tx)
        return super().getitem(tx, key)

    def reconstruct(self, cg):
        cg.all(self.elements)
        cg.emit("BUILD_LIST", len(self.elements))
        if self.cls is not list:
            unsupported("list-subclass", f"rebuilding a {name_of(self.cls)}")

    def changed(self, tx, only_append=False):
        if not only_append or self.open_value is None:
            self._close(tx)
            self.dirty = True
        else:
            self.appended += 1
        tx.side_effects.touch(self)

    def setitem(self, tx, key, value):
        self.changed(tx)
        if isinstance(key, SliceVariable):
            new = self.replacement(tx, key.as_constant(), value)
            try:
                self.elements[key.as_constant()] = new
            except (TypeError, ValueError) as e:
                tx.raise_user(e)
            return
        i = self._index(tx, key)
        if not -len(self.elements) <= i < len(self.elements):
            tx.raise_user(IndexError("list assignment index out of range"))
        self.elements[i] = value

    def replacement(self, tx, at: slice, value: Variable) -> list[Variable]:
        """What is assigned to a slice, all of which is taken first."""
        if at.step == 0:
            tx.raise_user(ValueError("slice step cannot be zero"))
        simple = at.step in (None, 1) and not PY313
        text = "can only assign an iterable" if simple else "must assign iterable to extended slice"
        return fast_sequence(tx, value, text)

    def delitem(self, tx, key):
        self.changed(tx)
        try:
            del self.elements[key.as_constant()]
        except (IndexError, TypeError, ValueError) as e:
            tx.raise_user(e)

    def sort(self, tx, kwargs) -> None:
        """Keys and comparisons find the list empty, as the interpreter has it meanwhile, and what they write to it is lost."""
        if not self.length(tx):
            tx.sort([], kwargs)
            return
        self.changed(tx)
        items, self.elements, self.dirty = self.elements, [], False
        try:
            tx.sort(items, kwargs)
            if self.dirty:
                tx.raise_user(ValueError("list modified during sort"))
        finally:
            self.elements, self.dirty = items, True

    def call_method(self, tx, name, args, kwargs):
        none = ConstantVariable(None)
        if name == "append" and len(args) == 1:
            self.changed(tx, only_append=True)
            self.elements.append(args[0])
            return none
        if name == "extend" and len(args) == 1:
            # A list or tuple is taken as it is now; of all else the list has what was taken so far.
            whole = isinstance(args[0], SequenceVariable) and args[0].python_type() in (list, tuple)
            for v in args[0].items(tx) if whole else each(tx, args[0], ask_length=True):
                self.changed(tx, only_append=True)
                self.elements.append(v)
            return none
        if name == "insert" and len(args) == 2 and (args[0].can_constant() or args[0].is_symbol):
            self.changed(tx)
            try:
                self.elements.insert(args[0].as_constant(), args[1])
            except TypeError as e:
                tx.raise_user(e)
            return none
        if name == "pop" and all(a.can_constant() or a.is_symbol for a in args):
            self.items(tx)
            self.changed(tx)
            try:
                return self.elements.pop(*[a.as_constant() for a in args])
            except (IndexError, TypeError) as e:
                tx.raise_user(e)
        if name == "clear":
            if self.length(tx):
                self.changed(tx)
                self.elements.clear()
            return none
        if name == "reverse":
            self.changed(tx)
            self.elements.reverse()
            return none
        if name == "copy":
            return ListVariable(self.items(tx))
        if name == "sort":
            self.sort(tx, kwargs)
            return none
        if name == "remove" and len(args) == 1:
            i = self._first(tx, args[0])
            if i is None:
                tx.raise_user(ValueError("list.remove(x): x not in list"))
            self.changed(tx)
            del self.elements[i]
            return none
        if name == "__setitem__":
            self.setitem(tx, *args)
            return none
        if name == "__iadd__":
            return self.call_method(tx, "extend", args, {}) and self
        return super().call_method(tx, name, args, kwargs)

    def replay(self, replay):
        target, cg = replay.target(self), replay.cg
        elements = self.elements if self.dirty else self.elements[len(self.elements) - self.appended :]
        if not self.dirty and not elements:
            return
        new = replay.keep(lambda: (cg.all(elements), cg.emit("BUILD_LIST", len(elements))))
        if self.dirty and self.cls is list:

            def write(r):
                r.load(new, target)
                cg.load_const(None)
                cg.load_const(None)
                cg.emit("BUILD_SLICE", 2)
                cg.emit("STORE_SUBSCR")

            replay.later(write)
        else:
            if self.dirty:
                replay.later(lambda r: r.method(target, "clear"))
            replay.later(lambda r: r.method(target, "extend", new))


@exactly(list)
def _(tx, value, source):
    pin(tx, source, "TYPE_MATCH", list)
    return ListVariable([], source, open_value=value)
