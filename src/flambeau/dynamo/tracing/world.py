"""Reads of the outside world. A read returns a variable and leaves the guard that makes it valid, or refuses; there is no other way to a value.

What is looked up, found or absent, is a *fact* about a dict (globals, a module, an instance) or about a class (a place in its MRO, behind another
class for ``super()``). Facts about a class hang on the class itself, so temporaries have them as well as arguments. What has to be asked by
running code of the library (its state, properties of its objects) is asked again by the guard.
"""

from __future__ import annotations

import builtins
import collections
import sys
import types
from typing import Any

import numpy as np

from flambeau import _C
from flambeau.base.installed import STDLIB

from ..bytecode.versions import PY313
from ..exc import UserRaises, unsupported
from ..guards.source import (
    ConstSource,
    GetAttrSource,
    GlobalSource,
    GlobalsSource,
    InstanceDictSource,
    KeySource,
    Source,
)
from ..rules import trace_rules
from ..rules.constants import is_constant_value
from ..rules.reflect import (
    ABSENT,
    IMMUTABLE,
    MRO,
    dict_of,
    error_name_of,
    flags_of,
    full_name_of,
    instance_dict,
    member_name,
    module_of,
    mro_of,
    name_of,
    qualname_of,
    type_item,
)

__all__ = [
    "ABSENT",
    "attribute",
    "class_attr",
    "dict_name",
    "has",
    "instance_attr",
    "instance_dict",
    "is_overridden",
    "library_state",
    "module_attr",
]

DELETED = object()  # what pending() says of an attribute that the traced code deleted
# The interpreter's own lookup of attributes: builtins have it under their own names.
PLAIN_OBJECTS = (
    object, list, tuple, dict, set, frozenset, int, float, complex, str, bytes, collections.deque, collections.OrderedDict,
    collections.defaultdict, types.SimpleNamespace,
)  # fmt: skip
EXCEPTIONS = [c for c in vars(builtins).values() if isinstance(c, type) and issubclass(c, BaseException)]
LOOKUP = {
    *(c.__getattribute__ for c in (*PLAIN_OBJECTS, *EXCEPTIONS)),
    type.__getattribute__,
    types.ModuleType.__getattribute__,
}
FIELD = type(collections.namedtuple("_", "f").f)  # the descriptor of a named tuple's field
C_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
C_METHODS = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.BuiltinFunctionType,
)


class Lacks:
    """Guard: reading the attribute raises AttributeError."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, o) -> bool:
        return not hasattr(o, self.name)

    def __repr__(self):
        return f"no attribute {self.name!r}"


class Ask:
    """Access: call a function of the library with these arguments."""

    def __init__(self, args: tuple, kwargs: dict):
        self.args, self.kwargs = args, kwargs

    def __call__(self, fn):
        return fn(*self.args, **self.kwargs)


class AskSource(Source):
    access = "call"

    def __init__(self, base: Source, ask: Ask):
        self.base, self.ask = base, ask

    @property
    def name(self):
        return f"{self.base.name}({', '.join(map(repr, self.ask.args))})"

    def key_value(self):
        return self.ask


# -- classes --


def class_attr(tx, cls: type, name: str, after: type | None = None) -> Any:
    """What the MRO of ``cls`` holds under ``name`` (behind the class ``after``, as super() looks), or ABSENT. Descriptors are left alone."""
    output = tx.output
    guards = output.guards
    if id(cls) in output.objects.made_classes:
        return made_class_attr(tx, cls, name, after)
    key = (id(cls), name) if after is None else (id(cls), name, id(after))
    if key in guards.on_classes and not output.side_effects.class_writes:
        return guards.on_classes[key]
    if flags_of(cls) & IMMUTABLE:
        found = type_item(cls, name, after)
    else:
        if output.side_effects.on_class(cls, name) is not None:
            unsupported(
                "class-setattr", f"{name} of {qualname_of(cls)}, which was written", "It is read past the class."
            )
        fact = guards.class_facts(cls).get((name, after))
        if fact is None:
            fact = guards.class_fact(cls, name, type_item(cls, name, after), after)
        found = fact.value
    guards.on_classes[key] = found
    guards.classes_asked.append(cls)
    return found


def made_class_attr(tx, cls: type, name: str, after: type | None) -> Any:
    """Of a class that is made while tracing: its own part of the MRO is settled, the rest is asked of the first class that existed before."""
    mro = mro_of(cls)
    if name == MRO:
        class_attr(tx, next(c for c in mro if id(c) not in tx.output.objects.made_classes), name)
        return mro
    if after is not None:
        mro = mro[next((i for i, c in enumerate(mro) if c is after), len(mro)) + 1 :]
    for c in mro:
        if id(c) not in tx.output.objects.made_classes:
            return class_attr(tx, c, name)
        if name in dict_of(c):
            return dict_of(c)[name]
    return ABSENT


def is_python(a) -> bool:
    """Whether what was found on a class is a method written in Python."""
    return trace_rules.is_a(a, types.FunctionType)


def is_defined(a) -> bool:
    """Whether what was found on a class is the program's: a function, a wrapper of one or another descriptor, not the interpreter's own method in C,
    nothing, or the None that takes a method away."""
    return a is not ABSENT and a is not None and not trace_rules.is_a(a, C_METHODS)


def is_overridden(tx, cls: type, *names: str) -> bool:
    """Whether one of these methods is not the library's own: shortcuts for it are off then."""
    return any(
        not module_of(f).startswith("flambeau.") for f in (class_attr(tx, cls, n) for n in names) if f is not ABSENT
    )


