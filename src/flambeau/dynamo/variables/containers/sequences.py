"""What lists and tuples have in common, and tuples: those of classes derived from them, named ones and sizes too."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Sequence

from flambeau.base.shapes import Size

from ...exc import unsupported
from ...guards.source import ItemSource
from ...rules.reflect import dict_of, has_item, name_of
from ...tracing import world
from ...tracing.current_frame import current
from ...tracing.wrapping import exactly, pin
from ..base import Lazy, MethodOf, Variable, has_nan, method_of
from ..iterators.container_iterators import ElementsVariable
from ..iterators.protocol import MOST
from ..values.constant import ConstantVariable, indexed
from .slices import SliceVariable

__all__ = ["SequenceVariable", "TupleVariable", "existing_elements", "is_size", "of_tuple"]

WHOLE = (slice(None), slice(0, None), slice(None, None, 1))  # of a tuple they give the tuple itself


class SequenceVariable(Variable):
    """``elements`` may hold :class:`Lazy` values; reading goes through :meth:`items`."""

    is_container = True

    cls: type = list
    kind: type | None = None  # of a part of it, when that isn't its own
    asked = False  # whether it is a constant, at the moment

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
        # What holds itself is none.
        if self.asked:
            return False
        self.asked = True
        try:
            return all(_known(e) for e in self.elements)
        finally:
            self.asked = False

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
        if key.is_constant() and not isinstance(k, slice):
            kind = name_of(self.plain_class())
            tx.raise_user(TypeError(f"{kind} indices must be integers or slices, not {key.python_type_name()}"))
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
        if name == "numel" and is_size(self.cls):
            times = functools.partial(tx.operators.binary, tx, operator.mul)
            return functools.reduce(times, self.items(tx), ConstantVariable(1))
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


def existing_elements(value: Sequence, source) -> list[Variable]:
    """The elements of a list or tuple that existed before."""
    if len(value) > MOST:
        unsupported(
            "long-list",
            f"a {name_of(type(value))} of {len(value)} elements",
            "Each element of a list is followed while tracing.",
            "Make an array or a tensor of it, or leave what goes through it out of the compiled function.",
        )
    return [Lazy(v, ItemSource(source, i)) for i, v in enumerate(value)]


@exactly(tuple)
def of_tuple(tx, value, source):
    cls = type(value)
    pin(tx, source, "TYPE_MATCH", cls)
    tx.output.guard(source, "LENGTH", len(value))
    return TupleVariable(existing_elements(value, source), source, cls=cls)
