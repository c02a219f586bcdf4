"""Modules of the nn kind: their registries, containers and walks over their parts."""

from __future__ import annotations

import types

from flambeau.fx import GraphModule

from ...exc import unsupported
from ...graph import tensor_queries
from ...guards.source import KeySource
from ...rules import trace_rules
from ...rules.reflect import module_of, mro_of, name_of
from ...tracing import world
from ...tracing.world import ABSENT
from ...tracing.wrapping import WRAPPERS, pin
from ..base import MethodOf, Variable
from ..containers.dicts import DictVariable
from ..iterators.container_iterators import ElementsVariable
from ..objects.instance import ObjectVariable
from ..tensors.tensor import TensorVariable
from ..values.constant import ConstantVariable
from .hooks import call_with_hooks
from .lazy_modules import initialise

__all__ = ["ModuleSetattr", "ModuleVariable", "is_library"]


class ModuleVariable(ObjectVariable):
    """An nn module: traced through its forward; parameters, buffers and submodules are read from the module's dicts by source. Of one that is
    made while tracing (it has no parameters, which are leaves) the library's own methods are traced."""

    def __init__(self, value, cls: type, source=None):
        super().__init__(value, cls, source)
        self.registries: dict[str, tuple[dict, Variable]] = {}  # those that were looked at

    REGISTRIES = ("_parameters", "_buffers", "_modules")

    def table(self, name) -> dict | None:
        d = self.value.__dict__.get(name) if self.value is not None else None
        return d if isinstance(d, dict) else None

    def registry(self, tx, name) -> Variable | None:
        """The variable of one of the module's own dicts: the same one however it is reached, so writes to it are seen."""
        if name in self.written:
            return self.written[name]
        table = self.table(name)
        if table is None:
            return None
        known = self.registries.get(name)
        if known is None or known[0] is not table:
            source = KeySource(world.instance_table(tx, self.value, self.source), name)
            known = self.registries[name] = table, tx.wrap(table, source)
        return known[1]

    def generic_getattr(self, tx, name):
        # The library's __getattr__ is not traced: it looks into three dicts.
        cls = self.cls
        hook = world.class_attr(tx, cls, "__getattr__")
        if not is_library(hook) or world.class_attr(tx, cls, "__getattribute__") is not object.__getattribute__:
            return super().generic_getattr(tx, name)
        if world.class_attr(tx, cls, name) is ABSENT and name not in self.written and not name.startswith("_"):
            if self.value is None or world.instance_attr(tx, self.value, self.source, name) is None:
                for where in ("_parameters", "_modules", "_buffers"):
                    d = self.registry(tx, where)
                    found = d.get_key(tx, name) if isinstance(d, DictVariable) else None
                    if found is not None:
                        return found
                tx.raise_user(AttributeError(f"{name_of(self.cls)!r} object has no attribute {name!r}"))
        return super().generic_getattr(tx, name)

    def setattr(self, tx, name, value):
        if self.value is not None and is_library(self.class_attr(tx, "__setattr__")):
            self.module_setattr(tx, name, value)
        else:
            super().setattr(tx, name, value)

    def module_setattr(self, tx, name, value):
        """What the library's Module.__setattr__ does."""
        if isinstance(value, ObjectVariable) and trace_rules.is_nn_module_class(value.cls):
            unsupported("module-setattr", f"setting {name} of {self!r}", "A submodule is assigned while tracing.")
        if isinstance(value, TensorVariable) and value.cls is not tensor_queries.Tensor:
            unsupported("module-setattr", f"setting {name} of {self!r}", "A parameter is assigned while tracing.")
        empty = value.is_constant() and value.as_constant() is None
        for where in ("_parameters", "_modules", "_buffers"):
            d = self.registry(tx, where)
            if isinstance(d, DictVariable) and d.contains(tx, ConstantVariable(name)).value:
                if not empty and not (where == "_buffers" and isinstance(value, TensorVariable)):
                    unsupported(
                        "module-setattr",
                        f"setting {name} of {self!r}",
                        "What is assigned has the wrong type for this name.",
                    )
                d.setitem(tx, ConstantVariable(name), value)
                return
        self.plain_setattr(tx, name, value)

    HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

    def call(self, tx, args, kwargs):
        with tx.output.recorder.within_module(self.source, self.cls):
            return self._call(tx, args, kwargs)

    def _call(self, tx, args, kwargs):
        call = self.class_attr(tx, "__call__")
        if not is_library(call) or not is_library(self.class_attr(tx, "_call_impl")):
            return super().call(tx, args, kwargs)
        if self.value is not None and "_initialize_hook" in vars(self.value):
            initialise(tx, self, args, kwargs)
        compiled = self.getattr(tx, "_compiled_call")
        if not (compiled.is_constant() and compiled.as_constant() is None):
            return compiled.call(tx, [self, *args], kwargs)
        hooks = self.class_attr(tx, "_call_impl").__globals__["_hooks"]
        if world.module_attr(tx, hooks, "any_global").as_constant() or self.hooks(tx):
            return call_with_hooks(tx, self, hooks, args, kwargs)
        return self.getattr(tx, "forward").call(tx, args, kwargs)

    def hooks(self, tx) -> list[str]:
        """The tables of hooks that are not empty. That the others are is guarded."""
        if self.value is None:
            return [n for n in self.HOOKS if (table := self.written.get(n)) is None or table.length(tx)]
        own, full = self.value.__dict__, []
        for n in self.HOOKS:
            table = own.get(n)
            if n in self.written or not isinstance(table, dict) or len(table):
                full.append(n)
        empty = tuple([n for n in self.HOOKS if n not in full]) if full else self.HOOKS
        if empty:
            tx.output.guard(world.instance_table(tx, self.value, self.source), "EMPTY_DICTS", empty)
        return full

    def shortcut(self, tx, *names) -> str | None:
        """The library's container that this is, as long as these methods are the library's."""
        kind = container_kind(self.cls)
        return None if kind is None or world.is_overridden(tx, self.cls, *names) else kind

    def iter(self, tx):
        name = self.shortcut(tx, "__iter__")
        if name is None:
            return super().iter(tx)
        if name == "ModuleDict":
            return ElementsVariable([ConstantVariable(k) for k, _ in self.children(tx)], cls=type(iter({})))
        return ElementsVariable([v for _, v in self.children(tx)], cls=type(iter({}.values())))

    def children(self, tx):
        return [(k.as_constant(), v) for k, v in self.registry(tx, "_modules").pairs(tx)]

    def length(self, tx):
        if self.shortcut(tx, "__len__"):
            return len(self.children(tx))
        return super().length(tx)

    def getitem(self, tx, key):
        key = ConstantVariable(key.as_constant()) if key.is_symbol else key  # which module it is
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
            and name not in self.written
            and (self.value is None or name not in self.value.__dict__)
            and not self.walk_overridden(tx)
        ):
            if self.value is not None:
                tx.output.guard(self.source, "NO_INSTANCE_KEY", name)
            return ModuleWalk(self, name)
        if name in ("items", "keys", "values") and self.shortcut(tx, name) == "ModuleDict":
            return self.registry(tx, "_modules").getattr(tx, name)
        return super().getattr(tx, name)

    def walk_overridden(self, tx) -> bool:
        return world.is_overridden(tx, self.cls, *self.WALKS, "_named_members")


