"""Objects that nothing else is known of."""

from __future__ import annotations

import types

import numpy as np

from ...exc import unsupported
from ...guards.source import GetAttrSource
from ...rules.reflect import IMMUTABLE, by_identity, flags_of, name_of, type_item
from ...tracing import world
from ...tracing.current_frame import current
from ...tracing.wrapping import WRAPPERS, pin
from ..base import HeldVariable
from ..functions.skipped_functions import SkippedFunctionVariable


class OpaqueVariable(HeldVariable):
    """An object that is only passed around. Which one it is, is guarded where that is asked."""

    def pinned(self, tx):
        if self.source is not None:
            pin(tx, self.source, "ID_MATCH", self.value)

    def key_object(self):
        if self.source is None or not by_identity(self.value):
            unsupported("dict-key", f"{self!r} as a dict key is not traced")
        self.pinned(current())
        return self.value

    def getattr(self, tx, name):
        if self.source is not None and is_c_method(type(self.value), name):  # whichever object it is, the call is plain
            return SkippedFunctionVariable(
                getattr(self.value, name), *self.says_of(name), source=GetAttrSource(self.source, name)
            )
        self.pinned(tx)
        if name == "state" and isinstance(self.value, np.random.BitGenerator):
            unsupported("numpy-random", "the state of a bit generator", "Draws of the graph come before it is read.")
        try:
            value = getattr(self.value, name, None)
        except Exception as e:  # a property's name since 3.13 is asked of its getter, which may be the program's object
            unsupported("attribute", f"{name_of(type(self.value))}.{name}, which raises {name_of(type(e))}: {e}")
        if callable(value):
            if type(value) is types.MethodWrapperType and type(self.value) is types.GetSetDescriptorType:
                return tx.wrap_c_callable(value)
            return SkippedFunctionVariable(value, *self.says_of(name))
        return world.library_attr(tx, self, self.value, self.source, name)

    def says_of(self, name: str) -> tuple[str, str, str]:
        return "c-method", f"call to {name_of(type(self.value))}.{name}", "It is implemented in C."


def is_c_method(cls: type, name: str) -> bool:
    """Whether a name of the class's objects is a method that nobody can replace."""
    return bool(flags_of(cls) & IMMUTABLE) and isinstance(type_item(cls, name), types.MethodDescriptorType)


@WRAPPERS.row("other object")
def _(tx, value, source):
    pin(tx, source, "TYPE_MATCH", type(value))
    return OpaqueVariable(value, source)
