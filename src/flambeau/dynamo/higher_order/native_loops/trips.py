"""What a loop runs over: a range, arrays, or enumerate() and zip() of them, and about how many turns that is."""

from __future__ import annotations

from typing import Any

from ....base.records import slotted
from ...variables.base import Variable
from ...variables.containers.ranges import RangeVariable
from ...variables.iterators.builtin_iterators import EnumerateVariable, ZipVariable
from ...variables.iterators.container_iterators import NumpyIteratorVariable
from ...variables.numpy.ndarray import NumpyNdarrayVariable
from ...variables.numpy.places import IndicesVariable
from ...variables.values.given_text import GivenTextVariable, TextIteratorVariable
from ...variables.values.symbolic import SymbolicRangeVariable, SymbolicVariable

__all__ = ["Elements", "Ends", "ends_of", "may_have_elements"]


@slotted
class Ends:
    """A range that isn't empty; its ends may be symbols."""

    start: int | SymbolicVariable
    stop: int | SymbolicVariable
    step: int
    about: int
    """How many turns at this call."""

    def turns(self):
        """How many turns, an int or a SymInt."""
        start, stop = (end.number if isinstance(end, SymbolicVariable) else end for end in (self.start, self.stop))
        return (stop - start + self.step - (1 if self.step > 0 else -1)) // self.step


@slotted
class Elements:
    """What flambeau.loops is to iterate over, which isn't empty: about how many elements, how many, and the arrays and generators that are read, by
    the ids of their nodes."""

    of: Any
    about: int
    count: Any
    operands: dict

    def turns(self):
        return self.count


def ends_of(v: RangeVariable) -> Ends | None:
    """None for a range that is empty, or of a step that varies."""
    if not isinstance(v, SymbolicRangeVariable) or v.known:
        r = v.value
        return Ends(r.start, r.stop, r.step, len(r)) if r else None
    start, stop, step = v.ends()
    if isinstance(step, SymbolicVariable):
        return None
    step = step.as_constant()
    first, end = (e.number if isinstance(e, SymbolicVariable) else e.as_constant() for e in (start, stop))
    if step == 0 or not (first < end if step > 0 else first > end):
        return None
    hints = [
        e.number.env.hint(e.number.expr) if isinstance(e, SymbolicVariable) else e.as_constant() for e in (start, stop)
    ]
    if any(type(h) is not int for h in hints):
        return None
    ends = [e if isinstance(e, SymbolicVariable) else e.as_constant() for e in (start, stop)]
    return Ends(*ends, step, len(range(*hints, step)))


def may_have_elements(v: Variable) -> bool:
    """Whether it is an array, a text or what iterates over such: a quick look before flambeau.loops is told of it."""
    if isinstance(v, EnumerateVariable):
        return may_have_elements(v.it)
    if isinstance(v, ZipVariable):
        return all(map(may_have_elements, v.its))
    kinds = (NumpyNdarrayVariable, NumpyIteratorVariable, GivenTextVariable, TextIteratorVariable, IndicesVariable)
    return isinstance(v, kinds) or (v.is_constant() and type(v.as_constant()) is bytes)
