"""Values known while tracing: numbers, strings, None, dtypes, devices, ranges, code."""

from __future__ import annotations

import enum
import sys

from flambeau.base.errors import InternalError
from flambeau.base.symint import NUMBERS

from ...exc import unsupported
from ...guards.source import ConstSource
from ...rules.constants import PLAIN, is_constant_value
from ...rules.reflect import error_name_of, is_a, member_name
from ...tracing import world
from ..base import WHICH_NAN, KnownVariable, Variable, _serial, has_nan

__all__ = ["ConstantVariable", "indexed", "is_none"]


def merges(text: str) -> bool:
    """Whether ``text`` was computed and would become another object as a constant of code, which keeps one object of all names."""
    if len(text) < 2 or not text.isascii() or not text.isidentifier() and not text.replace("_", "a").isalnum():
        return False
    return sys.intern("".join((text[:1], text[1:]))) is not text  # of a copy: ``text`` itself must not become the one


class Kept:
    """Holds an object for code to load, itself and not an equal constant."""

    def __init__(self, value):
        self.value = value


class ConstantVariable(KnownVariable):
    def __init__(self, value, source=None):
        self.source, self.born = source, next(_serial)
        if type(value) not in PLAIN and is_a(value, NUMBERS):
            raise InternalError(f"the symbolic number {value} is taken for a constant")
        self.value = value

    def __repr__(self):
        return member_name(self.value) if isinstance(self.value, enum.Enum) else repr(self.value)

    def is_constant(self):
        return True

    def as_proxy(self):
        return self.value

    def reloadable(self):
        if type(self.value) is str:
            return self.source is not None and type(self.source) is not ConstSource and merges(self.value)
        return self.source is not None and has_nan(self.value)  # which one it is shows

    def reconstruct(self, cg):
        if type(self.value) is str and merges(self.value):
            cg.load_const(Kept(self.value))
            cg.load_attr("value")
        else:
            super().reconstruct(cg)

    def truth(self, tx):
        if isinstance(self.value, enum.Enum):
            world.folded(tx, self.value)
        return bool(self.value)

    def distinct_from(self, other):
        return self.value is None or (isinstance(self.value, str) and not issubclass(other.python_type(), str))

    def getattr(self, tx, name):
        if isinstance(self.value, enum.Enum):
            source = ConstSource(self.value, member_name(self.value))
            if name in ("name", "value", "_name_", "_value_"):
                found = world.instance_attr(tx, self.value, source, f"_{name.strip('_')}_")
                if found is not None:
                    return found
            # An enumeration's methods and properties are the user's code.
            return world.attribute(tx, self, self.value, type(self.value), source, name)
        try:
            value = getattr(self.value, name)
        except AttributeError:
            tx.raise_user(AttributeError(f"{error_name_of(type(self.value))!r} object has no attribute {name!r}"))
        if is_constant_value(value):
            return ConstantVariable(value)
        if callable(value) and not isinstance(value, type):  # the class of a dtype's scalars is a class like any other
            return tx.make_constant_method(self.value, name)
        return tx.wrap_known(value)

    def hasattr(self, tx, name):
        if isinstance(self.value, enum.Enum):
            return world.has(tx, lambda: self.getattr(tx, name))
        return hasattr(self.value, name)

    def length(self, tx):
        if isinstance(self.value, enum.Enum) and (own := self._member_method(tx, "__len__")) is not None:
            return own.call(tx, [], {}).as_constant()
        try:
            return len(self.value)
        except TypeError as e:
            tx.raise_user(e.with_traceback(None))

    def expected_length(self, tx):
        if isinstance(self.value, enum.Enum) and self._member_method(tx, "__len__") is not None:
            self.length(tx)

    def call_method(self, tx, name, args, kwargs):
        if isinstance(self.value, enum.Enum):
            return self.getattr(tx, name).call(tx, args, kwargs)
        return tx.make_constant_method(self.value, name).call(tx, args, kwargs)

    def items(self, tx):
        if isinstance(self.value, enum.Enum) and self._member_method(tx, "__iter__") is not None:
            unsupported("iterate", f"all elements of {self!r} at once", f"{type(self.value).__name__} has an __iter__.")
        if isinstance(self.value, (str, bytes, tuple, frozenset)):
            return [ConstantVariable(v) for v in self.value]
        tx.raise_user(TypeError(f"{error_name_of(type(self.value))!r} object is not iterable"))

    def _member_method(self, tx, name):
        """A special method of an enumeration that is written in Python, bound to this member; None where it is the interpreter's or absent."""
        found = world.class_attr(tx, type(self.value), name)
        return self.getattr(tx, name) if world.is_defined(found) else None

    def iter(self, tx):
        if isinstance(self.value, enum.Enum):
            own = self._member_method(tx, "__iter__")
            if own is not None:
                return tx.checked_iterator(own.call(tx, [], {}))
            if self._member_method(tx, "__getitem__") is not None:
                unsupported("iterate", f"iterating over {self!r}", "It has a __getitem__ and no __iter__.")
        elements = self.items(tx)
        return tx.make_iterator(elements, self, type(iter(self.value)))

    def getitem(self, tx, key):
        if isinstance(self.value, enum.Enum) and (own := self._member_method(tx, "__getitem__")) is not None:
            return own.call(tx, [key], {})
        k = key.as_constant()
        try:
            return ConstantVariable(self.value[k])
        except (TypeError, IndexError, KeyError, ValueError) as e:
            tx.raise_user(e.with_traceback(None))

    def contains(self, tx, key):
        if isinstance(self.value, enum.Enum) and (own := self._member_method(tx, "__contains__")) is not None:
            return ConstantVariable(tx.truth(own.call(tx, [key], {})))
        if has_nan(self.value) and has_nan(key.as_constant()):
            unsupported("identity", f"{key!r} in {self!r}", WHICH_NAN)
        if isinstance(self.value, enum.Enum):
            world.folded(tx, self.value)
        try:
            return ConstantVariable(key.as_constant() in self.value)
        except TypeError as e:
            tx.raise_user(e)


def indexed(tx, v: Variable) -> None:
    """A value is taken for an integer. An enumeration's own ``__index__`` would run at the first call only; the interpreter asks no int for it."""
    if v.is_constant() and isinstance(v.as_constant(), enum.Enum) and not isinstance(v.as_constant(), int):
        world.folded(tx, v.as_constant(), ("__index__",))


def is_none(v: Variable | None) -> bool:
    """Whether an argument is None or was not given."""
    return v is None or (v.is_constant() and v.as_constant() is None)
