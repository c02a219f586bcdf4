"""``threading.local``: its attributes are those of a dict that each thread has for itself. Guards and captured code ask for that of their thread."""

from __future__ import annotations

import threading

from ...exc import unsupported
from ...guards.source import GetAttrSource
from ...rules.reflect import ABSENT, is_below, name_of, type_item
from ...tracing import world
from ...tracing.wrapping import WRAPPERS, pin
from ..base import HeldVariable
from ..containers.dicts import DictVariable
from ..values.constant import ConstantVariable

__all__ = ["ThreadLocalVariable"]


class ThreadLocalVariable(HeldVariable):
    mutable = True

    def __init__(self, tx, value, source):
        super().__init__(value, source)
        cls = type(value)
        if type_item(cls, "__init__") is not object.__init__:
            unsupported("thread-local", f"a {name_of(cls)}", "Each thread that looks at it first runs its __init__.")
        self.table = DictVariable(source=GetAttrSource(source, "__dict__"), base=value.__dict__)
        tx.side_effects.meet(self.table, value.__dict__)

    def reconstruct(self, cg):
        cg.load_source(self.source)

    def truth(self, tx):
        return True

    def getattr(self, tx, name):
        cls = type(self.value)
        if name == "__dict__":
            return self.table
        if name == "__class__":
            return tx.wrap_known(cls)
        found = world.class_attr(tx, cls, name)
        if found is not ABSENT and world.is_data_descriptor(tx, found):
            unsupported("thread-local", f"reading {name} of {self!r}", "Its class decides what that is.")
        own = self.table.get_key(tx, name)
        if own is not None:
            return own
        if found is not ABSENT:
            return world.bind(tx, self, cls, name, found)
        if world.class_attr(tx, cls, "__getattr__") is not ABSENT:
            return world.missing(tx, self, cls, name)
        self.raise_missing(tx, name)

    def raise_missing(self, tx, name: str):
        cls = type(self.value)
        said = "_thread._local" if cls is threading.local else name_of(cls)
        tx.raise_user(AttributeError(f"{said!r} object has no attribute {name!r}"))

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def refuse_hooks(self, tx, name: str, hook: str) -> None:
        cls = type(self.value)
        found = world.class_attr(tx, cls, name)
        own = world.class_attr(tx, cls, hook)
        if own is not PLAIN[hook] or (found is not ABSENT and world.is_data_descriptor(tx, found)):
            unsupported("thread-local", f"{hook} of {self!r} {name}", "Its class decides what that does.")

    def setattr(self, tx, name, value):
        self.refuse_hooks(tx, name, "__setattr__")
        self.table.setitem(tx, ConstantVariable(name), value)

    def delattr(self, tx, name):
        self.refuse_hooks(tx, name, "__delattr__")
        if self.table.get_key(tx, name) is None:
            self.raise_missing(tx, name)
        self.table.delitem(tx, ConstantVariable(name))


PLAIN = {hook: type_item(threading.local, hook) for hook in ("__setattr__", "__delattr__")}


@WRAPPERS.row("thread local")
def _(tx, value, source):
    if not is_below(type(value), threading.local):
        return None
    pin(tx, source, "TYPE_MATCH", type(value))
    return ThreadLocalVariable(tx, value, source)