def is_data_descriptor(tx, a) -> bool:
    return class_attr(tx, type(a), "__set__") is not ABSENT or class_attr(tx, type(a), "__delete__") is not ABSENT


def known(tx, value):
    """The variable for what a fact has pinned down."""
    return tx.wrap_known(value)


def is_property(tx, a, method: str) -> bool:
    """Whether a descriptor's ``__get__``, ``__set__`` or ``__delete__`` is a property's. Its ``fget`` may be another object's than that calls:
    ``property.fget.__get__(a)`` is the one."""
    return trace_rules.is_a(a, property) and class_attr(tx, type(a), method) is property.__dict__[method]


# -- instances --


def instance_table(tx, value, source: Source) -> InstanceDictSource:
    """The source of an instance's own dict: the same one for the same source of the instance."""
    tables = tx.output.guards.tables
    table = tables.get(id(source))
    if table is None:
        cls = type(value)
        hooked = type(type_item(cls, "__getattribute__")) is types.FunctionType
        own = type_item(cls, "__dict__")  # a property, say
        hooked = hooked or not (own is ABSENT or type(own) is types.GetSetDescriptorType)
        table = tables[id(source)] = InstanceDictSource(source, hooked)
    return table


def instance_attr(tx, value, source: Source, name: str):
    """The variable of an attribute in the instance's own dict, or None when it isn't there."""
    d = instance_dict(value)
    if d is None:
        return None
    table = instance_table(tx, value, source)
    if name in d:
        return tx.wrap(d[name], KeySource(table, name))
    tx.output.guards.fact(table, name, ABSENT)
    return None


