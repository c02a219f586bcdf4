"""Class statements in captured code, and ``type()`` with three arguments.

The body is traced into a namespace of variables. Beside it stands a *stand-in*, a real class of the same name, bases and shape, which is what the
interpreter's own lookups (MRO, ``isinstance``, slots, abstract methods) are asked of: what it holds under a name is a real function, descriptor
or constant where the interpreter looks at it, else a :class:`Held`, and each stands for its variable (``OutputGraph.stood_for``). Captured code makes
the class anew at each call, from the namespace as the program left it, when the class or something of it leaves; the stand-in never does.

Captured, in frames without a graph break, are classes whose metaclass is ``type`` or ``ABCMeta`` and which run no code of a program's when they are
made: no ``__init_subclass__``, no ``__set_name__``, no keywords. All others break the graph in front of the statement; so do all in a frame that
breaks behind them, which is traced again (``OutputGraph.whole``). What is captured behind such a break is for that call's class alone, and dropped
with the call (``Cache.once``); beyond the limit of recompilations it runs plainly.
"""

from __future__ import annotations

import abc
import builtins
import contextlib
import functools
import types
from typing import Any

from ...exc import unsupported
from ...graph import tensor_queries
from ...rules.constants import is_constant_value
from ...rules.reflect import mro_of, name_of
from ...tracing import world
from ..base import MethodOf, Variable
from ..containers.sequences import SequenceVariable, TupleVariable
from ..functions.cells import CellVariable
from ..functions.handlers import handles
from ..functions.nested_functions import NestedFunctionVariable
from ..functions.python_functions import FunctionVariable
from ..values.constant import ConstantVariable
from .class_object import ClassVariable, is_plain

__all__ = ["Held", "MadeClassVariable", "MadeDescriptorVariable", "of_type"]

METACLASSES = (type, abc.ABCMeta)
DESCRIPTORS = (staticmethod, classmethod, property)
PARTS = {staticmethod: ("__func__",), classmethod: ("__func__",), property: ("fget", "fset", "fdel")}
SETTERS = ("getter", "setter", "deleter")
READ_BY_TYPE = ("__module__", "__qualname__", "__doc__", "__slots__", "__classcell__", "__hash__", "__match_args__")


class Held:
    """What a stand-in has in the place of a value that captured code makes."""


def refuse(name: str, why: str):
    unsupported("class-statement", f"class {name}", why)


class MadeDescriptorVariable(Variable):
    """A ``staticmethod``, ``classmethod`` or ``property`` made while tracing."""

    def __init__(self, cls: type, parts: list[Variable | None], doc: Variable | None = None):
        super().__init__()
        self.cls, self.parts, self.doc = cls, parts, doc

    def python_type(self):
        return self.cls

    def part(self, name: str) -> Variable | None:
        return self.parts[PARTS[self.cls].index(name)]

    def getattr(self, tx, name):
        if name in PARTS[self.cls]:
            return self.part(name) or ConstantVariable(None)
        if name == "__wrapped__" and self.cls is not property:
            return self.parts[0]
        if name in SETTERS and self.cls is property:
            return MethodOf(self, name)
        return super().getattr(tx, name)

    def call_method(self, tx, name, args, kwargs):
        if self.cls is property and name in SETTERS and len(args) == 1 and not kwargs:
            parts = [*self.parts]
            parts[SETTERS.index(name)] = args[0].unwrap()
            return MadeDescriptorVariable(property, parts, self.doc)
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg):
        def push():
            for p in self.parts:
                cg(p or ConstantVariable(None))
            if self.doc is not None:
                cg(self.doc)

        cg.call_function(self.cls, push, len(self.parts) + (self.doc is not None))


def _of_function(cls):
    def handler(tx, args, kwargs):
        if len(args) == 1 and not kwargs and isinstance(args[0].unwrap(), FunctionVariable):
            return MadeDescriptorVariable(cls, [args[0].unwrap()])
        return None

    return handler


for _cls in (staticmethod, classmethod):
    handles(_cls)(_of_function(_cls))


@handles(abc.abstractmethod)
def _(tx, args, kwargs):
    f = args[0].unwrap()
    if len(args) != 1 or kwargs or not isinstance(f, NestedFunctionVariable):
        return None
    f.setattr(tx, "__isabstractmethod__", ConstantVariable(True))
    return f


@handles(property)
def _(tx, args, kwargs):
    names = ("fget", "fset", "fdel", "doc")
    given = dict(zip(names, (a.unwrap() for a in args))) | {k: v.unwrap() for k, v in kwargs.items()}
    given = {k: v for k, v in given.items() if not (v.is_constant() and v.as_constant() is None)}
    doc = given.pop("doc", None)
    if not all(isinstance(v, FunctionVariable) for v in given.values()):
        return None
    return MadeDescriptorVariable(property, [given.get(n) for n in names[:3]], doc)


