"""Objects of user classes, modules of the nn kind among them, classes, Python modules, super()."""

from __future__ import annotations

import enum
import types

from .. import tensors, trace_rules, world
from ..exc import unsupported
from ..guards import type_item
from ..source import ConstSource, InstanceDictSource, KeySource
from ..world import ABSENT
from .base import Variable
from .constant import ConstantVariable
from .dicts import DictVariable
from .functions import UserFunctionVariable, UserMethodVariable

__all__ = [
    "ClassVariable",
    "ModuleVariable",
    "ObjectVariable",
    "PythonModuleVariable",
    "SuperVariable",
    "TorchObjectVariable",
]


class ObjectVariable(Variable):
    """An instance of a Python class. Reads go to pending writes, then to the instance and its class, through :mod:`..world`.

    ``value`` is the real object, or None for one made while tracing (then ``cls`` and the pending writes are all there is). ``written`` is the
    one record of what the traced code changed: attributes, slots, ``__dict__`` and the registries of a module are views of it."""

    mutable = True

    def __init__(self, value, cls: type, source=None):
        super().__init__(source)
        self.value, self.cls = value, cls
        if value is not None and source is None:
            self.source = ConstSource(value, f"const<{cls.__name__}>")
        self.written: dict[str, Variable | None] = {}  # None: deleted
        self.reinserted: set[str] = set()  # deleted, then written again: at the end of the dict

    def __repr__(self):
        return f"UserDefinedObjectVariable({self.cls.__name__})"

    def python_type(self):
        return self.cls

    def class_attr(self, tx, name):
        return world.class_attr(tx, self.cls, name)

    def class_variable(self):
        return ClassVariable(self.cls, ConstSource(self.cls, self.cls.__qualname__))

    def pending(self, name):
        return world.DELETED if name in self.written and self.written[name] is None else self.written.get(name)

    def getattr(self, tx, name):
        if name == "__class__" and type_item(self.cls, name) is object.__dict__["__class__"]:
            return self.class_variable()
        if name == "__dict__":
            return self.instance_dict(tx)
        return self.generic_getattr(tx, name)

    def generic_getattr(self, tx, name):
        return world.attribute(tx, self, self.value, self.cls, self.source, name, self.pending)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def instance_dict(self, tx):
        if self.value is not None and world.instance_dict(self.value) is None:
            tx.raise_user(AttributeError(f"{self.cls.__name__!r} object has no attribute '__dict__'"))
        return InstanceDict(self)

    def setattr(self, tx, name, value):
        hook = self.class_attr(tx, "__setattr__")
        if isinstance(hook, types.FunctionType):
            tx.wrap_function(hook).call(tx, [self, ConstantVariable(name), value], {})
            return
        self.plain_setattr(tx, name, value)

    def plain_setattr(self, tx, name, value):
        """object.__setattr__"""
        if name in ("__class__", "__dict__"):
            unsupported("setattr", f"setattr {self!r} {name}")
        a = self.class_attr(tx, name)
        if isinstance(a, property):
            if a.fset is None:
                tx.raise_user(AttributeError(f"property {name!r} of {self.cls.__name__!r} object has no setter"))
            tx.wrap_function(a.fset).call(tx, [self, value], {})
            return
        if a is not ABSENT and not isinstance(a, types.FunctionType):
            put = world.class_attr(tx, type(a), "__set__")
            if isinstance(put, types.FunctionType):
                tx.wrap_function(put).call(tx, [tx.wrap_known(a), self, value], {})
                return
            if put is not ABSENT and not isinstance(a, types.MemberDescriptorType):
                unsupported(
                    "descriptor", f"setattr {self!r} {name}", f"{name} is a data descriptor of type {type(a).__name__}."
                )
        self.store(tx, name, value)

    def store(self, tx, name, value: Variable | None) -> None:
        """The attribute in the instance itself, past every hook. None deletes it."""
        tx.side_effects.remember(self)
        tx.side_effects.touch(self)
        before = None
        if self.value is not None and not isinstance(type_item(self.cls, name), types.MemberDescriptorType):
            d = world.instance_dict(self.value)
            if d is None:
                tx.raise_user(AttributeError(f"{self.cls.__name__!r} object has no attribute {name!r}"))
            before = name in d
            tx.output.guard(InstanceDictSource(self.source), "HAS_KEY" if before else "NO_KEY", name)
        if value is None and before is False:
            self.written.pop(name, None)
        else:
            if name in self.written and self.written[name] is None:
                del self.written[name]
                self.reinserted.add(name)
            if value is None:
                self.reinserted.discard(name)
            self.written[name] = value

    def delattr(self, tx, name):
        hook = self.class_attr(tx, "__delattr__")
        if isinstance(hook, types.FunctionType):
            tx.wrap_function(hook).call(tx, [self, ConstantVariable(name)], {})
            return
        self.plain_delattr(tx, name)

    def plain_delattr(self, tx, name):
        a = self.class_attr(tx, name)
        if a is not ABSENT and isinstance(a, property):
            if a.fdel is None:
                tx.raise_user(AttributeError(f"property {name!r} of {self.cls.__name__!r} object has no deleter"))
            tx.wrap_function(a.fdel).call(tx, [self], {})
            return
        if name not in self.written or self.written[name] is None:
            found = None
            if self.value is not None and name not in self.written:
                found = (
                    self.getattr(tx, name)
                    if isinstance(a, types.MemberDescriptorType)
                    else world.instance_attr(tx, self.value, self.source, name)
                )
            if found is None:
                tx.raise_user(AttributeError(f"{self.cls.__name__!r} object has no attribute {name!r}"))
        if self.value is None:
            del self.written[name]
            tx.side_effects.touch(self)
        else:
            self.store(tx, name, None)

    def special(self, tx, name):
        """A special method found on the class only, as the interpreter does; None when absent."""
        a = self.class_attr(tx, name)
        return None if a is ABSENT or a is None else world.bind(tx, self, self.cls, name, a)

    def call_special(self, tx, name, *args):
        f = self.special(tx, name)
        if f is None:
            unsupported("special-method", f"{self.cls.__name__} has no {name}")
        return f.call(tx, list(args), {})

    def call(self, tx, args, kwargs):
        f = self.special(tx, "__call__")
        if f is None:
            tx.raise_user(TypeError(f"{self.cls.__name__!r} object is not callable"))
        return f.call(tx, args, kwargs)

    def getitem(self, tx, key):
        return self.call_special(tx, "__getitem__", key)

    def setitem(self, tx, key, value):
        self.call_special(tx, "__setitem__", key, value)

    def delitem(self, tx, key):
        self.call_special(tx, "__delitem__", key)

    def contains(self, tx, key):
        if self.class_attr(tx, "__contains__") is not ABSENT:
            return ConstantVariable(tx.truth(self.call_special(tx, "__contains__", key)))
        return super().contains(tx, key)

    def items(self, tx):
        from .iterators import UserIteratorVariable

        it = self.call_special(tx, "__iter__")
        return (UserIteratorVariable(it) if isinstance(it, ObjectVariable) else it).items(tx)

    def length(self, tx):
        return self.call_special(tx, "__len__").as_constant()

    def truth(self, tx):
        if self.class_attr(tx, "__bool__") is not ABSENT:
            return self.call_special(tx, "__bool__").as_constant()
        if self.class_attr(tx, "__len__") is not ABSENT:
            return bool(self.length(tx))
        return True

    def reconstruct(self, cg):
        """Made while tracing: a bare object of the class, then its attributes."""
        if self.value is not None:
            cg.load_const(self.value)
            return
        cg.call_function(
            self.cls.__new__ if is_plain_mode(self.cls) else object.__new__,
            lambda: cg.load_const(self.cls),
            1,
        )
        t = cg.temps[id(self)] = cg.temp()
        cg.emit("STORE_FAST", t)
        for k, v in self.written.items():
            if v is None:
                continue

            def push(k=k, v=v):
                cg.emit("LOAD_FAST", t)
                cg.load_const(k)
                cg(v)

            cg.call_function(object.__setattr__, push, 3)
            cg.emit("POP_TOP")
        cg.emit("LOAD_FAST", t)


