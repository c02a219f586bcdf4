"""Values known while tracing: numbers, strings, None, dtypes, devices, ranges, code."""

from __future__ import annotations

import enum
import sys
import types

import numpy as np

from flambeau.base.errors import InternalError
from flambeau.base.symint import NUMBERS

from ..exc import unsupported
from ..reflect import is_a, module_of, name_of
from ..source import ConstSource
from .base import WHICH_NAN, KnownVariable, Variable, _serial, has_nan

__all__ = ["ConstantVariable", "is_constant_value", "is_none"]

PLAIN = frozenset(
    (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented), types.CodeType)
)
OTHERS = frozenset(
    (types.FunctionType, types.ModuleType, types.MethodType, types.BuiltinFunctionType, type, dict, list, set)
)
"""Classes whose objects are no constants: those that are looked at most, to save the questions."""


def is_constant_value(v) -> bool:
    """Values that are equal whenever their guards say so and can be a code constant."""
    t = type(v)
    if type(t) is type:  # a metaclass may have a hash of its own
        if t in PLAIN:
            return True
        if t in OTHERS:
            return False
    if t is tuple or t is frozenset:
        for x in v:
            if not is_constant_value(x):
                return False
        return True
    if is_a(v, (np.dtype, enum.Enum, np.bool_, np.integer, np.inexact)):
        return True
    return module_of(t).startswith("flambeau.base") and name_of(t) in (
        "DType",
        "Device",
        "dtype",
        "device",
        "finfo",
        "iinfo",
        "layout",
        "memory_format",
        "Layout",
        "MemoryFormat",
    )


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
        return f"ConstantVariable({name_of(type(self.value))}: {self.value!r})"

    def is_constant(self):
        return True

    def as_proxy(self):
        return self.value

    def reloadable(self):
        if type(self.value) is str:
            return self.source is not None and type(self.source) is not ConstSource and merges(self.value)
        return has_nan(self.value)  # which one it is shows

    def reconstruct(self, cg):
        if type(self.value) is str and merges(self.value):
            cg.load_const(Kept(self.value))
            cg.load_attr("value")
        else:
            super().reconstruct(cg)

    def truth(self, tx):
        if isinstance(self.value, enum.Enum):
            from .. import world

            world.folded(tx, self.value)
        return bool(self.value)

    def distinct_from(self, other):
        return self.value is None or isinstance(self.value, str)

    def getattr(self, tx, name):
        if isinstance(self.value, enum.Enum) and name not in ("name", "value", "_name_", "_value_"):
            from .. import world  # an enumeration's methods and properties are the user's code

            cls = type(self.value)
            return world.attribute(tx, self, self.value, cls, ConstSource(self.value, str(self.value)), name)
        if isinstance(self.value, enum.Enum):
            from .. import world

            return world.instance_attr(tx, self.value, ConstSource(self.value, str(self.value)), f"_{name.strip('_')}_")
        try:
            value = getattr(self.value, name)
        except AttributeError:
            tx.raise_user(AttributeError(f"{name_of(type(self.value))!r} object has no attribute {name!r}"))
        if is_constant_value(value):
            return ConstantVariable(value)
        if callable(value) and not isinstance(value, type):  # the class of a dtype's scalars is a class like any other
            return ConstantMethodVariable(self.value, name)
        return tx.wrap_known(value)

    def hasattr(self, tx, name):
        if isinstance(self.value, enum.Enum):
            from .. import world

            return world.has(tx, lambda: self.getattr(tx, name))
        return hasattr(self.value, name)

    def length(self, tx):
        if isinstance(self.value, enum.Enum):
            return self.getattr(tx, "__len__").call(tx, [], {}).as_constant()
        return super().length(tx)

    def call_method(self, tx, name, args, kwargs):
        if isinstance(self.value, enum.Enum):
            return self.getattr(tx, name).call(tx, args, kwargs)
        return ConstantMethodVariable(self.value, name).call(tx, args, kwargs)

    def items(self, tx):
        if isinstance(self.value, (str, bytes, tuple, frozenset)):
            return [ConstantVariable(v) for v in self.value]
        tx.raise_user(TypeError(f"{name_of(type(self.value))!r} object is not iterable"))

    def iter(self, tx):
        from .container_iterators import ElementsVariable

        elements = self.items(tx)
        return ElementsVariable(elements, self, type(iter(self.value)))

    def getitem(self, tx, key):
        k = key.as_constant()
        try:
            return ConstantVariable(self.value[k])
        except (TypeError, IndexError, KeyError, ValueError) as e:
            tx.raise_user(e.with_traceback(None))

    def contains(self, tx, key):
        if has_nan(self.value) and has_nan(key.as_constant()):
            unsupported("identity", f"{key!r} in {self!r}", WHICH_NAN)
        try:
            return ConstantVariable(key.as_constant() in self.value)
        except TypeError as e:
            tx.raise_user(e)


def is_none(v: Variable | None) -> bool:
    """Whether an argument is None or was not given."""
    return v is None or (v.is_constant() and v.as_constant() is None)


class ConstantMethodVariable(Variable):
    """A bound method of a constant: folded."""

    def __init__(self, value, name):
        super().__init__()
        self.value, self.name = value, name

    def python_type(self):
        return types.BuiltinMethodType

    def call(self, tx, args, kwargs):
        if self.name == "join" and len(args) == 1 and not args[0].can_constant():
            from .iterators import fast_sequence

            args = [tx.make_list(fast_sequence(tx, args[0], "can only join an iterable"))]
        if any(a.is_symbol for a in [*args, *kwargs.values()]):
            from .symbolic import specialized

            args = [specialized(tx, a) for a in args]
            kwargs = {k: specialized(tx, v) for k, v in kwargs.items()}
        if not all(a.can_constant() for a in [*args, *kwargs.values()]):
            if self.name == "format" and isinstance(self.value, str):
                from .text import format_fields

                if (made := format_fields(tx, self.value, args, kwargs)) is not None:
                    return made
            unsupported("constant-method", f"call_method {name_of(type(self.value))}.{self.name} {args!r}")
        if has_nan(self.value) and any(has_nan(a.as_constant()) for a in args):
            unsupported("identity", f"{self.name} of {self.value!r}", WHICH_NAN)
        try:
            r = getattr(self.value, self.name)(
                *[a.as_constant() for a in args], **{k: v.as_constant() for k, v in kwargs.items()}
            )
        except Exception as e:  # the user's own mistake: happens again, for real, in the plain frame
            tx.raise_user(e)
        return tx.wrap_made(r)

    def reconstruct(self, cg):
        cg.load_const(self.value)
        cg.load_attr(self.name)