class MadeClassVariable(ClassVariable):
    """A class made while tracing. ``value``: its stand-in."""

    mutable = True

    def __init__(self, value: type, bases: list[Variable], namespace: dict[str, Variable], cell: CellVariable | None):
        super().__init__(value)
        self.bases, self.namespace, self.cell = bases, namespace, cell

    def setattr(self, tx, name, value):
        self.write(tx, name, value.unwrap())

    def delattr(self, tx, name):
        if name not in self.namespace:
            tx.raise_user(AttributeError(f"type object {name_of(self.value)!r} has no attribute {name!r}"))
        self.write(tx, name, None)

    def write(self, tx, name: str, value: Variable | None) -> None:
        """Attributes that only lookups know: none that the interpreter keeps in the class itself."""
        if name.startswith("__") and name.endswith("__"):
            unsupported("class-setattr", f"setting {name} of {self!r}", "A class is changed while tracing.")
        if value is None:
            delattr(self.value, name)
            del self.namespace[name]
        else:
            setattr(self.value, name, stand_in(tx, name_of(self.value), name, value))
            self.namespace[name] = value
        tx.side_effects.touch(self)

    def of_interpreter(self, tx, name, source):
        """As it is of the stand-in, which no guard needs."""
        try:
            found = getattr(self.value, name)
        except AttributeError as e:
            tx.raise_user(e)
        if type(found) is tuple:
            return tx.make_tuple([tx.wrap_known(v) for v in found])
        if is_constant_value(found) or isinstance(found, type) or id(found) in tx.output.objects.stood_for:
            return tx.wrap_known(found)
        unsupported("class-statement", f"{name} of {self!r}", "The class is made while tracing.")

    def own_dict(self, tx):
        unsupported("class-dict", f"__dict__ of {self!r}", "The class is made while tracing.")

    def reconstruct(self, cg):
        cls = self.value
        if self.cell is not None:
            # Methods have it, and it is the class's to fill.
            cg.call_function(types.CellType, None, 0)
            cell = cg.temps[id(self.cell)] = cg.temp()
            cg.emit("STORE_FAST", cell)

        def push():
            cg.load_const(name_of(cls))
            cg.all(self.bases)
            cg.emit("BUILD_TUPLE", len(self.bases))
            n = 0
            for k, v in self.namespace.items():
                cg.load_const(k)
                self.push_member(cg, v)
                n += 1
            if self.cell is not None:
                cg.load_const("__classcell__")
                cg.emit("LOAD_FAST", cell)
                n += 1
            cg.emit("BUILD_MAP", n)

        cg.call_function(type(cls), push, 3)

    def push_member(self, cg, v: Variable) -> None:
        if not (isinstance(v, NestedFunctionVariable) and v.kept_by is not None and v.kept_by[0] is self):
            cg(v)
        elif id(v) in cg.temps:
            cg.emit("LOAD_FAST", cg.temps[id(v)])
        else:
            v.make(cg)
            t = cg.temps[id(v)] = cg.temp()
            cg.emit("COPY", 1)
            cg.emit("STORE_FAST", t)


class Ended:
    """The base of stand-ins that are no longer needed: a program's class doesn't list them among its subclasses."""


def let_go(cls: type) -> None:
    """The trace of a stand-in has ended; captured code and guards don't hold it."""
    if cls.__bases__ != (object,):
        with contextlib.suppress(TypeError):  # another layout: it goes with the next collection
            cls.__bases__ = (Ended,)


def stand_in(tx, of: str, name: str, v: Variable) -> Any:
    """What the stand-in holds under ``name`` for the variable."""
    v = v.unwrap()
    if isinstance(v, FunctionVariable):
        return stand_in_function(tx, v)
    if isinstance(v, MadeDescriptorVariable):
        found = v.cls(*(p if p is None else stand_in_function(tx, p) for p in v.parts))
        tx.output.objects.stood_for[id(found)] = v
        tx.output.objects.keep.append(found)
        return found
    if name == "__slots__" and isinstance(v, SequenceVariable) and all(e.unwrap().is_constant() for e in v.realized()):
        return [e.as_constant() for e in v.realized()]
    if v.is_constant() or isinstance(v, TupleVariable) and v.can_constant():
        return v.as_constant()
    if isinstance(v, ClassVariable):
        return v.value
    if not is_plain(tx, v.python_type()):
        refuse(of, f"{name} is a descriptor, {v!r}.")
    if name.startswith("__") and name.endswith("__") and name != "__annotations__":
        refuse(of, f"{name} is {v!r}.")
    held = Held()
    tx.output.objects.stood_for[id(held)] = v
    tx.output.objects.keep.append(held)
    return held


