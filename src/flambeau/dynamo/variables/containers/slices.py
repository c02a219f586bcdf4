"""Slices: three parts, which may be numbers that vary."""

from __future__ import annotations

from ...exc import unsupported
from ...guards.source import GetAttrSource
from ...tracing.wrapping import exactly, pin
from ..base import Variable, method_of

__all__ = ["SliceVariable"]


class SliceVariable(Variable):
    is_container = True

    def __init__(self, parts, source=None):
        super().__init__(source)
        self.parts = [*parts]

    def python_type(self):
        return slice

    def can_constant(self):
        return all(p.can_constant() for p in self.parts)

    def as_constant(self):
        for p in self.parts:
            if not (p.can_constant() or p.is_symbol):
                unsupported(
                    "data-dependent", "a slice of a Python sequence by a tensor", "The value depends on tensor data."
                )
        return slice(*[p.as_constant() for p in self.parts])

    def as_proxy(self):
        return slice(*[p.as_proxy() for p in self.parts])

    def getattr(self, tx, name):
        if name in ("start", "stop", "step"):
            return self.parts[("start", "stop", "step").index(name)]
        return method_of(tx, self, name)

    def call_method(self, tx, name, args, kwargs):
        # A number that varies becomes a constant.
        if name == "indices" and all(v.can_constant() or v.is_symbol for v in (*self.parts, *args)):
            return tx.operators.fold(tx, slice.indices, [self, *args])
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg):
        cg.all(self.parts)
        cg.emit("BUILD_SLICE", len(self.parts))


@exactly(slice)
def of_slice(tx, value, source):
    pin(tx, source, "TYPE_MATCH", slice)
    return SliceVariable([tx.wrap(getattr(value, n), GetAttrSource(source, n)) for n in ("start", "stop", "step")])
