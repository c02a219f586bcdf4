"""Objects of classes derived from builtins: attributes and methods like any object's, and contents, which are a variable of the builtin type.

What the class defines itself is traced. A method that it inherits from the builtin works on the contents, past every override, as the
interpreter's own does; captured code writes them back the same way.
"""

from __future__ import annotations

import collections
import operator
from collections.abc import Callable
from typing import Any

from flambeau.base.installed import STDLIB

from ...exc import unsupported
from ...guards.source import CallSource, GetAttrSource, ItemSource, Source
from ...rules import trace_rules
from ...rules.reflect import ABSENT, flags_of, is_among, module_of, mro_of, name_of
from ...tracing import world
from ...tracing.current_frame import current
from ...tracing.wrapping import WRAPPERS, pin
from ..base import Lazy, Variable, contents_of, refuse_arguments
from ..containers.deques import DequeVariable
from ..containers.dicts import DictVariable
from ..containers.lists import ListVariable
from ..containers.sequences import TupleVariable, of_tuple
from ..containers.sets import SetVariable, elements_of
from ..containers.slices import SliceVariable
from ..iterators.protocol import all_of
from ..iterators.reversing import backwards
from ..values.constant import ConstantVariable
from .instance import ObjectVariable

__all__ = ["DerivedVariable", "builtin_base", "is_named_tuple", "new_derived", "of_object"]

VALUES = (int, float, complex, str, bytes)
SEQUENCES = (list, tuple, collections.deque)
MAPPINGS = (collections.OrderedDict, collections.defaultdict, dict)
SETS = (set, frozenset)
BASES = (*VALUES, *SEQUENCES, *MAPPINGS, *SETS)
HEAP_TYPE = 1 << 9  # among a type's flags: made by a class statement
NEW = {b.__new__: b for b in BASES}

# Methods that keep an argument: which.
TAKEN_UP = {"append": 0, "appendleft": 0, "get": 1, "insert": 1, "pop": 1, "setdefault": 1, "__setitem__": 1}
TAKES_KEYS = ("__setitem__", "add", "setdefault")

COMPARISONS = {f"__{n}__": getattr(operator, n) for n in ("eq", "ne", "lt", "le", "gt", "ge")}
OPERATIONS = {f"__{n}__": getattr(operator, n) for n in ("add", "mul")}
OPERATIONS |= {f"__{n}__": getattr(operator, f"{n}_") for n in ("or", "and")} | {
    "__sub__": operator.sub,
    "__xor__": operator.xor,
}
IN_PLACE = {f"__{n}__": getattr(operator, n) for n in ("iadd", "imul", "ior", "iand", "isub", "ixor")}


def builtin_base(cls: type) -> type | None:
    """The builtin that ``cls`` is derived from, if it is one whose contents are modelled, and by classes of Python alone (``np.float64`` isn't)."""
    if is_among(cls, BASES):
        return None
    base = next((c for c in mro_of(cls) if not flags_of(c) & HEAP_TYPE and c is not object), None)
    return base if base in BASES else None


def plain_list(x: list) -> list:
    return list.copy(x)


def plain_dict(x: dict) -> dict:
    return {k: dict.__getitem__(x, k) for k in dict.__iter__(x)}


def plain_set(x) -> list:
    """The elements in the order in which the object itself has them."""
    return list(set.__iter__(x) if isinstance(x, set) else frozenset.__iter__(x))


def plain_tuple(x: tuple) -> tuple:
    return tuple(tuple.__iter__(x))


def plain_deque(x: collections.deque) -> list:
    return list(collections.deque.__iter__(x))


PLAIN = {
    int: int.__int__, float: float.__float__, complex: complex.__complex__, str: str.__str__, bytes: bytes.__bytes__,
    list: plain_list, tuple: plain_tuple, collections.deque: plain_deque, set: plain_set, frozenset: plain_set,
}  # fmt: skip


def plain(base: type, value: Any) -> Any:
    return PLAIN.get(base, plain_dict)(value)