def attribute(tx, owner, value, cls: type, source: Source | None, name: str, pending=None, hooks: bool = True):
    """``owner.name`` by the whole protocol. ``owner`` is the variable, ``value`` the real object (None for one made while tracing).

    ``pending(name)``: a variable written while tracing, DELETED, or None for nothing written. Without ``hooks``: as
    ``object.__getattribute__`` finds it, past the class's ``__getattribute__`` and ``__getattr__``."""
    hook = class_attr(tx, cls, "__getattribute__") if hooks else object.__getattribute__
    if hook not in LOOKUP:
        if type(hook) is types.FunctionType:
            read = tx.wrap_function(hook)
            return fallback(tx, owner, cls, name, lambda: read.call(tx, [owner, tx.make_constant(name)], {}))
        if pending is not None and pending(name) is not None:
            unsupported("getattribute", f"reading {name} of {owner!r}", f"{name_of(cls)} looks attributes up in C.")
        return dynamic(tx, owner, value, source, name)
    a = class_attr(tx, cls, name)
    if a is not ABSENT and not trace_rules.is_a(a, types.FunctionType) and is_data_descriptor(tx, a):
        if is_property(tx, a, "__get__"):
            getter = property.fget.__get__(a)
            if getter is None:
                tx.raise_user(AttributeError(f"property {name!r} of {qualname_of(cls)!r} object has no getter"))
            return fallback(tx, owner, cls, name, lambda: tx.wrap_function(getter).call(tx, [owner], {}), hooks)
        if trace_rules.is_a(a, C_DESCRIPTORS):
            written = pending(name) if pending is not None else None
            if written is not None and written is not DELETED:
                return written
            if value is None or written is DELETED:
                said = full_name_of(cls) if PY313 else name_of(cls)
                tx.raise_user(AttributeError(f"{said!r} object has no attribute {name!r}"))
            return dynamic(tx, owner, value, source, name)
        if type(a) is FIELD and (contents := owner.as_builtin()) is not owner:
            index, _ = a.__reduce__()[1]
            return contents.getitem(tx, tx.make_constant(index))
        get = class_attr(tx, type(a), "__get__")
        if type(get) is types.FunctionType:
            return fallback(tx, owner, cls, name, lambda: call_get(tx, get, a, owner, cls), hooks)
        if get is not ABSENT:
            unsupported(
                "descriptor", f"reading {name} of {owner!r}", f"{name} is a data descriptor of type {name_of(type(a))}."
            )
    written = pending(name) if pending is not None else None
    if written is not None and written is not DELETED:
        return written
    if value is not None and written is not DELETED:
        found = instance_attr(tx, value, source, name)
        if found is not None:
            return found
    if a is not ABSENT:
        return bind(tx, owner, cls, name, a)
    return missing(tx, owner, cls, name, hooks)


def fallback(tx, owner, cls, name, read, hooks: bool = True):
    """A descriptor that raises AttributeError hands over to ``__getattr__``."""
    try:
        return read()
    except UserRaises as e:
        if not hooks or not isinstance(e.exception, AttributeError) or class_attr(tx, cls, "__getattr__") is ABSENT:
            raise
        return missing(tx, owner, cls, name)


def call_get(tx, get, descriptor, owner, cls):
    return tx.wrap_function(get).call(tx, [known(tx, descriptor), owner, tx.make_class(cls)], {})


def missing(tx, owner, cls: type, name: str, hooks: bool = True):
    hook = class_attr(tx, cls, "__getattr__") if hooks else ABSENT
    if type(hook) is types.FunctionType:
        return tx.wrap_function(hook).call(tx, [owner, tx.make_constant(name)], {})
    if hook is not ABSENT:
        unsupported("getattr", f"reading {name} of {owner!r}", f"{name_of(cls)}.__getattr__ is no Python function.")
    what = f"type object {name_of(owner.value)!r}" if issubclass(cls, type) else f"{error_name_of(cls)!r} object"
    tx.raise_user(AttributeError(f"{what} has no attribute {name!r}"))


def bind(tx, owner, cls: type, name: str, a):
    """What an attribute found on the class becomes when it is read from an instance."""
    if trace_rules.is_a(a, types.FunctionType):
        return tx.make_method(tx.wrap_function(a), owner)
    if trace_rules.is_a(a, staticmethod):
        return known(tx, a.__func__)
    if trace_rules.is_a(a, classmethod):
        return tx.make_method(known(tx, a.__func__), tx.make_class(cls))
    if type(a) is types.BuiltinFunctionType:
        return known(tx, a)  # a function in C is no descriptor
    if type(a) is _C.Function and not a.binds:
        return known(tx, a)
    if trace_rules.is_a(a, C_METHODS):
        return tx.make_slot_method(owner, name, a)
    if trace_rules.is_compiled(a):
        return tx.make_method(tx.wrap_function(trace_rules.unwrap_compiled(a)), owner)
    if trace_rules.is_disabled(a):
        return tx.make_method(known(tx, a), owner)
    get = class_attr(tx, type(a), "__get__")
    if type(get) is types.FunctionType:
        return call_get(tx, get, a, owner, cls)
    if get is not ABSENT and not trace_rules.is_a(a, type):
        unsupported("descriptor", f"reading {name} of {owner!r}", f"{name} is a descriptor of type {name_of(type(a))}.")
    return known(tx, a)