def stand_in_function(tx, v: FunctionVariable) -> types.FunctionType:
    cells = tuple(types.CellType() for _ in v.code.co_freevars)
    f = types.FunctionType(v.code, v.globals, v.names()[0], None, cells or None)
    f.__qualname__ = v.names()[1]
    if isinstance(v, NestedFunctionVariable):
        for k, a in v.attributes.items():
            if a.is_constant():
                setattr(f, k, a.as_constant())
    tx.output.objects.stood_for[id(f)] = v
    tx.output.objects.keep.append(f)
    return f


def make_class(tx, meta: type | None, name: str, bases: list[Variable], namespace: dict[str, Variable]) -> Variable:
    """The class, with the checks of what has to be settled for it."""
    if not tx.output.whole:
        refuse(name, "Behind a graph break its objects and it would have to be made in the program's order.")
    values = []
    for b in bases:
        v = b.unwrap()
        if not (v.can_constant() and isinstance(v.as_constant(), type)):
            refuse(name, f"A base is {v!r}.")
        values.append(v.as_constant())
    for b in values:
        if type(b) not in METACLASSES:
            refuse(name, f"The metaclass of {name_of(b)} is {name_of(type(b))}.")
        if issubclass(b, tensor_queries.Tensor):
            refuse(name, "It is a class of tensors.")
        if world.class_attr(tx, b, "__init_subclass__") is not object.__dict__["__init_subclass__"]:
            refuse(name, f"{name_of(b)} has an __init_subclass__.")
    meta = next((m for m in METACLASSES[::-1] if any(type(b) is m for b in values) or meta is m), type)
    cell = namespace.pop("__classcell__", None)
    if "__classdictcell__" in namespace or "__type_params__" in namespace:
        refuse(name, "It has type parameters.")
    real: dict[str, Any] = {k: stand_in(tx, name, k, v) for k, v in namespace.items()}
    for k in READ_BY_TYPE:
        if k in real and isinstance(real[k], Held):
            refuse(name, f"{k} is known only at the call.")
    if "__del__" in real:
        refuse(name, "It has __del__.")
    try:
        cls = meta(name, tuple(values) or (object,), real)
    except (TypeError, ValueError) as e:
        tx.raise_user(e)
    made = tx.output.objects.made_classes
    behind = [c for c in mro_of(cls)[1:] if id(c) not in made]
    if list(mro_of(cls)[-len(behind) :]) != behind or list(mro_of(behind[0])) != behind:
        refuse(name, "Its bases meet in more than one line.")
    plain = tx.wrap_known(cls)
    if type(plain) is not ClassVariable:
        refuse(name, f"It is {plain!r}.")
    v = MadeClassVariable(cls, [b.unwrap() for b in bases], namespace, cell)
    made[id(cls)] = tx.output.objects.stood_for[id(cls)] = v
    tx.output.objects.keep.append(cls)
    tx.output.references.at_end.append(functools.partial(let_go, cls))
    if cell is not None:
        cell.contents = cell.filled_by = v
        for k, f in namespace.items():
            if isinstance(f, NestedFunctionVariable) and any(c is cell for c in f.closure(tx)):
                f.kept_by = f.kept_by or (v, k)
    return v


@handles(builtins.__build_class__)
def _(tx, args, kwargs):
    body, name, *bases = (a.unwrap() for a in args)
    name = name.as_constant()
    meta = kwargs.pop("metaclass", None)
    if kwargs or not isinstance(body, NestedFunctionVariable):
        refuse(name, "It has keywords.")
    if meta is not None:
        meta = meta.unwrap().as_constant() if meta.unwrap().can_constant() else None
        if meta not in METACLASSES:
            refuse(name, "Its metaclass is the program's.")
    frame = tx.frame_of(body, {})
    frame.namespace = {}
    frame.run()
    return make_class(tx, meta, name, bases, frame.namespace)


def of_type(tx, args) -> Variable:
    """``type(name, bases, namespace)``"""
    name, bases, namespace = (a.unwrap() for a in args)
    if not (name.is_constant() and hasattr(namespace, "pairs")):
        unsupported("type", "making a class while tracing")
    if any(k.is_constant() and k.as_constant() == "__classcell__" for k, _ in namespace.pairs(tx)):
        refuse(name.as_constant(), "It has the cell of another class.")
    given = {k.as_constant(): v for k, v in namespace.pairs(tx)}
    given.setdefault("__module__", tx.wrap_known(tx.globals.get("__name__")))
    return make_class(tx, None, name.as_constant(), bases.items(tx), given)