class DerivedVariable(ObjectVariable):
    """``base``: the builtin; ``contents``: the variable of what the object holds as one."""

    def __init__(self, value, cls: type, base: type, contents: Variable, source: Source | None = None):
        super().__init__(value, cls, source)
        self.base, self.contents = base, contents
        contents.holder = self
        self.overrides: bool | None = None

    def is_builtin(self, method) -> bool:
        """Whether a C method is one of the builtin that the class is derived from."""
        owner = getattr(method, "__objclass__", None)
        return owner is not None and owner is not object and issubclass(self.base, owner)

    def inherits(self, tx, name: str) -> bool:
        """Whether the method is the builtin's own."""
        return not world.is_defined(self.class_attr(tx, name))

    # -- as a value --
    def can_constant(self):
        """Whether operations on it are those of the builtin value."""
        if self.base not in VALUES:
            return False
        if self.overrides is None:
            self.overrides = any(world.is_defined(self.class_attr(current(), n)) for n in world.FOLDED)
        return not self.overrides

    def as_constant(self):
        if not self.can_constant():
            return super().as_constant()
        return self.contents.as_constant()

    def as_proxy(self):
        return self.contents.as_proxy()

    def distinct_from(self, other):
        return False

    def truth(self, tx):
        if self.base in VALUES and not world.is_defined(self.class_attr(tx, "__bool__")):
            if not world.is_defined(self.class_attr(tx, "__len__")):
                return bool(self.contents.as_constant())
        return super().truth(tx)

    def iter(self, tx):
        return self.contents.iter(tx) if self.inherits(tx, "__iter__") else super().iter(tx)

    def items(self, tx):
        return self.contents.items(tx) if self.inherits(tx, "__iter__") else super().items(tx)

    def contains(self, tx, key):
        if self.inherits(tx, "__contains__"):
            return self.contents.contains(tx, key)
        return super().contains(tx, key)

    # -- the builtin's methods --
    def builtin_method(self, tx, name: str, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        """What the builtin's method ``name`` does with this object."""
        refuse_arguments(tx, self.base, name, args, kwargs)
        args = [a.unwrap() if self.takes_up(name, i, args) else contents_of(a) for i, a in enumerate(args)]
        if name == "__init__":
            return self.init(tx, args, kwargs)
        if self.base in VALUES:
            return self.value_method(tx, name, args, kwargs)
        return self.container_method(tx, name, args, kwargs)

    def as_builtin(self):
        return self.contents

    def takes_up(self, name: str, i: int, args: list[Variable]) -> bool:
        """Whether the method stores its ``i``-th argument, or may return it: as the object that it is."""
        if name == "__setitem__" and isinstance(args[0].unwrap(), SliceVariable):
            return False
        return i == TAKEN_UP.get(name) or (i == 0 and name in TAKES_KEYS and self.base in (*MAPPINGS, *SETS))

    def value_method(self, tx, name, args, kwargs):
        if not all(a.can_constant() for a in [*args, *kwargs.values()]):
            return ConstantVariable(NotImplemented)  # of a number and something else
        return tx.operators.fold(tx, getattr(self.base, name), [self.contents, *args], kwargs)

    def container_method(self, tx, name, args, kwargs):
        c = self.contents
        if name == "__getitem__" and isinstance(c, DictVariable):
            return self.dict_item(tx, args[0])
        if name in COMPARISONS or name in OPERATIONS:
            if name in COMPARISONS and not comparable(c, args[0]):
                return ConstantVariable(NotImplemented)
            if name in OPERATIONS and isinstance(c, SetVariable):
                unsupported("set-method", f"{name} of a {name_of(self.cls)}", "The result is of the same class.")
            return tx.operators.binary(tx, {**COMPARISONS, **OPERATIONS}[name], c, args[0])
        if name in IN_PLACE:
            tx.operators.binary(tx, IN_PLACE[name], c, args[0])
            return self
        if name == "__rmul__":
            return tx.operators.binary(tx, operator.mul, c, args[0])
        if name == "__iter__":
            return c.iter(tx)
        if name == "__reversed__":
            return backwards(tx, c)
        if name == "__len__":
            return ConstantVariable(c.length(tx))
        if name == "__contains__":
            return c.contains(tx, args[0])
        if name == "__getitem__":
            return c.getitem(tx, args[0])
        if name == "__setitem__":
            c.setitem(tx, *args)
            return ConstantVariable(None)
        if name == "__delitem__":
            c.delitem(tx, args[0])
            return ConstantVariable(None)
        if name == "copy" and self.base not in (dict, list):
            unsupported("builtin-subclass", f"{self.base.__name__}.copy of a {name_of(self.cls)}")
        if isinstance(c, SetVariable) and name in ("union", "intersection", "difference", "symmetric_difference"):
            unsupported("set-method", f"{name} of a {name_of(self.cls)}", "The result is of the same class.")
        return c.call_method(tx, name, args, kwargs)

    def dict_item(self, tx, key):
        found = self.contents.get_key(tx, self.contents._key(key))
        if found is not None:
            return found
        if world.is_defined(self.class_attr(tx, "__missing__")):
            return self.call_special(tx, "__missing__", key)
        return self.contents.getitem(tx, key)  # a default, or the error

    def init(self, tx, args, kwargs):
        if self.base in (*VALUES, tuple, frozenset):
            return ConstantVariable(None)
        refuse_arguments(tx, self.base, "__init__", args, kwargs)
        fill(tx, self.contents, self.base, args, kwargs)
        return ConstantVariable(None)

    # -- captured code --
    def reconstruct(self, cg):
        if self.value is not None:
            cg.load_const(self.value)
            return
        immutable = self.base in (*VALUES, tuple, frozenset)

        def push():
            cg.load_const(self.cls)
            if immutable:
                self.push_contents(cg)

        cg.call_function(self.base.__new__, push, 1 + immutable)
        t = cg.temps[id(self)] = cg.temp()
        cg.emit("STORE_FAST", t)
        if not immutable:
            if getattr(self.contents, "maxlen", None) is not None:
                unsupported("deque", f"a {name_of(self.cls)} with maxlen is made")

            def both():
                cg.emit("LOAD_FAST", t)
                self.push_contents(cg)

            cg.call_function(REPLACE[self.base], both, 2)
            cg.emit("POP_TOP")
        self.push_attributes(cg, t)
        cg.emit("LOAD_FAST", t)

    def write_back(self, cg, keep: Callable[[Callable], str]) -> tuple[Callable, str]:
        """What writes the changed contents to the object that existed before, and where the new ones are kept."""
        c = self.contents
        if isinstance(c, DictVariable) and not c.dirty:

            def push():
                for k in c.written:
                    cg.all(c.entries[k])
                cg.emit("BUILD_MAP", len(c.written))

            return set_items, keep(push)
        return REPLACE[self.base], keep(lambda: self.push_contents(cg))

    def push_contents(self, cg) -> None:
        """Push the contents as a plain builtin."""
        c = self.contents.unwrap()
        if isinstance(c, DictVariable):
            c._push_plain(cg)
        elif isinstance(c, SetVariable):
            cg.all(c.entries.values())
            cg.emit("BUILD_LIST", len(c.entries))
        elif isinstance(c, ListVariable | TupleVariable):
            cg.all(c.realized())
            cg.emit("BUILD_LIST", len(c.elements))
        else:
            cg.load_const(c.as_constant())

    def replay_contents(self, replay) -> None:
        """The contents, which were written to, past the methods of the class."""
        target = replay.target(self)
        write, new = self.write_back(replay.cg, replay.keep)
        replay.later(lambda r: r.call(write, [target, new], []))


def replace_list(x, new) -> None:
    list.__setitem__(x, slice(None), new)


def replace_deque(x, new) -> None:
    collections.deque.clear(x)
    collections.deque.extend(x, new)


def replace_set(x, new) -> None:
    set.clear(x)
    set.update(x, new)


def set_items(x, new) -> None:
    base = collections.OrderedDict if isinstance(x, collections.OrderedDict) else dict
    for k, v in new.items():
        base.__setitem__(x, k, v)


def replace_dict(x, new) -> None:
    (collections.OrderedDict if isinstance(x, collections.OrderedDict) else dict).clear(x)
    set_items(x, new)


# What writes the contents of an object, past the overrides of its class.
REPLACE = {
    list: replace_list,
    collections.deque: replace_deque,
    set: replace_set,
    **dict.fromkeys(MAPPINGS, replace_dict),
}


def comparable(a: Variable, b: Variable) -> bool:
    kinds = (DictVariable, SetVariable, DequeVariable, TupleVariable, ListVariable)
    return any(isinstance(a, k) and isinstance(b, k) for k in kinds)


def fill(tx, contents: Variable, base: type, args, kwargs) -> None:
    if isinstance(contents, DictVariable):
        if base is collections.defaultdict and args:
            first, *args = args
            contents.factory = None if first.is_constant() else first
        contents.call_method(tx, "update", args, kwargs)
    elif isinstance(contents, SetVariable):
        contents.call_method(tx, "clear", [], {})
        contents.call_method(tx, "update", args, {})
    else:
        if len(args) > 1 or kwargs:
            unsupported("deque", "a deque with maxlen")
        if contents.length(tx):
            contents.call_method(tx, "clear", [], {})
        for a in args:
            contents.call_method(tx, "extend", [a], {})


def empty(base: type) -> Variable:
    if base in MAPPINGS:
        return DictVariable(cls=base)
    return {list: ListVariable, collections.deque: DequeVariable, set: SetVariable}[base]([])


def new_derived(tx, base: type, cls: type, args: list[Variable], kwargs: dict[str, Variable]) -> DerivedVariable:
    """``base.__new__(cls, *args)``."""
    if base in VALUES:
        contents = tx.operators.fold(tx, base, [contents_of(a) for a in args], kwargs)
    elif base is tuple:
        elements = all_of(tx, args[0]) if args else []
        if is_named_tuple(tx, cls):
            return TupleVariable(elements, cls=cls)
        contents = TupleVariable(elements)
    elif base is frozenset:
        contents = SetVariable(elements_of(tx, args[0]) if args else [], cls=frozenset)
    else:
        contents = empty(base)
    return DerivedVariable(None, cls, base, contents)


def is_named_tuple(tx, cls: type) -> bool:
    """Whether objects of a class derived from tuple are a named tuple's elements and nothing else: it has no ``__dict__``, and the methods that
    capture knows by heart are those that ``collections.namedtuple`` writes."""
    if (
        not is_generated_new(world.class_attr(tx, cls, "__new__"))
        or world.class_attr(tx, cls, "__dict__") is not ABSENT
    ):
        return False
    found = (world.class_attr(tx, cls, n) for n in OF_TUPLES)
    return all(
        not world.is_defined(f) or (world.is_python(f) and f.__code__.co_filename.startswith(STDLIB)) for f in found
    )


OF_TUPLES = ("__init__", "__getattribute__", "__getattr__", "__reversed__", "__rmul__", *world.FOLDED)


def is_generated_new(new) -> bool:
    """Whether this is the ``__new__`` that ``collections.namedtuple`` writes, which makes the tuple of its arguments."""
    return type(new) is staticmethod and getattr(new.__func__, "__globals__", {}).get("_tuple_new") is tuple.__new__


def of_object(tx, value, base: type, source: Source) -> DerivedVariable:
    """The variable of an object that existed before the call; its class is guarded by the caller."""
    cls = type(value)
    out = DerivedVariable(value, cls, base, ConstantVariable(None), source)
    if base in VALUES:
        inside = tx.wrap(plain(base, value), CallSource(source, PLAIN[base], base.__name__))
        out.contents = tx.realize(inside)
        return out
    # Elements are found in the object itself while its class leaves looking them up to the builtin.
    direct = (
        out.inherits(tx, "__getitem__")
        and out.inherits(tx, "__len__")
        and base not in SETS
        and base is not collections.deque
    )
    read = source if direct else CallSource(source, PLAIN.get(base, plain_dict), f"plain_{base.__name__}")
    held = value if direct else plain(base, value)
    out.contents = contents_at(tx, held, base, read, value)
    out.contents.holder = out
    return out


def contents_at(tx, held, base: type, read: Source, value) -> Variable:
    if base in MAPPINGS:
        factory = None
        if base is collections.defaultdict:
            factory = tx.wrap(value.default_factory, GetAttrSource(read, "default_factory"))
            factory = None if factory.is_constant() else factory
        return DictVariable(source=read, cls=base, base=held, factory=factory)
    if base in SETS:
        tx.output.guard(read, "LENGTH", len(held))
        elements = [tx.wrap(v, ItemSource(read, i)) for i, v in enumerate(held)]
        return SetVariable(elements, read, cls=base, order=held)
    tx.output.guard(read, "LENGTH", len(held))
    elements = [Lazy(v, ItemSource(read, i)) for i, v in enumerate(plain(base, value))]
    if base is tuple:
        return TupleVariable(elements, read)
    if base is collections.deque and value.maxlen is not None:
        unsupported("deque", "an object derived from deque, with maxlen")
    return (DequeVariable if base is collections.deque else ListVariable)(elements, read, cls=base)


@WRAPPERS.row("named tuple")
def _(tx, value, source):
    cls = type(value)
    if not trace_rules.is_a(value, tuple):
        return None
    return (
        of_tuple(tx, value, source) if f"{module_of(cls)}.".startswith("flambeau.") or is_named_tuple(tx, cls) else None
    )


@WRAPPERS.row("text of the library")
def _(tx, value, source):
    cls = type(value)
    if not issubclass(cls, str) or not str(module_of(cls)).startswith("flambeau."):
        return None
    pin(tx, source, "ID_MATCH", value)
    return of_object(tx, value, str, source)


@WRAPPERS.row("derived from a builtin")
def _(tx, value, source):
    base = builtin_base(type(value))
    if base is None:
        return None
    pin(tx, source, "TYPE_MATCH", type(value))
    return of_object(tx, value, base, source)