def dynamic(tx, owner, value, source: Source | None, name: str):
    """An attribute that only running code tells: read for real now, and again by the guard."""
    if value is None:
        unsupported("getattr", f"reading {name} of {owner!r}")
    source = source or ConstSource(value, f"const<{name_of(type(value))}>")
    if any(type(type_item(type(value), n)) is types.FunctionType for n in ("__getattribute__", "__getattr__")):
        unsupported(
            "getattribute", f"reading {name} of {owner!r}", "Reading it for real would run a method of the program's."
        )
    try:
        found = getattr(value, name)
    except AttributeError as e:
        tx.output.guard(source, "CALL", Lacks(name))
        tx.raise_user(e)
    return tx.wrap(found, GetAttrSource(source, name))


# -- objects of the library, and C objects: read for real --


def library_attr(tx, owner, value, source: Source | None, name: str):
    """An attribute of an object that isn't traced: found statically when that is possible, asked for by the guard otherwise."""
    if isinstance(value, types.ModuleType):
        return module_attr(tx, value, name)
    source = source or ConstSource(value, f"const<{name_of(type(value))}>")
    try:
        found = getattr(value, name)
    except AttributeError as e:
        tx.output.guard(source, "CALL", Lacks(name))
        tx.raise_user(e)
    if isinstance(value, type):
        static = class_attr(tx, value, name)
        if static is found or trace_rules.is_a(static, (staticmethod, classmethod, *C_METHODS)):
            return known(tx, found)
        return tx.wrap(found, GetAttrSource(source, name))
    d = instance_dict(value)
    if d is not None and d.get(name, ABSENT) is found:
        return tx.wrap(found, KeySource(InstanceDictSource(source), name))
    static = class_attr(tx, type(value), name)
    if (
        static is found
        or trace_rules.is_a(static, C_METHODS)
        or (flags_of(type(value)) & IMMUTABLE and callable(found))
    ):
        return known(tx, found)
    if trace_rules.is_a(found, types.MethodType) and found.__func__ is static:
        return known(tx, found)
    if not is_constant_value(found) and getattr(value, name) is not found:
        unsupported("library-object", f"reading {name} of {owner!r}", "Each read makes another object.")
    return tx.wrap(found, GetAttrSource(source, name))


def has(tx, read) -> bool:
    """hasattr: the read succeeds, or raises AttributeError."""
    try:
        read()
    except UserRaises as e:
        if isinstance(e.exception, AttributeError):
            return False
        raise
    return True


# -- modules and globals --


def no_attribute(module: types.ModuleType, name: str) -> AttributeError:
    named = module.__dict__.get("__name__")
    return AttributeError(
        f"module {named!r} has no attribute {name!r}" if named else f"module has no attribute {name!r}"
    )