class SlotMethod(Variable):
    """A C-level method of a user object (object.__setattr__ and the like)."""

    def __init__(self, owner: ObjectVariable, name: str, value):
        super().__init__()
        self.owner, self.name, self.value = owner, name, value

    def reconstruct(self, cg):
        cg(self.owner)
        cg.load_attr(self.name)

    def call(self, tx, args, kwargs):
        o, name = self.owner, self.name
        if self.value is object.__setattr__ and args[0].can_constant():
            o.plain_setattr(tx, args[0].as_constant(), args[1])
            return ConstantVariable(None)
        if self.value is object.__delattr__ and args[0].can_constant():
            o.plain_delattr(tx, args[0].as_constant())
            return ConstantVariable(None)
        if self.value is object.__init__:
            return ConstantVariable(None)
        if self.value is object.__getattribute__ and args[0].can_constant():
            return o.generic_getattr(tx, args[0].as_constant())
        if self.value is object.__eq__ or self.value is object.__ne__:
            from .operators import identical

            same = identical(tx, o, args[0])
            if not same:
                return ConstantVariable(NotImplemented)
            return ConstantVariable(self.value is object.__eq__)
        if self.value is object.__init_subclass__:
            return ConstantVariable(None)
        unsupported("slot-method", f"call_method {o!r} {name}", f"{self.value!r} is implemented in C.")


