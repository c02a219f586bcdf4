"""Namespaces: the dict of an instance, of a module, Python modules, objects of the library."""

from __future__ import annotations

import gc
import types

from ...exc import unsupported
from ...guards.source import ConstSource, InstanceDictSource
from ...guards.tree import ABSENT, type_item
from ...rules.reflect import qualname_of
from ...tracing import world
from ...tracing.wrapping import exactly, pin
from ..base import HeldVariable, Variable
from ..containers.dicts import DictVariable
from ..values.constant import ConstantVariable

__all__ = ["InstanceDict", "ClassDict", "NamespaceDict", "PythonModuleVariable"]


class InstanceDict(DictVariable):
    """``obj.__dict__``: a view of the object's attributes. Reading and writing through it is reading and writing the object."""

    def __init__(self, owner):
        super().__init__(source=InstanceDictSource(owner.source) if owner.source is not None else None)
        self.owner = owner

    def reloadable(self):
        return False

    def reconstruct(self, cg):
        cg(self.owner)
        cg.load_attr("__dict__")

    def _slots(self, name) -> bool:
        return isinstance(type_item(self.owner.cls, name), types.MemberDescriptorType)

    def _key(self, k):
        name = super()._key(k)
        if not isinstance(name, str):
            unsupported("instance-dict", f"the key {name!r} in the __dict__ of an object")
        return name

    def _lookup(self, tx, k):
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
            tx.raise_missing(key)
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
            tx.raise_missing(key)
        tx.side_effects.store_global(self.table, k, None)

    def call_method(self, tx, name, args, kwargs):
        if name in ("clear", "popitem"):
            unsupported("namespace", f"{name}() of a namespace")
        if name == "copy":
            return DictVariable({k.as_constant(): (k, v) for k, v in self.pairs(tx)})
        return super().call_method(tx, name, args, kwargs)


class ClassDict(NamespaceDict):
    """``cls.__dict__``, which can only be read."""

    WRITES = ("clear", "pop", "popitem", "setdefault", "update")

    def __init__(self, cls: type):
        super().__init__(gc.get_referents(type.__dict__["__dict__"].__get__(cls))[0], qualname_of(cls))
        self.of = cls

    def python_type(self):
        return types.MappingProxyType

    def reconstruct(self, cg):
        cg.load_const(self.of)
        cg.load_attr("__dict__")

    def setitem(self, tx, key, value):
        tx.raise_user(TypeError("'mappingproxy' object does not support item assignment"))

    def delitem(self, tx, key):
        tx.raise_user(TypeError("'mappingproxy' object doesn't support item deletion"))

    def call_method(self, tx, name, args, kwargs):
        if name in self.WRITES:
            tx.raise_user(AttributeError(f"'mappingproxy' object has no attribute {name!r}"))
        return super().call_method(tx, name, args, kwargs)


class PythonModuleVariable(HeldVariable):
    def __repr__(self):
        return f"module {self.value.__dict__.get('__name__')}"

    def truth(self, tx):
        return True

    def getattr(self, tx, name):
        if name == "__getattribute__" and type(self.value) is types.ModuleType:
            return ModuleLookupVariable(self)
        return world.module_attr(tx, self.value, name)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def setattr(self, tx, name, value):
        hook = world.class_attr(tx, type(self.value), "__setattr__")
        if hook is not types.ModuleType.__setattr__ or world.class_attr(tx, type(self.value), name) is not ABSENT:
            unsupported("setattr", f"setting {name} of {self!r}", "The module's class decides what that does.")
        tx.side_effects.store_global(self.value.__dict__, name, value)


class ModuleLookupVariable(Variable):
    """``module.__getattribute__``, which is another object each time it is asked for."""

    def __init__(self, module: PythonModuleVariable):
        super().__init__()
        self.module = module

    def __repr__(self):
        return f"{self.module!r}.__getattribute__"

    def python_type(self):
        return types.MethodWrapperType

    def truth(self, tx):
        return True

    def call(self, tx, args, kwargs):
        name = args[0].as_constant() if len(args) == 1 and not kwargs and args[0].can_constant() else None
        if type(name) is not str:
            unsupported("builtin", f"{self!r} of what isn't a name that is known")
        return self.module.getattr(tx, name)

    def reconstruct(self, cg):
        cg(self.module)
        cg.load_attr("__getattribute__")


@exactly(types.ModuleType)
def _(tx, value, source):
    pin(tx, source, "ID_MATCH", value)
    return PythonModuleVariable(value, source)