def module_attr(tx, module: types.ModuleType, name: str):
    """``module.name``, PEP 562 included."""
    pending = tx.side_effects.global_writes.get((id(module.__dict__), name))
    if pending is not None:
        if pending[1] is not None:
            return pending[1]
        tx.raise_user(no_attribute(module, name))
    label = str(module.__dict__.get("__name__", "?"))  # a module that isn't initialized has no name
    # NOTE: where `import torch` means flambeau, its own name is "torch".
    ours = label.startswith("flambeau.") or module is sys.modules["flambeau"]
    # NumPy imports most of its modules when they are asked for.
    of_numpy = module is np and name in module.__dict__.get("__numpy_submodules__", ())
    if (ours or of_numpy) and name not in module.__dict__:
        tx.evaluated(getattr, module, name)  # lazy: it is imported now, and mostly found in the dict from then on
    cls = type(module)
    source = ConstSource(module, label)
    if not ours and label.partition(".")[0] not in sys.stdlib_module_names:
        tx.output.guard(source, "TYPE_MATCH", cls)  # a program may give its modules another class
    if cls is not types.ModuleType:
        if ours:
            tx.output.guard(source, "TYPE_MATCH", cls)
        if class_attr(tx, cls, name) is not ABSENT and name not in ("__dict__", "__class__"):
            return dynamic(tx, module, module, source, name)
    table = module.__dict__
    if name in table and name != "__dict__":
        return dict_name(tx, table, name, label)
    if name == "__dict__":
        return tx.make_namespace(table, label)
    if cls is types.ModuleType and hasattr(types.ModuleType, name):
        if type(getattr(module, name)) in (types.MethodWrapperType, types.BuiltinMethodType):
            unsupported("getattr", f"reading {name} of a module", "It is bound anew at each reading.")
        return dynamic(tx, module, module, source, name)
    tx.output.guards.fact(ConstSource(table, label), name, ABSENT)
    hook = table.get("__getattr__", ABSENT)
    if hook is ABSENT:
        tx.output.guards.fact(ConstSource(table, label), "__getattr__", ABSENT)
        tx.raise_user(no_attribute(module, name))
    if ours:
        return dynamic(tx, module, module, source, name)
    return dict_name(tx, table, "__getattr__", label).call(tx, [tx.make_constant(name)], {})


def dict_name(tx, table: dict, name: str, label: str):
    """A name that is in a namespace."""
    return tx.wrap(table[name], KeySource(ConstSource(table, label), name))


def global_name(tx, globals: dict, name: str, own: bool):
    """A name as LOAD_GLOBAL finds it. ``own``: the globals of the captured frame itself, which captured code has under the same names."""
    pending = tx.side_effects.global_writes.get((id(globals), name))
    if pending is not None and pending[1] is not None:
        return pending[1]
    label = f"globals<{globals.get('__name__')}>"
    if name in globals and pending is None:
        return tx.wrap(globals[name], GlobalSource(name)) if own else dict_name(tx, globals, name, label)
    tx.output.guards.fact(GlobalsSource() if own else ConstSource(globals, label), name, ABSENT)
    table = builtins.__dict__
    if name not in table:
        tx.output.guards.fact(ConstSource(table, "builtins"), name, ABSENT)
        tx.raise_user(NameError(f"name {name!r} is not defined", name=name))
    if own and pending is None:
        return tx.wrap(table[name], GlobalSource(name, builtin=True))
    return dict_name(tx, table, name, "builtins")


FOLDED = (
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__bool__", "__len__", "__str__", "__repr__", "__format__", "__index__",
    "__int__", "__float__", "__complex__", "__invert__", "__neg__", "__pos__", "__abs__", "__round__", "__trunc__", "__floor__", "__ceil__",
    *(f"__{kind}{name}__" for kind in ("", "r") for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul", "lshift", "rshift", "and", "or", "xor")),
    "__contains__", "__iter__", "__getitem__", "__call__",
)  # fmt: skip


def folded(tx, value, names: tuple[str, ...] = FOLDED) -> None:
    """An operation is folded over a member of an enumeration: refused where the user's own methods would run, guarded to stay so. ``names``: of
    the methods that it may run."""
    cls = type(value)
    for name in names:
        f = class_attr(tx, cls, name)
        if is_defined(f) and not (is_python(f) and f.__code__.co_filename.startswith(STDLIB)):
            unsupported("fold", f"{name} of {member_name(value)}", f"{name_of(cls)} defines {name}.")


# -- the library's own state --


def library_state(tx, fn, args: tuple, kwargs: dict, value):
    """``value``: what ``fn(*args)`` of the library returned while tracing, from arguments that are no tensors. The guard asks again."""
    if not is_constant_value(value):
        return
    source = AskSource(ConstSource(fn, getattr(fn, "__name__", str(fn))), Ask(args, kwargs))
    tx.output.guard(source, "EQUALS_MATCH", value)