class ModuleVariable(ObjectVariable):
    """An nn module: traced through its forward; parameters, buffers and submodules are read from the module's dicts by source."""

    def __repr__(self):
        return f"NNModuleVariable({self.cls.__name__})"

    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def table(self, name) -> dict | None:
        d = self.value.__dict__.get(name)
        return d if isinstance(d, dict) else None

    def registry(self, tx, name) -> Variable | None:
        """The variable of one of the module's own dicts: the same one however it is reached, so writes to it are seen."""
        if name in self.written or self.table(name) is None:
            return self.written.get(name)
        return tx.wrap(self.table(name), KeySource(InstanceDictSource(self.source), name))

    def generic_getattr(self, tx, name):
        # The library's __getattr__ is not traced: it looks into three dicts.
        hook = self.class_attr(tx, "__getattr__")
        if not is_library(hook):
            return super().generic_getattr(tx, name)
        if self.class_attr(tx, name) is ABSENT and name not in self.written and not name.startswith("_"):
            if world.instance_attr(tx, self.value, self.source, name) is None:
                for where in ("_parameters", "_modules", "_buffers"):
                    d = self.registry(tx, where)
                    found = d.get_key(tx, name) if isinstance(d, DictVariable) else None
                    if found is not None:
                        return found
                tx.raise_user(AttributeError(f"{self.cls.__name__!r} object has no attribute {name!r}"))
        return super().generic_getattr(tx, name)

    def setattr(self, tx, name, value):
        if is_library(self.class_attr(tx, "__setattr__")):
            self.module_setattr(tx, name, value)
        else:
            super().setattr(tx, name, value)

    def module_setattr(self, tx, name, value):
        """What the library's Module.__setattr__ does."""
        from .tensor import TensorVariable

        if isinstance(value, ObjectVariable) and trace_rules.is_nn_module_class(value.cls):
            unsupported("module-setattr", f"setattr {self!r} {name}", "A submodule is assigned while tracing.")
        if isinstance(value, TensorVariable) and value.cls is not tensors.Tensor:
            unsupported("module-setattr", f"setattr {self!r} {name}", "A parameter is assigned while tracing.")
        empty = value.is_constant() and value.as_constant() is None
        for where in ("_parameters", "_modules", "_buffers"):
            d = self.registry(tx, where)
            if isinstance(d, DictVariable) and d.contains(tx, ConstantVariable(name)).value:
                if not empty and not (where == "_buffers" and isinstance(value, TensorVariable)):
                    unsupported(
                        "module-setattr",
                        f"setattr {self!r} {name}",
                        "What is assigned has the wrong type for this name.",
                    )
                d.setitem(tx, ConstantVariable(name), value)
                return
        self.plain_setattr(tx, name, value)

    HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

    def call(self, tx, args, kwargs):
        call = self.class_attr(tx, "__call__")
        if not is_library(call) or not is_library(self.class_attr(tx, "_call_impl")):
            return super().call(tx, args, kwargs)
        compiled = self.getattr(tx, "_compiled_call_impl")
        if not (compiled.is_constant() and compiled.as_constant() is None):
            return compiled.call(tx, args, kwargs)
        hooks = self.class_attr(tx, "_call_impl").__globals__["_hooks"]
        if world.module_attr(tx, hooks, "any_global").as_constant() or self.hooks(tx):
            from . import module_hooks

            return module_hooks.call_with_hooks(tx, self, hooks, args, kwargs)
        return self.getattr(tx, "forward").call(tx, args, kwargs)

    def hooks(self, tx) -> list[str]:
        """The tables of hooks that are not empty. That the others are is guarded."""
        full = [n for n in self.HOOKS if n in self.written or self.table(n) is None or len(self.table(n))]
        empty = tuple(n for n in self.HOOKS if n not in full)
        if empty:
            tx.output.guard(InstanceDictSource(self.source), "EMPTY_DICTS", empty)
        return full

    def shortcut(self, tx, *names) -> str | None:
        """The library's container that this is, as long as these methods are the library's."""
        kind = container_kind(self.cls)
        return None if kind is None or world.is_overridden(tx, self.cls, *names) else kind

    def items(self, tx):
        name = self.shortcut(tx, "__iter__")
        if name in ("ModuleList", "Sequential"):
            return [v for _, v in self.children(tx)]
        if name == "ModuleDict":
            return [ConstantVariable(k) for k, _ in self.children(tx)]
        return super().items(tx)

    def children(self, tx):
        return [(k.as_constant(), v) for k, v in self.registry(tx, "_modules").pairs(tx)]

    def length(self, tx):
        if self.shortcut(tx, "__len__"):
            return len(self.children(tx))
        return super().length(tx)

    def getitem(self, tx, key):
        name = self.shortcut(tx, "__getitem__", "__len__")
        if name in ("ModuleList", "Sequential") and key.can_constant() and isinstance(key.as_constant(), int):
            c = self.children(tx)
            try:
                return c[key.as_constant()][1]
            except IndexError:
                tx.raise_user(IndexError(f"index {key.as_constant()} is out of range"))
        if name == "ModuleDict" and key.can_constant():
            found = dict(self.children(tx)).get(key.as_constant())
            if found is None:
                tx.raise_user(KeyError(key.as_constant()))
            return found
        return super().getitem(tx, key)

    WALKS = (
        "parameters",
        "named_parameters",
        "buffers",
        "named_buffers",
        "children",
        "named_children",
        "modules",
        "named_modules",
    )

    def getattr(self, tx, name):
        if (
            name in self.WALKS
            and self.value is not None
            and name not in self.written
            and name not in self.value.__dict__
        ):
            if not self.walk_overridden(tx):
                tx.output.guard(self.source, "NO_INSTANCE_KEY", name)
                return ModuleWalk(self, name)
        if name in ("items", "keys", "values") and self.shortcut(tx, name) == "ModuleDict":
            return self.registry(tx, "_modules").getattr(tx, name)
        return super().getattr(tx, name)

    def walk_overridden(self, tx) -> bool:
        return world.is_overridden(tx, self.cls, *self.WALKS, "_named_members")


