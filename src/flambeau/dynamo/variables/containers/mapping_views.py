"""``types.MappingProxyType``: read-only views of dicts."""

from __future__ import annotations

import gc
import types

from ...exc import unsupported
from ...guards.source import CallSource
from ...tracing.wrapping import WRAPPERS
from ..base import Variable, contents_of, method_of
from ..functions.handlers import handles
from .dicts import DictVariable

__all__ = ["MappingVariable", "of_mapping"]


def underlying(proxy: types.MappingProxyType) -> dict:
    """The mapping that a read-only view shows."""
    return gc.get_referents(proxy)[0]


def of_mapping(tx, value, source) -> Variable:
    mapping = underlying(value)
    if isinstance(mapping, dict) and "__module__" in mapping and "__doc__" in mapping:
        unsupported("class-dict", "the __dict__ of a class", "It is another object at each read.")
    tx.output.guard(source, "TYPE_MATCH", types.MappingProxyType)
    return MappingVariable(tx.wrap(mapping, CallSource(source, underlying, "mapping")), source)


class MappingVariable(Variable):
    """A read-only view of a dict."""

    is_container = True

    READS = frozenset(
        "get keys values items copy __getitem__ __contains__ __len__ __iter__ __eq__ __or__ __ror__ __reversed__".split()
    )

    def __init__(self, shown: Variable, source=None):
        super().__init__(source)
        self.shown = shown

    def pairs(self, tx):
        return self.shown.pairs(tx)

    def python_type(self):
        return types.MappingProxyType

    def reconstruct(self, cg):
        cg.call_function(types.MappingProxyType, lambda: cg(self.shown), 1)

    def truth(self, tx):
        return bool(self.shown.length(tx))

    def getattr(self, tx, name):
        if name not in self.READS:
            return method_of(tx, self, name)
        return self.shown.getattr(tx, name)

    def getitem(self, tx, key):
        return self.shown.getitem(tx, key)

    def contains(self, tx, key):
        return self.shown.contains(tx, key)

    def items(self, tx):
        return self.shown.items(tx)

    def iter(self, tx):
        return self.shown.iter(tx)

    def length(self, tx):
        return self.shown.length(tx)

    def expected_length(self, tx):
        self.shown.expected_length(tx)

    def setitem(self, tx, key, value):
        if key.is_tensor:  # read as an index, before it is refused
            unsupported("setitem", f"item assignment to {self!r}")
        tx.raise_user(TypeError("'mappingproxy' object does not support item assignment"))

    def delitem(self, tx, key):
        tx.raise_user(TypeError("'mappingproxy' object doesn't support item deletion"))


@handles(types.MappingProxyType)
def _(tx, args, kwargs):
    shown = (args[0] if args else kwargs["mapping"]).unwrap()
    return MappingVariable(shown) if isinstance(contents_of(shown), DictVariable) else None


@WRAPPERS.row("mapping proxy")
def _(tx, value, source):
    return of_mapping(tx, value, source) if type(value) is types.MappingProxyType else None
