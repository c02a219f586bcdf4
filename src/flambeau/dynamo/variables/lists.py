"""Lists, tuples, sets, slices, ranges and iterators."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable

from flambeau.base.shapes import Size

from ..exc import unsupported
from ..reflect import dict_of, name_of
from ..source import ItemSource
from .base import KnownVariable, Lazy, MethodOf, Variable, hashable_key, method_of
from .constant import ConstantVariable
from .iterators import IteratorVariable

WHOLE = (slice(None), slice(0, None), slice(None, None, 1))  # of a tuple they give the tuple itself
__all__ = [
    "ListVariable",
    "RangeVariable",
    "Result",
    "SequenceVariable",
    "SetVariable",
    "SliceVariable",
    "TupleVariable",
]


class SequenceVariable(Variable):
    """``elements`` may hold :class:`Lazy` values; reading goes through :meth:`items`."""

    cls: type = list
    kind: type | None = None  # of a part of it, when that isn't its own

    def __init__(self, elements, source=None, cls=None):
        super().__init__(source)
        self.elements: list[Variable] = list(elements)
        if cls is not None:
            self.cls = cls

    def __repr__(self):
        return f"{type(self).__name__}(length={len(self.elements)})"

    def python_type(self):
        return self.cls

    def seen(self) -> list[Variable]:
        """The elements, without those that an operation has just made."""
        return self.elements

    def can_constant(self):
        return all(_known(e) for e in self.elements)

    def as_constant(self):
        return self.make([_constant(e) for e in self.elements])

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
                    from ..executor import current

                    tx = current()
                self.elements[i] = e.real(tx)
        return self.elements

    def items(self, tx):
        return list(self.realized(tx))

    def length(self, tx):
        return len(self.elements)

    def truth(self, tx):
        return bool(self.length(tx))

    def _index(self, tx, key):
        k = key.as_constant() if key.can_constant() else None
        if hasattr(k, "__index__") and not isinstance(k, slice):
            return k.__index__()
        unsupported("getitem", f"{self!r}[{key!r}]")

    def getitem(self, tx, key):
        if isinstance(key, SliceVariable):
            self.items(tx)
            cls = self.plain_class()
            if self.python_type() is tuple and key.as_constant() in WHOLE:
                return self
            if is_size(self.cls):
                return TupleVariable(self.elements[key.as_constant()], cls=type(self.cls(())[:]))
            return (self.kind or type(self))(self.elements[key.as_constant()], cls=cls)
        from .tensor import TensorVariable

        if isinstance(key, TensorVariable):
            unsupported("data-dependent", "a list indexed by a tensor", "The value depends on tensor data.")
        i = self._index(tx, key)
        n = self.length(tx)
        if not -n <= i < n:
            tx.raise_user(IndexError(f"{name_of(self.cls)} index out of range"))
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
        if hasattr(self.cls, name):
            return MethodOf(self, name)
        tx.raise_user(AttributeError(f"{name_of(self.cls)!r} object has no attribute {name!r}"))

    def hasattr(self, tx, name):
        return hasattr(self.cls, name)

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
            return IteratorVariable(self.items(tx))
        if name in ("index", "count"):
            self.items(tx)
            if self.can_constant() and all(a.can_constant() for a in args):
                try:
                    return ConstantVariable(getattr(self.as_constant(), name)(*[a.as_constant() for a in args]))
                except (TypeError, ValueError) as e:
                    tx.raise_user(e)
            if name == "index" and len(args) == 1 and (i := self._first(tx, args[0])) is not None:
                return ConstantVariable(i)
        if name == "numel" and self.can_constant():
            return ConstantVariable(getattr(self.as_constant(), name)())
        unsupported(
            "sequence-method", f"call_method {self!r} {name} {args!r}", f"{name_of(self.cls)}.{name} is not traced."
        )

    def _first(self, tx, v: Variable) -> int | None:
        """The place of the first element that is, or equals, ``v``."""
        from .operators import same_or_equal

        return next((i for i, e in enumerate(self.items(tx)) if same_or_equal(tx, e, v)), None)


def _real(e: Variable) -> Variable:
    if isinstance(e, Lazy) and e.done is None:
        from ..executor import current

        return e.real(current())
    return e.unwrap()


def _known(e: Variable) -> bool:
    return _real(e).can_constant()


def _constant(e: Variable):
    return _real(e).as_constant()


def is_size(cls: type) -> bool:
    return cls is Size


FIELD = (type(collections.namedtuple("_", "f").f), types.MemberDescriptorType)


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
        if name in ("_replace", "_asdict") and hasattr(self.cls, "_fields"):
            return MethodOf(self, name)
        if not self.is_field(tx, name) and self.cls is not tuple:
            if is_size(self.cls) and name in dict_of(self.cls):
                return MethodOf(self, name)
            from .. import world

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
        from .. import world

        if name not in getattr(self.cls, "_fields", ()):
            return False
        return isinstance(world.class_attr(tx, self.cls, name), FIELD)

    def call_method(self, tx, name, args, kwargs):
        if (
            is_size(self.cls)
            and name in dict_of(self.cls)
            and self.can_constant()
            and all(a.can_constant() for a in args)
        ):
            return tx.wrap_known(getattr(self.as_constant(), name)(*[a.as_constant() for a in args]))
        if name == "_replace" and hasattr(self.cls, "_fields"):
            new = [kwargs.get(f, e) for f, e in zip(self.cls._fields, self.items(tx))]
            return TupleVariable(new, cls=self.cls)
        if name == "_asdict" and hasattr(self.cls, "_fields"):
            return tx.make_dict(dict(zip(self.cls._fields, self.items(tx))))
        return super().call_method(tx, name, args, kwargs)


class ListVariable(SequenceVariable):
    """A list. One with a source is *open* until its length matters: appending to it needs no guard on what it holds."""

    mutable = True
    cls = list

    def __init__(self, elements, source=None, cls=None, open_value=None):
        super().__init__(elements, source, cls)
        self.open_value = open_value
        self.appended = 0  # appended while open: how many of elements, at its end, are new
        self.dirty = False

    def __repr__(self):
        return f"ListVariable(length={len(self.elements)})"

    def _close(self, tx):
        if self.open_value is not None:
            value, self.open_value = self.open_value, None
            tx.output.guard(self.source, "LENGTH", len(value))
            self.elements = [Lazy(v, ItemSource(self.source, i)) for i, v in enumerate(value)] + self.elements

    def can_constant(self):
        if self.open_value is not None:
            from ..executor import current

            self._close(current())
        return super().can_constant()

    def realized(self, tx=None):
        if self.open_value is not None:
            from ..executor import current

            self._close(tx or current())
        return super().realized(tx)

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
            from .operators import has_elements

            new = value.items(tx) if has_elements(value) else None  # None: the list says what it wants
            try:
                self.elements[key.as_constant()] = new
            except (TypeError, ValueError) as e:
                tx.raise_user(e)
            return
        i = self._index(tx, key)
        if not -len(self.elements) <= i < len(self.elements):
            tx.raise_user(IndexError("list assignment index out of range"))
        self.elements[i] = value

    def delitem(self, tx, key):
        self.changed(tx)
        try:
            del self.elements[key.as_constant()]
        except (IndexError, TypeError, ValueError) as e:
            tx.raise_user(e)

    def call_method(self, tx, name, args, kwargs):
        none = ConstantVariable(None)
        if name == "append" and len(args) == 1:
            self.changed(tx, only_append=True)
            self.elements.append(args[0])
            return none
        if name == "extend" and len(args) == 1:
            for v in args[0].items(tx):
                self.changed(tx, only_append=True)
                self.elements.append(v)
            return none
        if name == "insert" and len(args) == 2 and args[0].can_constant():
            self.changed(tx)
            try:
                self.elements.insert(args[0].as_constant(), args[1])
            except TypeError as e:
                tx.raise_user(e)
            return none
        if name == "pop" and all(a.can_constant() for a in args):
            self.items(tx)
            self.changed(tx)
            try:
                return self.elements.pop(*[a.as_constant() for a in args])
            except (IndexError, TypeError) as e:
                tx.raise_user(e)
        if name == "clear":
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
            new = tx.sorted(self.items(tx), kwargs)
            self.changed(tx)
            self.elements[:] = new
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


class DequeVariable(ListVariable):
    """A deque; one with ``maxlen`` drops elements at the other end."""

    cls = collections.deque

    def __init__(self, elements, source=None, cls=None, maxlen: int | None = None):
        super().__init__(elements, source, cls)
        self.maxlen = maxlen
        if maxlen is not None:
            del self.elements[: max(len(self.elements) - maxlen, 0)]

    def reconstruct(self, cg):
        def push():
            cg.all(self.elements)
            cg.emit("BUILD_LIST", len(self.elements))
            cg.load_const(self.maxlen)

        cg.call_function(collections.deque, push, 2)

    def getattr(self, tx, name):
        return ConstantVariable(self.maxlen) if name == "maxlen" else super().getattr(tx, name)

    def _put(self, tx, values, left: bool) -> Variable:
        self.changed(tx)
        for v in values:
            self.elements.insert(0 if left else len(self.elements), v)
            if self.maxlen is not None and len(self.elements) > self.maxlen:
                self.elements.pop(-1 if left else 0)
        return ConstantVariable(None)

    def call_method(self, tx, name, args, kwargs):
        from .operators import iterate

        if name in ("append", "appendleft") and len(args) == 1:
            return self._put(tx, args, name == "appendleft")
        if name in ("extend", "extendleft", "__iadd__") and len(args) == 1:
            self._put(tx, iterate(tx, args[0]).items(tx), name == "extendleft")
            return self if name == "__iadd__" else ConstantVariable(None)
        if name == "popleft":
            self.items(tx)
            self.changed(tx)
            if not self.elements:
                tx.raise_user(IndexError("pop from an empty deque"))
            return self.elements.pop(0)
        if name == "rotate":
            n = args[0].as_constant() if args else 1
            self.items(tx)
            self.changed(tx)
            if self.elements:
                n %= len(self.elements)
                self.elements[:] = self.elements[-n:] + self.elements[:-n] if n else self.elements
            return ConstantVariable(None)
        if name == "insert" and self.maxlen is not None and len(self.items(tx)) == self.maxlen:
            tx.raise_user(IndexError("deque already at its maximum size"))
        if name in ("copy", "__copy__"):
            return DequeVariable(self.items(tx), maxlen=self.maxlen)
        return super().call_method(tx, name, args, kwargs)


COMBINED = {
    **{n: n for n in ("union", "intersection", "difference", "symmetric_difference")},
    "__or__": "union",
    "__and__": "intersection",
    "__sub__": "difference",
    "__xor__": "symmetric_difference",
}


class SetVariable(Variable):
    """A set or frozenset: ``entries`` maps hashable keys to variables."""

    mutable = True

    def __init__(self, elements, source=None, cls=set, order=None):
        super().__init__(source)
        self.entries = {hashable_key(e): e for e in elements}
        self.cls = cls
        self.dirty = False
        self.order = order  # of a set that existed before: it is guarded
        self.grown = source is None  # made while tracing, by adding one element after the other

    def ordered(self) -> list[Variable]:
        """The elements in the order in which the real set has them."""
        if len(self.entries) < 2:
            return list(self.entries.values())
        if self.order is not None and not self.dirty:
            return [self.entries[k] for k in self.order]
        if not self.grown or not self.can_constant():
            unsupported(
                "set-order",
                f"iterating over {self!r}",
                "The order of its elements is not known while tracing.",
                "Sort it.",
            )
        real: set = set()
        for k in self.entries:
            real.add(k)
        return [self.entries[k] for k in real]

    def python_type(self):
        return self.cls

    def can_constant(self):
        return all(e.can_constant() for e in self.entries.values())

    def as_constant(self):
        return self.cls(e.as_constant() for e in self.entries.values())

    def items(self, tx):
        return list(self.entries.values())

    def length(self, tx):
        return len(self.entries)

    def truth(self, tx):
        return bool(self.entries)

    def contains(self, tx, key):
        return ConstantVariable(hashable_key(key) in self.entries)

    def getattr(self, tx, name):
        if name == "__class__":
            return tx.wrap_known(self.cls)
        return method_of(tx, self, name)

    def hasattr(self, tx, name):
        return hasattr(self.cls, name)

    def reconstruct(self, cg):
        cg.all(self.entries.values())
        cg.emit("BUILD_SET", len(self.entries))
        if self.cls is not set:
            t = cg.temp()
            cg.emit("STORE_FAST", t)
            cg.call_function(self.cls, lambda: cg.emit("LOAD_FAST", t), 1)

    def changed(self, tx):
        self.dirty = True
        tx.side_effects.touch(self)

    def unordered(self, elements) -> SetVariable:
        out = SetVariable(elements, cls=self.cls)
        out.grown = False
        return out

    def combined(self, tx, name: str, args) -> dict:
        """The entries of the union, intersection, ... with the arguments; of equal elements CPython keeps the same one."""
        out = dict(self.entries)
        for a in args:
            other = {hashable_key(e): e for e in reversed(a.items(tx))}
            other = dict(reversed(other.items()))
            if name == "union":
                out = {**other, **out}
            elif name == "intersection":
                swap = isinstance(a, SetVariable) and len(other) > len(out)  # the smaller set is gone through
                out = {k: out[k] for k in out if k in other} if swap else {k: e for k, e in other.items() if k in out}
            elif name == "difference":
                out = {k: e for k, e in out.items() if k not in other}
            else:
                new = {k: e for k, e in other.items() if k not in out}
                out = {**{k: e for k, e in out.items() if k not in other}, **new}
        return out

    def call_method(self, tx, name, args, kwargs):
        if name in ("add", "discard", "remove", "update", "clear", "pop") and self.cls is frozenset:
            tx.raise_user(AttributeError(f"'frozenset' object has no attribute '{name}'"))
        if name == "add":
            self.changed(tx)
            self.entries.setdefault(hashable_key(args[0]), args[0])
        elif name in ("discard", "remove"):
            k = hashable_key(args[0])
            if name == "remove" and k not in self.entries:
                tx.raise_user(KeyError(k))
            self.changed(tx)
            self.grown = self.grown and k not in self.entries
            self.entries.pop(k, None)
        elif name == "update":
            self.changed(tx)
            for a in args:
                for e in a.items(tx):
                    self.entries.setdefault(hashable_key(e), e)
        elif name == "clear":
            self.changed(tx)
            self.entries.clear()
        elif name == "copy":
            return self.unordered(self.items(tx))
        elif name == "__contains__":
            return self.contains(tx, *args)
        elif name == "__len__":
            return ConstantVariable(len(self.entries))
        elif name in COMBINED:
            return self.unordered(self.combined(tx, COMBINED[name], args).values())
        elif name.endswith("_update") and name.removesuffix("_update") in COMBINED and self.cls is set:
            entries = self.combined(tx, name.removesuffix("_update"), args)
            self.changed(tx)
            self.grown = False
            self.entries = entries
        elif name == "pop" and self.entries:
            e = self.ordered()[0]
            self.changed(tx)
            self.grown = False
            del self.entries[hashable_key(e)]
            return e
        elif name in ("issubset", "issuperset", "isdisjoint") and len(args) == 1:
            other = {hashable_key(e) for e in args[0].items(tx)}
            return ConstantVariable(getattr(set(self.entries), name)(other))
        else:
            unsupported("set-method", f"call_method {self!r} {name}", f"set.{name} is not traced.")
        return ConstantVariable(None)


class SliceVariable(Variable):
    def __init__(self, parts, source=None):
        super().__init__(source)
        self.parts = [*parts]

    def python_type(self):
        return slice

    def can_constant(self):
        return all(p.can_constant() for p in self.parts)

    def as_constant(self):
        for p in self.parts:
            if not p.can_constant():
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
            from .operators import fold

            return fold(tx, slice.indices, [self, *args])
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg):
        cg.all(self.parts)
        cg.emit("BUILD_SLICE", len(self.parts))


class RangeVariable(KnownVariable):
    def items(self, tx):
        if len(self.value) > 100_000:
            unsupported(
                "long-loop", f"a loop over {self.value}", "Loops are unrolled.", "Write it with tensor operations."
            )
        return [ConstantVariable(i) for i in self.value]

    def length(self, tx):
        return len(self.value)

    def truth(self, tx):
        return bool(self.value)

    def getitem(self, tx, key):
        try:
            return tx.wrap_known(self.value[key.as_constant()])
        except IndexError as e:
            tx.raise_user(e)

    def getattr(self, tx, name):
        if name in ("start", "stop", "step"):
            return ConstantVariable(getattr(self.value, name))
        return method_of(tx, self, name)

    def call_method(self, tx, name, args, kwargs):
        if name in ("index", "count", "__len__", "__contains__", "__getitem__"):
            return tx.wrap_known(getattr(self.value, name)(*[a.as_constant() for a in args]))
        return super().call_method(tx, name, args, kwargs)

    def contains(self, tx, key):
        return ConstantVariable(key.as_constant() in self.value)

    def reconstruct(self, cg):
        r = self.value
        cg.call_function(range, lambda: [cg.load_const(x) for x in (r.start, r.stop, r.step)], 3)