def is_library(f) -> bool:
    return f is not ABSENT and isinstance(f, types.FunctionType) and (f.__module__ or "").startswith("flambeau.")


class ModuleWalk(Variable):
    """module.parameters() and the like: walks the module's dicts through guarded sources."""

    def __init__(self, owner, name):
        super().__init__()
        self.owner, self.name = owner, name

    def reconstruct(self, cg):
        cg(self.owner)
        cg.load_attr(self.name)

    def walk(self, tx, m, prefix, seen):
        if id(m) in seen:
            return
        seen.add(id(m))
        if m.walk_overridden(tx):
            unsupported(
                "module-walk", f"{self.name}() over {m!r}", f"{m.cls.__name__} has its own way to list its parts."
            )
        yield prefix, m
        for k, c in m.children(tx):
            if isinstance(c, ModuleVariable):
                yield from self.walk(tx, c, f"{prefix}.{k}" if prefix else k, seen)

    def call(self, tx, args, kwargs):
        from .iterators import IteratorVariable

        if args or kwargs:
            unsupported("module-walk", f"{self.name}() with arguments")
        what = self.name.removeprefix("named_")
        pairs: list[tuple[str, Variable]] = []
        if what == "children":
            pairs = [(k, c) for k, c in self.owner.children(tx) if isinstance(c, ModuleVariable)]
        elif what == "modules":
            pairs = list(self.walk(tx, self.owner, "", set()))
        else:
            seen = set()
            for prefix, m in self.walk(tx, self.owner, "", set()):
                table = m.registry(tx, f"_{what}")
                for k, v in table.pairs(tx):
                    if id(v) not in seen and not v.is_constant():
                        seen.add(id(v))
                        pairs.append((f"{prefix}.{k.as_constant()}" if prefix else k.as_constant(), v))
        if self.name.startswith("named_"):
            return IteratorVariable([tx.make_tuple([ConstantVariable(k), v]) for k, v in pairs])
        return IteratorVariable([v for _, v in pairs])


