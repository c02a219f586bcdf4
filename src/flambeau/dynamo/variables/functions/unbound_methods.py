"""Methods of builtin classes that are taken from the class: ``str.upper``, ``list.append``, ``object.__setattr__``."""

from __future__ import annotations

from ...exc import unsupported
from ..base import HeldVariable, refuse_arguments
from ..containers.dicts import DictView
from ..objects.instance import ObjectVariable, SlotMethod

__all__ = ["UnboundMethod"]


class UnboundMethod(HeldVariable):
    """str.upper, list.append, object.__setattr__ taken from the type."""

    def __init__(self, cls, name, value):
        super().__init__(value)
        self.cls, self.name = cls, name

    def call(self, tx, args, kwargs):
        o, owner = args[0] if args else None, getattr(self.value, "__objclass__", object)
        kind = type(None) if o is None else type(o.as_constant()) if o.is_constant() else o.python_type()
        # By identity: a metaclass of the program may have an __eq__.
        told = o is None or o.is_constant() or any(kind is t for t in (int, float, list, dict, set, tuple, frozenset))
        if o is None or told and not issubclass(kind, owner):
            try:  # refuses its receiver before it does anything
                self.value(*(a.as_constant() if a.is_constant() else kind() for a in args[:1]))
            except TypeError as e:
                tx.raise_user(TypeError(str(e)))
            unsupported("descriptor", f"{self.name} of another class")
        if isinstance(o, ObjectVariable) or self.value is type.__getattribute__:
            return SlotMethod(o, self.name, self.value).call(tx, args[1:], kwargs)
        if o.is_container:
            refuse_arguments(tx, kind, self.name, args[1:], kwargs)
        made = o.call_method(tx, self.name, args[1:], kwargs)
        if isinstance(made, DictView):
            made.cls = owner
        return made
