"""Methods of values that are known while tracing."""

from __future__ import annotations

import enum
import types

from ...exc import unsupported
from ...rules.reflect import name_of
from ...tracing import world
from ..base import WHICH_NAN, Variable, has_nan
from ..iterators.protocol import fast_sequence
from .symbolic import specialized
from .text import format_fields

__all__ = ["ConstantMethodVariable"]


class ConstantMethodVariable(Variable):
    """A bound method of a constant: folded."""

    def __init__(self, value, name):
        super().__init__()
        self.value, self.name = value, name

    def python_type(self):
        return types.BuiltinMethodType

    def call(self, tx, args, kwargs):
        if self.name == "join" and len(args) == 1 and not args[0].can_constant():
            args = [tx.make_list(fast_sequence(tx, args[0], "can only join an iterable"))]
        if any(a.is_symbol for a in [*args, *kwargs.values()]):
            args = [specialized(tx, a) for a in args]
            kwargs = {k: specialized(tx, v) for k, v in kwargs.items()}
        if not all(a.can_constant() for a in [*args, *kwargs.values()]):
            if self.name == "format" and isinstance(self.value, str):
                if (made := format_fields(tx, self.value, args, kwargs)) is not None:
                    return made
            unsupported("constant-method", f"calling {name_of(type(self.value))}.{self.name} with {args!r}")
        for a in (*args, *kwargs.values()) if self.name == "format" else ():
            if isinstance(a.as_constant(), enum.Enum):
                world.folded(
                    tx, a.as_constant(), ("__format__", "__str__", "__repr__", "__getattribute__", "__getitem__")
                )
        if has_nan(self.value) and any(has_nan(a.as_constant()) for a in args):
            unsupported("identity", f"{self.name} of {self.value!r}", WHICH_NAN)
        known, named = [a.as_constant() for a in args], {k: v.as_constant() for k, v in kwargs.items()}
        return tx.wrap_made(tx.evaluated(getattr(self.value, self.name), *known, **named))

    def reconstruct(self, cg):
        cg.load_const(self.value)
        cg.load_attr(self.name)