def container_kind(cls: type) -> str | None:
    for c in cls.__mro__:
        if c.__module__.startswith("flambeau.") and c.__name__ in ("ModuleList", "Sequential", "ModuleDict"):
            return c.__name__
    return None


class InstanceDict(DictVariable):
    """``obj.__dict__``: a view of the object's attributes. Reading and writing through it is reading and writing the object."""

    def __init__(self, owner: ObjectVariable):
        super().__init__(source=InstanceDictSource(owner.source) if owner.source is not None else None)
        self.owner = owner

    def reloadable(self):
        return False

    def reconstruct(self, cg):
        cg(self.owner)
        cg.load_attr("__dict__")

    def _slots(self, name) -> bool:
        return isinstance(type_item(self.owner.cls, name), types.MemberDescriptorType)

    def _lookup(self, tx, k):
        if not isinstance(k, str):
            unsupported("instance-dict", f"the key {k!r} in the __dict__ of an object")
        o = self.owner
        if k in o.written and not self._slots(k):
            return o.written[k]
        return world.instance_attr(tx, o.value, o.source, k) if o.value is not None else None

    get_key = _lookup

    def _names(self, tx) -> list[str]:
        o = self.owner
        base = world.instance_dict(o.value) if o.value is not None else {}
        if o.value is not None:
            tx.output.guard(self.source, "DICT_KEYS", tuple(base))
        out = [k for k in base if k not in o.reinserted and not (k in o.written and o.written[k] is None)]
        return out + [k for k, v in o.written.items() if v is not None and k not in out and not self._slots(k)]

    def items(self, tx):
        return [ConstantVariable(k) for k in self._names(tx)]

    def pairs(self, tx):
        return [(ConstantVariable(k), self._lookup(tx, k)) for k in self._names(tx)]

    def length(self, tx):
        return len(self._names(tx))

    def can_constant(self):
        return False

    def contains(self, tx, key):
        return ConstantVariable(self._lookup(tx, self._key(key)) is not None)

    def setitem(self, tx, key, value):
        self.owner.store(tx, self._key(key), value)

    def delitem(self, tx, key):
        k = self._key(key)
        if self._lookup(tx, k) is None:
            tx.raise_user(KeyError(k))
        if self.owner.value is None:
            del self.owner.written[k]
            tx.side_effects.touch(self.owner)
        else:
            self.owner.store(tx, k, None)

    def call_method(self, tx, name, args, kwargs):
        if name == "clear":
            for k in self._names(tx):
                self.delitem(tx, ConstantVariable(k))
            return ConstantVariable(None)
        if name == "copy":
            return DictVariable({k.as_constant(): (k, v) for k, v in self.pairs(tx)})
        return super().call_method(tx, name, args, kwargs)


