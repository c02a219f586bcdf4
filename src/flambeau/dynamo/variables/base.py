"""The protocol of variables, and the two that stand for no ordinary value."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from flambeau.base.shapes import Size

from ..bytecode.versions import PY314
from ..exc import Unsupported, UserRaises, unsupported
from ..rules.c_arguments import refusal
from ..rules.reflect import ABSENT, by_identity, error_name_of, has_item, is_a, type_item

__all__ = [
    "HeldVariable",
    "KnownVariable",
    "Lazy",
    "MethodOf",
    "NullVariable",
    "Variable",
    "contents_of",
    "hashable_key",
    "method_of",
    "never_called",
    "refuse_arguments",
    "refuse_unhashable",
]

_serial = itertools.count()


class Variable:
    """``source`` is set when the value existed before the call; ``mutable`` marks values that can be written to."""

    mutable = False
    is_symbol = False  # a number that varies: its value is known when it is asked for, and is a constant from then on
    is_tensor = False  # a node of the graph, or a tensor subclass
    is_container = False  # one of the interpreter's own, whose methods are C
    calls_user = False  # calling it runs a user's code in a way of its own
    holder: Variable | None = None  # of the contents of an object: that object

    def __init__(self, source=None):
        self.source = source
        self.born = next(_serial)

    # -- facts --
    def python_type(self) -> type:
        unsupported("type-unknown", "the type of a value is not known while tracing")

    def python_type_name(self) -> str:
        """As errors tell it: what holds builtin contents is told by its own class."""
        return error_name_of((self.holder or self).python_type())

    def is_constant(self) -> bool:
        return False

    def as_constant(self) -> Any:
        """The value itself, when it is known while tracing."""
        unsupported("not-constant", f"{self!r} is not a constant while tracing")

    def can_constant(self) -> bool:
        """Whether :meth:`as_constant` works (containers of constants too)."""
        return self.is_constant()

    def real_value(self, tx) -> Any:
        """The value at the call that is captured: what depends on tensors is computed for it, unguarded."""
        return self.as_constant()

    def is_key(self) -> bool:
        """Whether the value itself serves as a key, though its class defines what equality is."""
        return False

    def is_made_object(self) -> bool:
        """Whether it is an object of a class that was made while tracing, and so no other one."""
        return False

    def unwrap(self) -> Variable:
        return self

    def as_builtin(self) -> Variable:
        """What the interpreter's own functions see: the contents of an object of a class derived from a builtin one."""
        return self

    # -- graph and captured code --
    def as_proxy(self) -> Any:
        """As an argument of an fx node."""
        if self.can_constant():
            return self.as_constant()
        unsupported("not-proxyable", f"{self!r} cannot be an argument of an operation in the graph")

    def reloadable(self) -> bool:
        """Whether captured code gets the value by loading the source again."""
        return self.source is not None

    def reconstruct(self, cg) -> None:
        unsupported("not-reconstructible", f"{self!r} cannot be rebuilt outside the graph")

    def replay(self, replay) -> None:
        """What captured code writes to the object that existed before, by a :class:`~.tracing.replay.Replay`; nothing, where no writes are kept."""

    # -- operations --
    def getattr(self, tx, name: str) -> Variable:
        unsupported("getattr", f"reading {name} of {self!r}", "Attributes of this kind of value are not traced.")

    def hasattr(self, tx, name: str) -> bool:
        unsupported("hasattr", f"asking whether {self!r} has {name}")

    def setattr(self, tx, name: str, value: Variable) -> None:
        unsupported("setattr", f"setting {name} of {self!r}", "Writing attributes of this kind of value is not traced.")

    def delattr(self, tx, name: str) -> None:
        unsupported(
            "delattr", f"deleting {name} of {self!r}", "Attributes of this kind of value are not deleted while tracing."
        )

    def call(self, tx, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        if never_called(self):
            tx.raise_user(TypeError(f"{self.python_type_name()!r} object is not callable"))
        unsupported("call", f"calling {self!r}", "This kind of value cannot be called while tracing.")

    def call_method(self, tx, name: str, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        found = self.getattr(tx, name)
        # Its call would be this one again.
        if type(found) is MethodOf and found.owner is self:
            unsupported("method", f"calling {name} of {self!r}", "It is implemented in C.")
        return found.call(tx, args, kwargs)

    def lacks(self, name: str) -> bool:
        """Whether it is certainly of a class without the special method ``name``."""
        return (self.is_container or self.is_constant()) and type_item(self.python_type(), name) is ABSENT

    def items(self, tx) -> list[Variable]:
        """The elements of a container, all of them. An iterator has none to show: its elements are taken, one by one."""
        unsupported("iterate", f"iterating over {self!r} is not traced")

    def iter(self, tx) -> Variable:
        """``iter()`` of the value."""
        return tx.make_iterator(self.items(tx))

    def pull(self, tx) -> Variable | None:
        """What ``__next__`` gives. At the end it is None, or StopIteration is raised."""
        if type_item(self.python_type(), "__next__") is not ABSENT:
            unsupported("iterate", f"taking an element of {self!r} is not traced")
        tx.raise_user(TypeError(f"{self.python_type_name()!r} object is not an iterator"))

    def next(self, tx) -> Variable | None:
        """The next element of an iterator; None at its end."""
        try:
            return self.pull(tx)
        except UserRaises as e:
            if isinstance(e.exception, StopIteration):
                return None
            raise

    def expected_length(self, tx) -> None:
        """Ask how many elements it may have, as the interpreter does before it takes all of them."""

    def rewritten(self) -> bool:
        """Whether captured code changes which elements it has, as a container that existed before."""
        return False

    def length(self, tx) -> int:
        return len(self.items(tx))

    def getitem(self, tx, key: Variable) -> Variable:
        if self.lacks("__getitem__") and not issubclass(self.python_type(), type):
            tx.raise_user(TypeError(f"{self.python_type_name()!r} object is not subscriptable"))
        unsupported("getitem", f"{self!r}[...] is not traced")

    def setitem(self, tx, key: Variable, value: Variable) -> None:
        if self.lacks("__setitem__"):
            tx.raise_user(TypeError(f"{self.python_type_name()!r} object does not support item assignment"))
        unsupported("setitem", f"item assignment to {self!r} is not traced")

    def delitem(self, tx, key: Variable) -> None:
        if self.lacks("__delitem__"):
            place = type_item(self.python_type(), "__len__") is not ABSENT and has_item(key.python_type(), "__index__")
            said = "doesn't" if place else "does not"
            tx.raise_user(TypeError(f"{self.python_type_name()!r} object {said} support item deletion"))
        unsupported("delitem", f"item deletion from {self!r} is not traced")

    def contains(self, tx, key: Variable) -> Variable:
        return tx.operators.found_among(tx, self, key)

    def distinct_from(self, other: Variable) -> bool:
        """Whether equality with ``other`` is certainly False."""
        return False

    def truth(self, tx) -> bool | None:
        """bool(value), or None when it depends on tensor data."""
        return None

    def __repr__(self):
        """In the words of the program, as reasons of graph breaks say them: "a list", "a Linear"."""
        try:
            name = self.python_type_name()
        except Unsupported:
            return "a value"
        return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"


def contents_of(v: Variable) -> Variable:
    """What the interpreter's own functions see of an object of a derived class."""
    return v.unwrap().as_builtin()


class HeldVariable(Variable):
    """A Python object as it is: captured code loads the object itself."""

    def __init__(self, value, source=None):
        super().__init__(source)
        self.value = value

    def python_type(self):
        return type(self.value)

    def reconstruct(self, cg):
        cg.load_const(self.value)


class KnownVariable(HeldVariable):
    """An object that is as good as a constant, in graphs too: a function or a class, unless the truth of the value is asked otherwise."""

    def can_constant(self):
        return True

    def as_constant(self):
        return self.value

    def truth(self, tx):
        return True


class Lazy(Variable):
    """A value with a source that nothing has looked at yet: no guard, no graph input, until :meth:`real`."""

    def __init__(self, value, source):
        super().__init__(source)
        self.value = value
        self.done: Variable | None = None

    def real(self, tx) -> Variable:
        if self.done is None:
            self.done = tx.wrap(self.value, self.source)
        return self.done

    def real_value(self, tx):
        return self.real(tx).real_value(tx)

    def unwrap(self):
        return self if self.done is None else self.done

    def python_type(self):
        return type(self.value)

    def __repr__(self):
        return super().__repr__() if self.done is None else repr(self.done)


def method_of(tx, v: Variable, name: str) -> Variable:
    """A method that the value's class, a builtin one, has, or None in its place; AttributeError when it has no attribute of the name."""
    cls = v.python_type()
    if not has_item(cls, name):
        tx.raise_user(AttributeError(f"{v.python_type_name()!r} object has no attribute {name!r}"))
    found = getattr(cls, name)
    # What has no hash has None there.
    if found is None:
        return tx.wrap_known(None)
    if not callable(found):
        unsupported(
            "attribute", f"reading {name} of {v!r}", "It is no method, and may tell of a state that is not known there."
        )
    return MethodOf(v, name)


def refuse_arguments(tx, cls: type, name: str, args: list[Variable], kwargs: dict[str, Variable]) -> None:
    """Raise what a method of a builtin container says when it is called with too few or too many arguments, or with other keywords."""
    text = refusal(cls, name, len(args), tuple(kwargs)) if by_identity(cls) else None
    if text is not None:
        tx.raise_user(TypeError(text))


def never_called(v: Variable) -> bool:
    """Whether it is certainly not callable: a constant or a container."""
    return v.unwrap().is_container or (v.is_constant() and not callable(v.as_constant()))


class MethodOf(Variable):
    """A bound method: captured code reads it from its owner. Calls are the owner's, unless a kind of method has its own."""

    def __init__(self, owner, name):
        super().__init__()
        self.owner, self.name = owner, name

    def call(self, tx, args, kwargs):
        if self.owner.is_container:
            refuse_arguments(tx, self.owner.python_type(), self.name, args, kwargs)
        return self.owner.call_method(tx, self.name, args, kwargs)

    def reconstruct(self, cg):
        cg(self.owner)
        cg.load_attr(self.name)


class NullVariable(Variable):
    """The NULL that CPython puts on the stack below callables."""

    def reconstruct(self, cg):
        cg.emit("PUSH_NULL")


WHICH_NAN = "Containers look for the same NaN first; which object it is, is not known while tracing."


def has_nan(value) -> bool:
    """Whether the value of a constant is a NaN or holds one."""
    t = type(value)
    if type(t) is type and t in (tuple, list, set, frozenset):
        return any(map(has_nan, value))
    if t is dict:
        return has_nan([*value, *value.values()])
    return (t is float or t is complex or is_a(value, np.inexact)) and bool(value != value)


def hashable_key(v: Variable):
    """Dict key of a variable: its constant value, or an identity for functions, modules, classes."""
    if hasattr(v, "key_object"):
        return v.key_object()
    if v.can_constant():
        k = v.as_constant()
        if is_a(k, type) and not by_identity(k):
            unsupported("unhashable", f"a key {v!r}", "Its metaclass says how it is hashed and compared.")
        try:
            hash(k)
        except TypeError as e:
            refuse_key(v, e)
        if has_nan(k):
            unsupported("identity", f"{v!r} as a key", WHICH_NAN)
        return k
    elements = getattr(v, "elements", None)
    if elements and v.python_type() in (tuple, Size):
        parts = [e.unwrap() for e in elements]
        other = next((p for p in parts if not (p.can_constant() or p.is_symbol)), None)
        # Numbers that vary are among them.
        if other is None:
            return tuple(map(hashable_key, parts))
        refuse_unhashable(other)
    if getattr(getattr(v, "cls", None), "__hash__", None) is object.__hash__ and v.is_made_object():
        return v
    k = getattr(v, "value", None)
    if k is not None and v.source is not None and (by_identity(k) or v.is_key()):
        return k
    refuse_unhashable(v)
    unsupported("dict-key", f"{v!r} as a dict key is not traced")


def refuse_unhashable(v: Variable) -> None:
    if v.is_container and type_item(v.python_type(), "__hash__") is None:
        refuse_key(v, TypeError(f"unhashable type: {v.python_type_name()!r}"))


def refuse_key(v: Variable, e: TypeError) -> None:
    """It can't be a key. Since 3.14 the error also says what it was to be a key of, which is not known here."""
    if PY314:
        unsupported("unhashable", f"unhashable key {v!r}")
    raise UserRaises(e.with_traceback(None))
