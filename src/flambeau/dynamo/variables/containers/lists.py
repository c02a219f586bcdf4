"""Lists, tuples, deques, sets, slices and ranges."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Sequence

from flambeau.base.shapes import Size

from ...bytecode.versions import PY313
from ...exc import unsupported
from ...guards.source import GetAttrSource, ItemSource
from ...rules.reflect import dict_of, has_item, name_of
from ...tracing import world
from ...tracing.current_frame import current
from ...tracing.wrapping import exactly, pin
from ..base import KnownVariable, Lazy, MethodOf, Variable, has_nan, method_of
from ..iterators.container_iterators import ElementsVariable, ListIteratorVariable
from ..iterators.protocol import MOST, each, fast_sequence
from ..values.constant import ConstantVariable, indexed

WHOLE = (slice(None), slice(0, None), slice(None, None, 1))  # of a tuple they give the tuple itself
__all__ = [
    "ListVariable",
    "RangeVariable",
    "Result",
    "SequenceVariable",
    "SliceVariable",
    "TupleVariable",
]


class SequenceVariable(Variable):
    """``elements`` may hold :class:`Lazy` values; reading goes through :meth:`items`."""

    is_container = True

    cls: type = list
    kind: type | None = None  # of a part of it, when that isn't its own

    def __init__(self, elements, source=None, cls=None):
        super().__init__(source)
        self.elements: list[Variable] = list(elements)
        if cls is not None:
            self.cls = cls

    def python_type(self):
        return self.cls

    def seen(self) -> list[Variable]:
        """The elements, without those that an operation has just made."""
        return self.elements

    def can_constant(self):
        return all(_known(e) for e in self.elements)

    def as_constant(self):
        return self.make([_constant(e) for e in self.elements])

    def real_value(self, tx):
        return self.make([e.real_value(tx) for e in self.items(tx)])

    def make(self, values):
        if hasattr(self.cls, "_fields"):
            return self.cls(*values)
        return self.cls(values)

    def as_proxy(self):
        return (list if issubclass(self.cls, list) else tuple)(e.as_proxy() for e in self.realized())

    def realized(self, tx=None):
        for i, e in enumerate(self.elements):
            if isinstance(e, Lazy):
                if tx is None and e.done is None:
                    tx = current()
                self.elements[i] = e.real(tx)
        return self.elements

    def items(self, tx):
        return list(self.realized(tx))

    def iter(self, tx):
        return ElementsVariable(self.items(tx), self, type(iter(())))

    def length(self, tx):
        return len(self.elements)

    def truth(self, tx):
        return bool(self.length(tx))

    def _index(self, tx, key):
        k = key.as_constant() if key.can_constant() or key.is_symbol else None
        if hasattr(k, "__index__") and not isinstance(k, slice):
            indexed(tx, key)
            return operator.index(k)
        unsupported("getitem", f"{self!r}[{key!r}]")

    def getitem(self, tx, key):
        if isinstance(key, SliceVariable):
            self.items(tx)
            cls, at = self.plain_class(), key.as_constant()
            if self.python_type() is tuple and at in WHOLE:
                return self
            try:
                part = self.elements[at]
            except (TypeError, ValueError) as e:
                tx.raise_user(e.with_traceback(None))
            if is_size(self.cls):
                return TupleVariable(part, cls=type(self.cls(())[:]))
            return (self.kind or type(self))(part, cls=cls)
        if key.is_tensor:
            unsupported("data-dependent", "a list indexed by a tensor", "The value depends on tensor data.")
        i = self._index(tx, key)
        n = self.length(tx)
        if not -n <= i < n:
            kind = tuple if issubclass(self.cls, tuple) else self.cls
            tx.raise_user(IndexError(f"{name_of(kind)} index out of range"))
        e = self.elements[i]
        if isinstance(e, Lazy):
            e = self.elements[i] = e.real(tx)
        return e

    def plain_class(self):
        return list if issubclass(self.cls, list) else tuple

    def getattr(self, tx, name):
        if name in getattr(self.cls, "_fields", ()):
            return self.getitem(tx, ConstantVariable(self.cls._fields.index(name)))
        if name == "__class__":
            return tx.wrap_known(self.cls)
        return method_of(tx, self, name)

    def hasattr(self, tx, name):
        return has_item(self.cls, name)

    def distinct_from(self, other):
        return other.is_constant()

    def call_method(self, tx, name, args, kwargs):
        if name == "__len__":
            return ConstantVariable(self.length(tx))
        if name == "__getitem__":
            return self.getitem(tx, *args)
        if name == "__contains__":
            return self.contains(tx, *args)
        if name == "__iter__":
            return self.iter(tx)
        if name in ("index", "count"):
            self.items(tx)
            if self.can_constant() and all(a.can_constant() and not has_nan(a.as_constant()) for a in args):
                try:
                    return ConstantVariable(getattr(self.as_constant(), name)(*[a.as_constant() for a in args]))
                except (TypeError, ValueError) as e:
                    tx.raise_user(e)
            if name == "index" and len(args) == 1 and (i := self._first(tx, args[0])) is not None:
                return ConstantVariable(i)
            if name == "count" and len(args) == 1:
                return ConstantVariable(sum(tx.operators.same_or_equal(tx, e, args[0]) for e in self.items(tx)))
        if name == "numel" and self.can_constant():
            return ConstantVariable(getattr(self.as_constant(), name)())
        unsupported("sequence-method", f"calling {name} of {self!r}", f"{name_of(self.cls)}.{name} is not traced.")

    def _first(self, tx, v: Variable) -> int | None:
        """The place of the first element that is, or equals, ``v``."""
        return next((i for i, e in enumerate(self.items(tx)) if tx.operators.same_or_equal(tx, e, v)), None)


def _real(e: Variable) -> Variable:
    if isinstance(e, Lazy) and e.done is None:
        return e.real(current())
    return e.unwrap()


def _known(e: Variable) -> bool:
    return _real(e).can_constant()


def _constant(e: Variable):
    return _real(e).as_constant()


def is_size(cls: type) -> bool:
    return cls is Size


class TupleVariable(SequenceVariable):
    cls = tuple

    def reloadable(self):
        return self.source is not None

    def reconstruct(self, cg):
        if self.cls is tuple:
            cg.all(self.elements)
            cg.emit("BUILD_TUPLE", len(self.elements))
        elif hasattr(self.cls, "_fields"):
            cg.call_function(self.cls, lambda: cg.all(self.elements), len(self.elements))
        else:

            def push():
                cg.all(self.elements)
                cg.emit("BUILD_TUPLE", len(self.elements))

            cg.call_function(self.cls, push, 1)

    def getattr(self, tx, name):
        if not self.is_field(tx, name) and self.cls is not tuple:
            if is_size(self.cls) and name in dict_of(self.cls):
                return MethodOf(self, name)
            f = world.class_attr(tx, self.cls, name)
            if isinstance(f, property):
                return tx.wrap_function(f.fget).call(tx, [self], {})
            if isinstance(f, (types.FunctionType, classmethod, staticmethod)):
                return world.bind(tx, self, self.cls, name, f)
            if f is not world.ABSENT and not isinstance(f, world.C_METHODS) and name != "__class__":
                return world.bind(tx, self, self.cls, name, f)
        return super().getattr(tx, name)

    def is_field(self, tx, name) -> bool:
        """Whether it is a field of a named tuple, whose class has not been given something else under the name."""
        if name not in getattr(self.cls, "_fields", ()):
            return False
        return isinstance(world.class_attr(tx, self.cls, name), (world.FIELD, types.MemberDescriptorType))

    def call_method(self, tx, name, args, kwargs):
        if (
            is_size(self.cls)
            and name in dict_of(self.cls)
            and self.can_constant()
            and all(a.can_constant() for a in args)
        ):
            return tx.wrap_known(getattr(self.as_constant(), name)(*[a.as_constant() for a in args]))
        return super().call_method(tx, name, args, kwargs)


def _elements_of(value: Sequence, source) -> list[Variable]:
    """The elements of a list or tuple that existed before."""
    if len(value) > MOST:
        unsupported(
            "long-list",
            f"a {name_of(type(value))} of {len(value)} elements",
            "Each element of a list is followed while tracing.",
            "Make an array or a tensor of it, or leave what goes through it out of the compiled function.",
        )
    return [Lazy(v, ItemSource(source, i)) for i, v in enumerate(value)]


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
            self.elements = _elements_of(value, self.source) + self.elements

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


class Result(SequenceVariable):
    """The list or tuple that an operation in the graph returned: its node, until an element is asked for. So a chain of operators on lists
    (``_foreach_*``) has no nodes for elements."""

    @classmethod
    def of(cls, node, value: list | tuple, make: Callable[[], list[Variable]]) -> Result:
        self = (ResultList if type(value) is list else ResultTuple)([])
        self.node, self.count, self.make, self._elements = node, len(value), make, None
        return self

    @property
    def elements(self) -> list[Variable]:
        if self._elements is None:
            self._elements = self.make()
        return self._elements

    @elements.setter
    def elements(self, elements) -> None:
        self._elements = elements

    def seen(self):
        return self._elements or []

    def as_proxy(self):
        return self.node if self._elements is None else super().as_proxy()

    def can_constant(self):
        return self._elements is not None and super().can_constant()

    def length(self, tx):
        return self.count if self._elements is None else super().length(tx)


class ResultList(Result, ListVariable):
    kind = ListVariable


class ResultTuple(Result, TupleVariable):
    kind = TupleVariable


class SliceVariable(Variable):
    is_container = True

    def __init__(self, parts, source=None):
        super().__init__(source)
        self.parts = [*parts]

    def python_type(self):
        return slice

    def can_constant(self):
        return all(p.can_constant() for p in self.parts)

    def as_constant(self):
        for p in self.parts:
            if not (p.can_constant() or p.is_symbol):
                unsupported(
                    "data-dependent", "a slice of a Python sequence by a tensor", "The value depends on tensor data."
                )
        return slice(*[p.as_constant() for p in self.parts])

    def as_proxy(self):
        return slice(*[p.as_proxy() for p in self.parts])

    def getattr(self, tx, name):
        if name in ("start", "stop", "step"):
            return self.parts[("start", "stop", "step").index(name)]
        return method_of(tx, self, name)

    def call_method(self, tx, name, args, kwargs):
        if name == "indices" and self.can_constant() and all(a.can_constant() for a in args):
            return tx.operators.fold(tx, slice.indices, [self, *args])
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg):
        cg.all(self.parts)
        cg.emit("BUILD_SLICE", len(self.parts))


class _Numbers(Sequence[Variable]):
    """The numbers of a range, which becomes known when they are asked for."""

    def __init__(self, over: RangeVariable):
        self.over = over

    def __len__(self):
        r = self.over.value
        if (r.stop - r.start) // r.step > MOST:
            unsupported("long-loop", f"a loop over {r}", "Loops are unrolled.", "Write it with tensor operations.")
        return len(r)

    def __getitem__(self, k):
        numbers = self.over.value[k]
        return [ConstantVariable(n) for n in numbers] if isinstance(k, slice) else ConstantVariable(numbers)


class RangeVariable(KnownVariable):
    is_container = True

    def items(self, tx):
        return [*_Numbers(self)]

    def iter(self, tx):
        return ElementsVariable(_Numbers(self), self, self.iterator_type())

    def iterator_type(self) -> type:
        return type(iter(self.value))

    def length(self, tx):
        try:
            return len(self.value)
        except OverflowError as e:
            tx.raise_user(e)

    def truth(self, tx):
        return bool(self.value)

    def getitem(self, tx, key):
        try:
            return tx.wrap_known(self.value[key.as_constant()])
        except (IndexError, TypeError, ValueError) as e:
            tx.raise_user(e.with_traceback(None))

    def getattr(self, tx, name):
        if name in ("start", "stop", "step"):
            return ConstantVariable(getattr(self.value, name))
        return method_of(tx, self, name)

    def call_method(self, tx, name, args, kwargs):
        if name in ("index", "count", "__len__", "__contains__", "__getitem__"):
            try:
                return tx.wrap_known(getattr(self.value, name)(*[a.as_constant() for a in args]))
            except (IndexError, OverflowError, TypeError, ValueError) as e:
                tx.raise_user(e)
        return super().call_method(tx, name, args, kwargs)

    def contains(self, tx, key):
        return ConstantVariable(key.as_constant() in self.value)

    def reconstruct(self, cg):
        r = self.value
        cg.call_function(range, lambda: [cg.load_const(x) for x in (r.start, r.stop, r.step)], 3)


@exactly(tuple)
def of_tuple(tx, value, source):
    cls = type(value)
    pin(tx, source, "TYPE_MATCH", cls)
    tx.output.guard(source, "LENGTH", len(value))
    return TupleVariable(_elements_of(value, source), source, cls=cls)


@exactly(list)
def _(tx, value, source):
    pin(tx, source, "TYPE_MATCH", list)
    return ListVariable([], source, open_value=value)


@exactly(slice)
def of_slice(tx, value, source):
    pin(tx, source, "TYPE_MATCH", slice)
    return SliceVariable([tx.wrap(getattr(value, n), GetAttrSource(source, n)) for n in ("start", "stop", "step")])


@exactly(range)
def _(tx, value, source):
    tx.output.guard(source, "EQUALS_MATCH", value)
    return RangeVariable(value, source)