class NamespaceDict(DictVariable):
    """``globals()`` or ``module.__dict__``: the same names that global statements and attributes of the module read and write."""

    def __init__(self, table: dict, label: str, source=None):
        super().__init__(source=source)
        self.table, self.label = table, label

    def reloadable(self):
        return False

    def reconstruct(self, cg):
        cg.load_const(self.table)

    def can_constant(self):
        return False

    def _lookup(self, tx, k):
        pending = tx.side_effects.global_writes.get((id(self.table), k))
        if pending is not None:
            return pending[1]
        if k in self.table:
            return world.dict_name(tx, self.table, k, self.label)
        tx.output.guard(ConstSource(self.table, self.label), "NO_KEY", k)
        return None

    get_key = _lookup

    def contains(self, tx, key):
        return ConstantVariable(self._lookup(tx, self._key(key)) is not None)

    def _names(self, tx) -> list:
        tx.output.guard(ConstSource(self.table, self.label), "DICT_KEYS", tuple(self.table))
        writes = {n: v for (t, n), (_, v, _) in tx.side_effects.global_writes.items() if t == id(self.table)}
        return [k for k in self.table if writes.get(k, self) is not None] + [
            k for k, v in writes.items() if v is not None and k not in self.table
        ]

    def items(self, tx):
        return [tx.wrap_key(k) for k in self._names(tx)]

    def pairs(self, tx):
        return [(tx.wrap_key(k), self._lookup(tx, k)) for k in self._names(tx)]

    def length(self, tx):
        return len(self._names(tx))

    def setitem(self, tx, key, value):
        tx.side_effects.store_global(self.table, self._key(key), value)

    def delitem(self, tx, key):
        k = self._key(key)
        if self._lookup(tx, k) is None:
            tx.raise_user(KeyError(k))
        tx.side_effects.store_global(self.table, k, None)

    def call_method(self, tx, name, args, kwargs):
        if name in ("clear", "popitem"):
            unsupported("namespace", f"{name}() of a namespace")
        if name == "copy":
            return DictVariable({k.as_constant(): (k, v) for k, v in self.pairs(tx)})
        return super().call_method(tx, name, args, kwargs)


