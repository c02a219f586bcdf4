"""Sources: where a value came from, so that it can be guarded at the next call and reloaded in captured code.

A source is an access path; nobody changes one (frozen dataclasses would take three times as long to make). ``node()`` is its step in the guard
tree (parent source, access, key), ``load(cg)`` emits the bytecode that pushes the value, ``name`` is the path as text (``L['x']``, ``G['f']``,
``L['self']._modules['0']``).
"""

from __future__ import annotations

import builtins
from typing import Any

from flambeau.base.cached import cached_property

from ...base.records import slotted
from ..rules.reflect import instance_dict, name_of

__all__ = [
    "AttrSource",
    "CallSource",
    "CellSource",
    "ClosureCellSource",
    "ConstSource",
    "FuncSource",
    "GetAttrSource",
    "GlobalSource",
    "GlobalsSource",
    "InstanceDictSource",
    "ItemSource",
    "KeySource",
    "LocalSource",
    "Source",
    "TypeLookupSource",
    "TypeSource",
]


PLAIN = (str, int, float, complex, bool, bytes, type(None))


def key_text(key: Any) -> str:
    """A key of a dict for people. Other keys than constants by type and place: their own text may be long (a tensor's is its elements), and
    change while the key stays."""
    plain = type(key) in PLAIN or (type(key) is tuple and all(type(k) in PLAIN for k in key))
    return repr(key) if plain else f"<{name_of(type(key))} at {id(key):#x}>"


class Source:
    access: str
    base: Source | None = None  # what it is a part of
    guarded = True  # False: it is there only once captured code runs

    def node(self) -> tuple[Source | None, str, Any]:
        return self.base, self.access, self.key_value()

    def key_value(self):
        return None

    @cached_property
    def root(self) -> Source:
        """Where the path begins."""
        base = self.base
        return self if base is None else base.root

    def step(self):
        """Hashable key of the last step: equal for equal steps from one base."""
        key = self.key_value()
        try:
            hash(key)
        except TypeError:
            key = ("id", id(key))
        return self.access, type(key), key

    def load(self, cg) -> None:
        raise NotImplementedError(type(self).__name__)


@slotted(frozen=False, eq=False)
class LocalSource(Source):
    """An argument of the frame, by its place in the flat argument vector."""

    local: str
    index: int
    access = "arg"

    @cached_property
    def name(self):
        return f"L['{self.local}']"

    def key_value(self):
        return self.index

    def load(self, cg):
        cg.load_fast(self.local)


@slotted(frozen=False, eq=False)
class FuncSource(Source):
    """The function object itself (not reloadable: captured code has no name for it)."""

    access = "func"
    name = "F"


@slotted(frozen=False, eq=False)
class ConstSource(Source):
    """An object that the captured code holds on to."""

    value: Any
    label: str
    access = "const"

    @cached_property
    def name(self):
        return self.label

    def key_value(self):
        return self.value

    def step(self):
        return "const", id(self.value)

    def load(self, cg):
        cg.load_const(self.value)


@slotted(frozen=False, eq=False)
class GlobalsSource(Source):
    """The frame's own globals."""

    access = "globals"
    name = "G"

    def load(self, cg):
        cg.call_function(globals, None, 0)


class GlobalSource(Source):
    """A name that the frame looks up in its globals (and then in ``builtins``, when that is where it was found)."""

    access = "key"

    def __init__(self, global_name: str, builtin: bool = False):
        self.global_name = global_name
        self.base = ConstSource(builtins.__dict__, "builtins") if builtin else GlobalsSource()

    @cached_property
    def name(self):
        return f"G['{self.global_name}']"

    def key_value(self):
        return self.global_name

    def load(self, cg):
        cg.load_global(self.global_name)


@slotted(frozen=False, eq=False)
class ClosureCellSource(Source):
    """A cell of the frame's own closure."""

    index: int
    variable: str
    access = "closure_cell"

    @cached_property
    def name(self):
        return f"closure['{self.variable}']"

    def key_value(self):
        return self.index

    def load(self, cg):
        cg.load_closure(self.variable)


@slotted(frozen=False, eq=False)
class CellSource(Source):
    base: Source
    access = "cell"

    @cached_property
    def name(self):
        return f"{self.base.name}.cell_contents"

    def load(self, cg):
        cg.load_source(self.base)
        cg.load_attr("cell_contents")


@slotted(frozen=False, eq=False)
class AttrSource(Source):
    """An attribute found in the instance (no Python runs when it is read)."""

    base: Source
    attr: str
    access = "attr"

    @cached_property
    def name(self):
        return f"{self.base.name}.{self.attr}"

    def key_value(self):
        return self.attr

    def load(self, cg):
        cg.load_source(self.base)
        cg.load_attr(self.attr)


class GetAttrSource(AttrSource):
    """An attribute by the full protocol (slots, C-level descriptors)."""

    access = "getattr"


@slotted(frozen=False, eq=False)
class InstanceDictSource(Source):
    """The dict of an object's own attributes. ``hooked``: its class has a ``__getattribute__`` in Python, which must not run for it."""

    base: Source
    hooked: bool = False
    access = "instance_dict"

    @cached_property
    def name(self):
        return f"{self.base.name}.__dict__"

    def step(self):
        return "instance_dict", None, None

    def load(self, cg):
        if self.hooked:
            cg.call_function(instance_dict, lambda: cg.load_source(self.base), 1)
            return
        cg.load_source(self.base)
        cg.load_attr("__dict__")


@slotted(frozen=False, eq=False)
class ItemSource(Source):
    base: Source
    index: int
    access = "item"

    @cached_property
    def name(self):
        return f"{self.base.name}[{self.index}]"

    def key_value(self):
        return self.index

    def load(self, cg):
        cg.load_source(self.base)
        cg.load_const(self.index)
        cg.emit("BINARY_SUBSCR")


@slotted(frozen=False, eq=False)
class KeySource(Source):
    """A value of a dict. ``in_dict``: read with dict.__getitem__ (the class may override ``[]``)."""

    base: Source
    key: Any
    access = "key"

    @cached_property
    def name(self):
        if isinstance(self.base, InstanceDictSource) and isinstance(self.key, str):
            return f"{self.base.base.name}.{self.key}"
        return f"{self.base.name}[{key_text(self.key)}]"

    def key_value(self):
        return self.key

    def step(self):
        return ("key", str, self.key) if type(self.key) is str else super().step()

    def load(self, cg):
        cg.load_source(self.base)
        cg.load_const(self.key)
        cg.emit("BINARY_SUBSCR")


@slotted(frozen=False, eq=False)
class TypeSource(Source):
    base: Source
    access = "type"

    @cached_property
    def name(self):
        return f"type({self.base.name})"

    def load(self, cg):
        cg.call_function(type, lambda: cg.load_source(self.base), 1)


@slotted(frozen=False, eq=False)
class TypeLookupSource(Source):
    """What the type's method resolution order holds under a name, descriptors left alone."""

    base: Source
    attr: str
    access = "type_lookup"

    @cached_property
    def name(self):
        return f"{self.base.name}.__mro__['{self.attr}']"

    def key_value(self):
        return self.attr

    def load(self, cg):
        cg.load_source(self.base)
        cg.load_attr(self.attr)


@slotted(frozen=False, eq=False)
class CallSource(Source):
    """A pure function of another source's value."""

    base: Source
    fn: Any
    label: str
    access = "call"

    @cached_property
    def name(self):
        return f"{self.label}({self.base.name})"

    def key_value(self):
        return self.fn

    def load(self, cg):
        cg.call_function(self.fn, lambda: cg.load_source(self.base), 1)