def is_library(f) -> bool:
    return f is not ABSENT and type(f) is types.FunctionType and module_of(f).startswith("flambeau.")


class ModuleWalk(MethodOf):
    """module.parameters() and the like: walks the module's dicts through guarded sources."""

    def walk(self, tx, m, prefix, seen):
        if id(m) in seen:
            return
        seen.add(id(m))
        if m.walk_overridden(tx):
            unsupported(
                "module-walk", f"{self.name}() over {m!r}", f"{name_of(m.cls)} has its own way to list its parts."
            )
        yield prefix, m
        for k, c in m.children(tx):
            if isinstance(c, ModuleVariable):
                yield from self.walk(tx, c, f"{prefix}.{k}" if prefix else k, seen)

    def call(self, tx, args, kwargs):
        if args or kwargs:
            unsupported("module-walk", f"{self.name}() with arguments")
        what = self.name.removeprefix("named_")
        pairs: list[tuple[str, Variable]] = []
        if what == "children":
            unique = {id(c): (k, c) for k, c in reversed(self.owner.children(tx)) if isinstance(c, ModuleVariable)}
            pairs = list(unique.values())[::-1]
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
        sources = [v.source for _, v in pairs if v.source is not None]
        tx.output.guards.not_aliased(sources)  # what is shared is listed once
        if self.name.startswith("named_"):
            return ElementsVariable(
                [tx.make_tuple([ConstantVariable(k), v]) for k, v in pairs], cls=types.GeneratorType
            )
        return ElementsVariable([v for _, v in pairs], cls=types.GeneratorType)


def container_kind(cls: type) -> str | None:
    for c in mro_of(cls):
        if module_of(c).startswith("flambeau.") and name_of(c) in ("ModuleList", "Sequential", "ModuleDict"):
            return name_of(c)
    return None


class ModuleSetattr(Variable):
    """``super().__setattr__`` in a module, when it is the library's."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def call(self, tx, args, kwargs):
        self.module.module_setattr(tx, args[0].as_constant(), args[1])
        return ConstantVariable(None)


@WRAPPERS.row("nn module")
def _(tx, value, source):
    cls = type(value)
    if not trace_rules.is_nn_module_class(cls):
        return None
    pin(tx, source, "TYPE_MATCH", cls)
    if isinstance(value, GraphModule):
        value.real_recompile()  # its class has a function for ``forward`` only then
    return ModuleVariable(value, cls, source)
