"""Ranges of known numbers."""

from __future__ import annotations

from collections.abc import Sequence

from ...exc import unsupported
from ...tracing.wrapping import exactly
from ..base import KnownVariable, Variable, method_of
from ..iterators.container_iterators import ElementsVariable
from ..iterators.protocol import MOST
from ..values.constant import ConstantVariable

__all__ = ["RangeVariable"]


class _Numbers(Sequence[Variable]):
    """The numbers of a range, which becomes known when they are asked for."""

    def __init__(self, over: RangeVariable):
        self.over = over

    def __len__(self):
        r = self.over.value
        if (r.stop - r.start) // r.step > MOST:
            unsupported("long-loop", f"a loop over {r}", "Loops are unrolled.", "Write it with tensor operations.")
        return len(r)

    def __getitem__(self, k):
        numbers = self.over.value[k]
        return [ConstantVariable(n) for n in numbers] if isinstance(k, slice) else ConstantVariable(numbers)


class RangeVariable(KnownVariable):
    is_container = True

    def items(self, tx):
        return [*_Numbers(self)]

    def iter(self, tx):
        return ElementsVariable(_Numbers(self), self, self.iterator_type())

    def iterator_type(self) -> type:
        return type(iter(self.value))

    def length(self, tx):
        try:
            return len(self.value)
        except OverflowError as e:
            tx.raise_user(e)

    def truth(self, tx):
        return bool(self.value)

    def getitem(self, tx, key):
        try:
            return tx.wrap_known(self.value[key.as_constant()])
        except (IndexError, TypeError, ValueError) as e:
            tx.raise_user(e.with_traceback(None))

    def getattr(self, tx, name):
        if name in ("start", "stop", "step"):
            return ConstantVariable(getattr(self.value, name))
        return method_of(tx, self, name)

    def call_method(self, tx, name, args, kwargs):
        if name in ("index", "count", "__len__", "__contains__", "__getitem__"):
            try:
                return tx.wrap_known(getattr(self.value, name)(*[a.as_constant() for a in args]))
            except (IndexError, OverflowError, TypeError, ValueError) as e:
                tx.raise_user(e)
        return super().call_method(tx, name, args, kwargs)

    def contains(self, tx, key):
        return ConstantVariable(key.as_constant() in self.value)

    def reconstruct(self, cg):
        r = self.value
        cg.call_function(range, lambda: [cg.load_const(x) for x in (r.start, r.stop, r.step)], 3)


@exactly(range)
def _(tx, value, source):
    tx.output.guard(source, "EQUALS_MATCH", value)
    return RangeVariable(value, source)
