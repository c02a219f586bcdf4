"""Objects of user classes, modules of the nn kind among them, classes, Python modules, super()."""

from __future__ import annotations

import enum
import types
from typing import Any

from .. import trace_rules
from ..exc import unsupported
from ..source import AttrSource, GetAttrSource, InstanceDictSource, KeySource, TypeLookupSource, TypeSource
from .base import Variable
from .constant import ConstantVariable
from .functions import UserFunctionVariable, UserMethodVariable

__all__ = [
    "ClassVariable",
    "ModuleVariable",
    "ObjectVariable",
    "PythonModuleVariable",
    "SuperVariable",
    "TorchObjectVariable",
]

_MISSING = object()


def type_lookup(cls: type, name: str) -> Any:
    for c in cls.__mro__:
        if name in c.__dict__:
            return c.__dict__[name]
    return _MISSING


class ObjectVariable(Variable):
    """An instance of a Python class. Reads go to pending writes, then to the instance and its class through guarded sources.

    ``value`` is the real object, or None for one made while tracing (then ``cls`` and the pending writes are all there is)."""

    mutable = True

    def __init__(self, value, cls: type, source=None):
        super().__init__(source)
        self.value, self.cls = value, cls
        self.written: dict[str, Variable | None] = {}  # None: deleted

    def __repr__(self):
        return f"UserDefinedObjectVariable({self.cls.__name__})"

    def python_type(self):
        return self.cls

    def distinct_from(self, other):
        return self.cls.__eq__ is object.__eq__

    def type_source(self):
        return TypeSource(self.source) if self.source is not None else None

    def class_attr(self, tx, name):
        """What the class says, guarded."""
        a = type_lookup(self.cls, name)
        return a

    def guard_class_attr(self, tx, name, a):
        if self.source is not None and not self.cls.__module__.startswith("flambeau."):
            tx.output.guard(TypeLookupSource(TypeSource(self.source), name), "ID_MATCH", a)

    def instance_attr(self, tx, name) -> Variable | None:
        if self.value is None:
            return None
        d = getattr(self.value, "__dict__", None)
        if isinstance(d, dict) and name in d:
            return tx.wrap(d[name], AttrSource(self.source, name) if self.source is not None else None)
        return None

    def getattr(self, tx, name):
        if name in self.written:
            v = self.written[name]
            if v is None:
                tx.raise_user(AttributeError(f"{self.cls.__name__!r} object has no attribute {name!r}"))
            return v
        if name == "__class__":
            return ClassVariable(self.cls, self.type_source())
        if name == "__dict__":
            return self.instance_dict(tx)
        if type_lookup(self.cls, "__getattribute__") is not object.__getattribute__:
            unsupported("getattribute", f"getattr {self!r} {name}", f"{self.cls.__name__} defines __getattribute__.")
        return self.generic_getattr(tx, name)

    def generic_getattr(self, tx, name):
        a = self.class_attr(tx, name)
        if a is not _MISSING:
            if isinstance(a, property):
                self.guard_class_attr(tx, name, a)
                return tx.wrap_function(a.fget).call(tx, [self], {})
            if hasattr(type(a), "__set__") and hasattr(type(a), "__get__"):
                if isinstance(a, (types.MemberDescriptorType, types.GetSetDescriptorType)) and self.value is not None:
                    try:
                        value = getattr(self.value, name)
                    except AttributeError as e:
                        tx.raise_user(e)
                    return tx.wrap(value, GetAttrSource(self.source, name) if self.source is not None else None)
                unsupported(
                    "descriptor", f"getattr {self!r} {name}", f"{name} is a data descriptor of type {type(a).__name__}."
                )
        v = self.instance_attr(tx, name)
        if v is not None:
            return v
        if a is not _MISSING:
            if self.source is not None and getattr(self.value, "__dict__", None) is not None:
                tx.output.guard(self.source, "NO_INSTANCE_KEY", name)
            self.guard_class_attr(tx, name, a)
            return self.bind_class_attr(tx, name, a)
        return self.missing_attr(tx, name)

    def bind_class_attr(self, tx, name, a):
        if isinstance(a, types.FunctionType):
            source = TypeLookupSource(TypeSource(self.source), name) if self.source is not None else None
            f = tx.wrap_function(a, source)
            return UserMethodVariable(
                f, self, GetAttrSource(self.source, name) if self.source is not None and not self.written else None
            )
        if isinstance(a, staticmethod):
            return tx.wrap_function(a.__func__)
        if isinstance(a, classmethod):
            return UserMethodVariable(tx.wrap_function(a.__func__), ClassVariable(self.cls, self.type_source()))
        if isinstance(
            a,
            (
                types.WrapperDescriptorType,
                types.MethodDescriptorType,
                types.ClassMethodDescriptorType,
                types.BuiltinFunctionType,
            ),
        ):
            return SlotMethod(self, name, a)
        if hasattr(type(a), "__get__"):
            if trace_rules.is_compiled(a):
                return UserMethodVariable(tx.wrap_function(trace_rules.unwrap_compiled(a)), self)
            if trace_rules.is_disabled(a):
                return UserMethodVariable(tx.wrap_known(a), self)
            unsupported("descriptor", f"getattr {self!r} {name}", f"{name} is a descriptor of type {type(a).__name__}.")
        if self.source is not None:
            return tx.wrap(a, TypeLookupSource(TypeSource(self.source), name))
        return tx.wrap_known(a)

    def missing_attr(self, tx, name):
        hook = type_lookup(self.cls, "__getattr__")
        if hook is not _MISSING and isinstance(hook, types.FunctionType):
            if self.source is not None:
                tx.output.guard(self.source, "NO_INSTANCE_KEY", name)
            return tx.wrap_function(hook).call(tx, [self, ConstantVariable(name)], {})
        tx.raise_user(AttributeError(f"{self.cls.__name__!r} object has no attribute {name!r}"))

    def hasattr(self, tx, name):
        if name in self.written:
            return self.written[name] is not None
        if type_lookup(self.cls, name) is not _MISSING:
            return True
        d = getattr(self.value, "__dict__", None)
        if isinstance(d, dict) and name in d:
            self.instance_attr(tx, name)
            return True
        if self.source is not None:
            tx.output.guard(self.source, "NO_INSTANCE_KEY", name)
        hook = type_lookup(self.cls, "__getattr__")
        if hook is _MISSING:
            return False
        if self.value is not None and not self.written:
            return hasattr(self.value, name)
        unsupported("hasattr", f"hasattr {self!r} {name}")

    def instance_dict(self, tx):
        if self.value is None:
            return tx.make_dict({k: v for k, v in self.written.items() if v is not None})
        if self.written:
            unsupported("instance-dict", f"getattr {self!r} __dict__ after writes to the object")
        return tx.wrap(self.value.__dict__, InstanceDictSource(self.source))

    def setattr(self, tx, name, value):
        hook = type_lookup(self.cls, "__setattr__")
        if isinstance(hook, types.FunctionType):
            tx.wrap_function(hook).call(tx, [self, ConstantVariable(name), value], {})
            return
        self.plain_setattr(tx, name, value)

    def plain_setattr(self, tx, name, value):
        a = type_lookup(self.cls, name)
        if isinstance(a, property):
            if a.fset is None:
                tx.raise_user(AttributeError(f"property {name!r} of {self.cls.__name__!r} object has no setter"))
            tx.wrap_function(a.fset).call(tx, [self, value], {})
            return
        if a is not _MISSING and hasattr(type(a), "__set__") and not isinstance(a, types.MemberDescriptorType):
            unsupported(
                "descriptor", f"setattr {self!r} {name}", f"{name} is a data descriptor of type {type(a).__name__}."
            )
        if self.source is not None:
            tx.side_effects.remember(self)
        tx.side_effects.touch(self)
        self.written[name] = value

    def delattr(self, tx, name):
        self.getattr(tx, name)
        tx.side_effects.remember(self)
        tx.side_effects.touch(self)
        before = self.value is not None and name in getattr(self.value, "__dict__", {})
        if self.value is not None and self.source is not None:
            tx.output.guard(InstanceDictSource(self.source), "HAS_KEY" if before else "NO_KEY", name)
        if before:
            self.written[name] = None
        else:
            self.written.pop(name, None)

    def special(self, tx, name):
        """A special method found on the class only, as the interpreter does; None when absent."""
        a = type_lookup(self.cls, name)
        if a is _MISSING:
            return None
        self.guard_class_attr(tx, name, a)
        return self.bind_class_attr(tx, name, a)

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
        if type_lookup(self.cls, "__contains__") is not _MISSING:
            return ConstantVariable(tx.truth(self.call_special(tx, "__contains__", key)))
        return super().contains(tx, key)

    def items(self, tx):
        from .iterators import UserIteratorVariable

        it = self.call_special(tx, "__iter__")
        return (UserIteratorVariable(it) if isinstance(it, ObjectVariable) else it).items(tx)

    def length(self, tx):
        return self.call_special(tx, "__len__").as_constant()

    def truth(self, tx):
        if type_lookup(self.cls, "__bool__") is not _MISSING:
            return self.call_special(tx, "__bool__").as_constant()
        if type_lookup(self.cls, "__len__") is not _MISSING:
            return bool(self.length(tx))
        return True

    def reconstruct(self, cg):
        """Made while tracing: a bare object of the class, then its attributes."""
        if self.value is not None:
            cg.load_const(self.value)
            return
        cg.call_function(
            self.cls.__new__ if self.cls.__new__ is object.__new__ else object.__new__,
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
            o.delattr(tx, args[0].as_constant())
            return ConstantVariable(None)
        if self.value is object.__init__:
            return ConstantVariable(None)
        if self.value is object.__getattribute__ and args[0].can_constant():
            return o.generic_getattr(tx, args[0].as_constant())
        if self.value is object.__eq__ or self.value is object.__ne__:
            return ConstantVariable((o is args[0]) == (self.value is object.__eq__))
        unsupported("slot-method", f"call_method {o!r} {name}", f"{self.value!r} is implemented in C.")


class ModuleVariable(ObjectVariable):
    """An nn module: traced through its forward; parameters, buffers and submodules are read from the module's dicts by source."""

    def __repr__(self):
        return f"NNModuleVariable({self.cls.__name__})"

    def table(self, name) -> dict | None:
        d = self.value.__dict__.get(name)
        return d if isinstance(d, dict) else None

    def missing_attr(self, tx, name):
        if self.value is None:
            return super().missing_attr(tx, name)
        for where in ("_parameters", "_buffers", "_modules"):
            d = self.table(where)
            if d is not None and name in d:
                source = KeySource(AttrSource(self.source, where), name)
                return tx.wrap(d[name], source)
        return super().missing_attr(tx, name)

    def hasattr(self, tx, name):
        for where in ("_parameters", "_buffers", "_modules"):
            d = self.table(where)
            if d is not None and name in d and name not in self.written:
                tx.output.guard(AttrSource(self.source, where), "HAS_KEY", name)
                return True
        return super().hasattr(tx, name)

    def setattr(self, tx, name, value):
        from .tensor import TensorVariable

        if isinstance(value, ObjectVariable) and trace_rules.is_nn_module_class(value.cls):
            unsupported("module-setattr", f"setattr {self!r} {name}", "A submodule is assigned while tracing.")
        if isinstance(value, TensorVariable) and trace_rules.is_parameter_class(value.cls):
            unsupported("module-setattr", f"setattr {self!r} {name}", "A parameter is assigned while tracing.")
        # What Module.__setattr__ does with plain values and buffers is done when the write is replayed, through setattr().
        tx.side_effects.remember(self)
        tx.side_effects.touch(self)
        self.written[name] = value

    HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

    def call(self, tx, args, kwargs):
        call = type_lookup(self.cls, "__call__")
        if trace_rules.is_library_module_call(call):
            from . import module_hooks

            for name in self.HOOKS:
                d = self.table(name)
                if d:
                    return module_hooks.call_with_hooks(tx, self, call, args, kwargs)
                if d is not None:
                    tx.output.guard(AttrSource(self.source, name), "LENGTH", 0)
            return self.getattr(tx, "forward").call(tx, args, kwargs)
        return super().call(tx, args, kwargs)

    def items(self, tx):
        name = container_kind(self.cls)
        if name in ("ModuleList", "Sequential"):
            return [v for _, v in self.children(tx)]
        if name == "ModuleDict":
            return [ConstantVariable(k) for k, _ in self.children(tx)]
        return super().items(tx)

    def children(self, tx):
        return [
            (k.as_constant(), v)
            for k, v in tx.wrap(self.value.__dict__["_modules"], AttrSource(self.source, "_modules")).pairs(tx)
        ]

    def length(self, tx):
        if container_kind(self.cls):
            return len(self.children(tx))
        return super().length(tx)

    def truth(self, tx):
        return super().truth(tx)

    def getitem(self, tx, key):
        name = container_kind(self.cls)
        if name in ("ModuleList", "Sequential") and key.can_constant() and isinstance(key.as_constant(), int):
            c = self.children(tx)
            try:
                return c[key.as_constant()][1]
            except IndexError:
                tx.raise_user(IndexError(f"index {key.as_constant()} is out of range"))
        if name == "ModuleDict" and key.can_constant():
            return dict(self.children(tx))[key.as_constant()]
        return super().getitem(tx, key)

    def getattr(self, tx, name):
        if name in (
            "parameters",
            "named_parameters",
            "buffers",
            "named_buffers",
            "children",
            "named_children",
            "modules",
            "named_modules",
        ):
            return ModuleWalk(self, name)
        if container_kind(self.cls) == "ModuleDict" and name in ("items", "keys", "values"):
            return tx.wrap(self.value.__dict__["_modules"], AttrSource(self.source, "_modules")).getattr(tx, name)
        return super().getattr(tx, name)


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
                table = tx.wrap(m.value.__dict__[f"_{what}"], AttrSource(m.source, f"_{what}"))
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
            user_iter = type_lookup(cls, "__iter__")
            return c.__name__ if user_iter is type_lookup(c, "__iter__") else None
    return None


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
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            return ConstantVariable(getattr(self.value, name))
        if name == "__mro__":
            return tx.wrap_known(self.value.__mro__)
        if name == "__dict__":
            unsupported("class-dict", f"getattr {self!r} __dict__")
        a = type_lookup(self.value, name)
        if a is _MISSING:
            try:
                return tx.wrap_known(getattr(self.value, name))
            except AttributeError as e:
                tx.raise_user(e)
        if self.source is not None and not self.value.__module__.startswith("flambeau."):
            tx.output.guard(TypeLookupSource(self.source, name), "ID_MATCH", a)
        source = TypeLookupSource(self.source, name) if self.source is not None else None
        if isinstance(a, staticmethod):
            return tx.wrap_function(a.__func__)
        if isinstance(a, classmethod):
            if name == "_make" and hasattr(self.value, "_fields"):
                return MakeTuple(self.value)
            if trace_rules.is_torch_callable(a.__func__):
                return tx.wrap_known(getattr(self.value, name))
            return UserMethodVariable(tx.wrap_function(a.__func__), self)
        if isinstance(a, types.FunctionType):
            return tx.wrap_function(a, source)
        if hasattr(type(a), "__get__"):
            return tx.wrap_known(getattr(self.value, name))
        return tx.wrap(a, source) if source is not None else tx.wrap_known(a)

    def hasattr(self, tx, name):
        return hasattr(self.value, name)

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
        or cls.__new__ is not object.__new__
        or trace_rules.is_nn_module_class(cls)
        or issubclass(cls, BaseException)
    ):
        unsupported(
            "construct",
            f"constructing {cls.__module__}.{cls.__qualname__}",
            "Its construction is not plain Python (metaclass, __new__ or C base).",
        )
    obj = ObjectVariable(None, cls)
    init = type_lookup(cls, "__init__")
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
        owner = self.obj.value if isinstance(self.obj, ClassVariable) else self.obj.python_type()
        mro = owner.__mro__
        for c in mro[mro.index(self.cls) + 1 :]:
            if name in c.__dict__:
                a = c.__dict__[name]
                break
        else:
            tx.raise_user(AttributeError(f"'super' object has no attribute {name!r}"))
        if isinstance(a, types.FunctionType):
            if isinstance(self.obj, ClassVariable):
                return tx.wrap_function(a)
            return UserMethodVariable(tx.wrap_function(a), self.obj)
        if isinstance(a, staticmethod):
            return tx.wrap_function(a.__func__)
        if isinstance(a, classmethod):
            return UserMethodVariable(tx.wrap_function(a.__func__), ClassVariable(owner))
        if isinstance(a, property):
            return tx.wrap_function(a.fget).call(tx, [self.obj], {})
        if isinstance(self.obj, ObjectVariable):
            return SlotMethod(self.obj, name, a)
        from .base import MethodOf

        if hasattr(self.obj, "call_method"):
            return MethodOf(self.obj, name)
        unsupported("super", f"super().{name} of {self.obj!r}")


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
        pending = tx.side_effects.global_writes.get((id(self.value.__dict__), name))
        if pending is not None:
            return pending[1]
        try:
            value = getattr(self.value, name)
        except Exception as e:  # a lazy module may fail to import
            tx.raise_user(e)
        m = self.value
        if m.__name__ == "flambeau" or m.__name__.startswith("flambeau."):
            return tx.wrap_known(value)
        if self.source is not None and name in m.__dict__:
            return tx.wrap(value, KeySource(InstanceDictSource(self.source), name))
        return tx.wrap_known(value)

    def hasattr(self, tx, name):
        return hasattr(self.value, name)

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
        try:
            return tx.wrap_known(getattr(self.value, name))
        except AttributeError as e:
            tx.raise_user(e)

    def hasattr(self, tx, name):
        return hasattr(self.value, name)

    def call(self, tx, args, kwargs):
        from .torch_functions import TorchFunctionVariable

        return TorchFunctionVariable(self.value).call(tx, args, kwargs)
