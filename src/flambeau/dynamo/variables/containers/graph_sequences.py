"""Lists and tuples that operations in the graph return."""

from __future__ import annotations

from collections.abc import Callable

from ..base import Variable
from .lists import ListVariable
from .sequences import SequenceVariable, TupleVariable

__all__ = ["Result"]


class Result(SequenceVariable):
    """The list or tuple that an operation in the graph returned: its node, until an element is asked for. So a chain of operators on lists
    (``_foreach_*``) has no nodes for elements."""

    @classmethod
    def of(cls, node, value: list | tuple, make: Callable[[], list[Variable]]) -> Result:
        self = (ResultList if type(value) is list else ResultTuple)([])
        self.node, self.count, self.make, self._elements = node, len(value), make, None
        return self

    @property
    def elements(self) -> list[Variable]:
        if self._elements is None:
            self._elements = self.make()
        return self._elements

    @elements.setter
    def elements(self, elements) -> None:
        self._elements = elements

    def seen(self):
        return self._elements or []

    def as_proxy(self):
        return self.node if self._elements is None else super().as_proxy()

    def can_constant(self):
        return self._elements is not None and super().can_constant()

    def length(self, tx):
        return self.count if self._elements is None else super().length(tx)


class ResultList(Result, ListVariable):
    kind = ListVariable


class ResultTuple(Result, TupleVariable):
    kind = TupleVariable