class ClassVariable(Variable):
    def __init__(self, value: type, source=None):
        super().__init__(source)
        self.value = value

    def __repr__(self):
        return f"UserDefinedClassVariable({self.value.__name__})"

    def python_type(self):
        return type(self.value)

    def as_proxy(self):
        return self.value

    def can_constant(self):
        return True

    def as_constant(self):
        return self.value

    def reconstruct(self, cg):
        cg.load_const(self.value)

    def truth(self, tx):
        return True

    def getattr(self, tx, name):
        cls, meta = self.value, type(self.value)
        if name == "__class__":
            return ClassVariable(meta, ConstSource(meta, meta.__qualname__))
        if name == "__dict__":
            unsupported("class-dict", f"getattr {self!r} __dict__")
        if issubclass(cls, enum.Enum) and name in cls._member_map_:
            return ConstantVariable(cls._member_map_[name])  # the class refuses to have its members replaced
        source = self.source or ConstSource(cls, cls.__qualname__)
        if world.class_attr(tx, meta, "__getattribute__") not in world.LOOKUP:
            unsupported("getattribute", f"getattr {self!r} {name}", f"{meta.__name__} defines __getattribute__.")
        above = world.class_attr(tx, meta, name)
        if above is not ABSENT and not isinstance(above, types.FunctionType) and world.is_data_descriptor(tx, above):
            if type(above) is property:
                return tx.wrap_function(above.fget).call(tx, [self], {})
            get = world.class_attr(tx, type(above), "__get__")
            if isinstance(get, types.FunctionType):
                return world.call_get(tx, get, above, self, meta)
            return world.dynamic(tx, self, cls, source, name)
        a = world.class_attr(tx, cls, name)
        if a is not ABSENT:
            return self.found(tx, name, a, source)
        if above is not ABSENT:
            return (
                world.dynamic(tx, self, cls, source, name) if meta is type else world.bind(tx, self, meta, name, above)
            )
        return world.missing(tx, self, meta, name)

    def found(self, tx, name, a, source):
        """What an attribute of the class becomes when it is read from the class."""
        if isinstance(a, staticmethod):
            return tx.wrap_function(a.__func__)
        if isinstance(a, classmethod):
            if name == "_make" and hasattr(self.value, "_fields"):
                return MakeTuple(self.value)
            if trace_rules.is_torch_callable(a.__func__):
                return tx.wrap_known(getattr(self.value, name))
            return UserMethodVariable(tx.wrap_known(a.__func__), self)
        if isinstance(a, types.FunctionType):
            return tx.wrap_function(a)
        if isinstance(a, (property, *world.C_DESCRIPTORS)):
            return tx.wrap_known(a)
        get = world.class_attr(tx, type(a), "__get__")
        if isinstance(get, types.FunctionType):
            return tx.wrap_function(get).call(tx, [tx.wrap_known(a), ConstantVariable(None), self], {})
        if (
            get is not ABSENT
            and not isinstance(a, type)
            and not trace_rules.is_compiled(a)
            and not trace_rules.is_disabled(a)
        ):
            return world.dynamic(tx, self, self.value, source, name)
        return tx.wrap_known(a)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def setattr(self, tx, name, value):
        unsupported("class-setattr", f"setattr {self!r} {name}", "A class is changed while tracing.")

    def call(self, tx, args, kwargs):
        return construct(tx, self, args, kwargs)


class MakeTuple(Variable):
    """``_make`` of a named tuple."""

    def __init__(self, cls):
        super().__init__()
        self.cls = cls

    def call(self, tx, args, kwargs):
        from .lists import TupleVariable

        return TupleVariable(args[0].items(tx), cls=self.cls)


def is_plain_mode(cls: type) -> bool:
    """A function mode made by the native base's own ``__new__``, which takes nothing."""
    return trace_rules.is_function_mode_class(cls) and isinstance(cls.__new__, types.BuiltinFunctionType)


def construct(tx, var: ClassVariable, args, kwargs):
    """An instance of a user class, made while tracing."""
    cls = var.value
    if issubclass(cls, enum.Enum) and all(a.can_constant() for a in args) and not kwargs:
        try:
            return tx.wrap_known(cls(*[a.as_constant() for a in args]))
        except ValueError as e:
            tx.raise_user(e)
    if issubclass(cls, tuple) and hasattr(cls, "_fields") and "__new__" in cls.__dict__:
        from .functions import bind
        from .lists import TupleVariable

        f = UserFunctionVariable(cls.__new__)
        bound = bind(tx, f, [var, *args], kwargs)
        return TupleVariable([tx.realize(bound[n]) for n in cls._fields], cls=cls)
    if (
        type(cls) is not type
        or not (cls.__new__ is object.__new__ or is_plain_mode(cls))
        or trace_rules.is_nn_module_class(cls)
        or issubclass(cls, BaseException)
    ):
        unsupported(
            "construct",
            f"constructing {cls.__module__}.{cls.__qualname__}",
            "Its construction is not plain Python (metaclass, __new__ or C base).",
        )
    if world.class_attr(tx, cls, "__del__") is not ABSENT:
        unsupported(
            "finalizer", f"constructing {cls.__qualname__}, which has __del__", "When it runs is part of the program."
        )
    world.class_attr(tx, cls, "__new__")
    obj = ObjectVariable(None, cls)
    init = world.class_attr(tx, cls, "__init__")
    if isinstance(init, types.FunctionType):
        tx.wrap_function(init).call(tx, [obj, *args], kwargs)
    elif args or kwargs:
        tx.raise_user(TypeError(f"{cls.__name__}() takes no arguments"))
    return obj


class SuperVariable(Variable):
    def __init__(self, cls: type, obj: Variable):
        super().__init__()
        self.cls, self.obj = cls, obj

    def getattr(self, tx, name):
        of_class = isinstance(self.obj, ClassVariable)
        owner = self.obj.value if of_class else self.obj.python_type()
        if self.cls not in owner.__mro__:
            tx.raise_user(TypeError("super(type, obj): obj must be an instance or subtype of type"))
        a = world.class_attr(tx, owner, name, after=self.cls)
        if a is ABSENT:
            tx.raise_user(AttributeError(f"'super' object has no attribute {name!r}"))
        if of_class:
            if isinstance(a, classmethod):
                return UserMethodVariable(tx.wrap_known(a.__func__), self.obj)
            return self.obj.found(tx, name, a, ConstSource(owner, owner.__qualname__))
        if isinstance(a, types.FunctionType):
            if name == "__setattr__" and isinstance(self.obj, ModuleVariable) and is_library(a):
                return ModuleSetattr(self.obj)
            return UserMethodVariable(tx.wrap_function(a), self.obj)
        if type(a) is property:
            return tx.wrap_function(a.fget).call(tx, [self.obj], {})
        if isinstance(self.obj, ObjectVariable):
            get = world.class_attr(tx, type(a), "__get__")
            if isinstance(get, types.FunctionType):
                return world.call_get(tx, get, a, self.obj, owner)
            return world.bind(tx, self.obj, owner, name, a)
        from .base import MethodOf

        if isinstance(a, world.C_METHODS) and hasattr(self.obj, "call_method"):
            return MethodOf(self.obj, name)
        unsupported("super", f"super().{name} of {self.obj!r}")

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))


class ModuleSetattr(Variable):
    """``super().__setattr__`` in a module, when it is the library's."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def call(self, tx, args, kwargs):
        self.module.module_setattr(tx, args[0].as_constant(), args[1])
        return ConstantVariable(None)


class PythonModuleVariable(Variable):
    def __init__(self, value: types.ModuleType, source=None):
        super().__init__(source)
        self.value = value

    def __repr__(self):
        return f"PythonModuleVariable({self.value.__name__})"

    def python_type(self):
        return types.ModuleType

    def reconstruct(self, cg):
        cg.load_const(self.value)

    def truth(self, tx):
        return True

    def getattr(self, tx, name):
        return world.module_attr(tx, self.value, name)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def setattr(self, tx, name, value):
        tx.side_effects.store_global(self.value.__dict__, name, value)


class TorchObjectVariable(Variable):
    """An object of the library that is no tensor (an operator namespace, a Generator class, a device module): read for real."""

    def __init__(self, value, source=None):
        super().__init__(source)
        self.value = value

    def __repr__(self):
        return f"TorchVariable({self.value!r})"

    def python_type(self):
        return type(self.value)

    def as_proxy(self):
        return self.value

    def reconstruct(self, cg):
        cg.load_const(self.value)

    def truth(self, tx):
        return bool(self.value)

    def getattr(self, tx, name):
        return world.library_attr(tx, self, self.value, self.source, name)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def call(self, tx, args, kwargs):
        from .torch_functions import TorchFunctionVariable

        return TorchFunctionVariable(self.value).call(tx, args, kwargs)
