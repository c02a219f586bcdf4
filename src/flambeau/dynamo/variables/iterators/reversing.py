"""``reversed``."""

from __future__ import annotations

from flambeau._C import TensorBase

from ...exc import unsupported
from ...rules.reflect import has_item
from ..base import Variable
from ..containers.deques import DequeVariable
from ..containers.dicts import DictVariable, DictView
from ..containers.lists import ListVariable
from ..containers.ranges import RangeVariable
from ..values.constant import ConstantVariable
from ..values.given_text import GivenTextVariable, TextIteratorVariable
from .container_iterators import BackwardsVariable, DequeIteratorVariable, KeyedIteratorVariable

__all__ = ["backwards"]


def backwards(tx, v: Variable) -> Variable:
    """``reversed`` of a builtin container, past what a class derived from it overrides."""
    if isinstance(v, GivenTextVariable):
        return TextIteratorVariable(v, backwards)
    if isinstance(v, DequeVariable):
        return DequeIteratorVariable(v, FromTheEnd(v.realized(tx)), reversed)
    if isinstance(v, ListVariable):
        v.realized(tx)
        return BackwardsVariable(v, len(v.elements), lambda tx, at: v.elements[at], type(reversed([])))
    if isinstance(v, DictVariable | DictView):
        keyed = v.owner if isinstance(v, DictView) else v
        empty = keyed.cls()
        cls = type(reversed(getattr(v.cls, v.what)(empty) if isinstance(v, DictView) else empty))
        return KeyedIteratorVariable(v.items(tx)[::-1], v, keyed, cls, reversed)
    if isinstance(v, RangeVariable) and hasattr(v, "value"):
        return RangeVariable(v.value[::-1]).iter(tx)
    cls = v.python_type()
    if not (has_item(cls, "__reversed__") or (has_item(cls, "__len__") and has_item(cls, "__getitem__"))):
        tx.raise_user(TypeError(f"{v.python_type_name()!r} object is not reversible"))
    if issubclass(cls, TensorBase):
        return v.getattr(tx, "__reversed__").call(tx, [], {})
    if has_item(cls, "__reversed__"):
        unsupported("reversed", f"reversed of {v!r}")
    return BackwardsVariable(v, v.length(tx), lambda tx, at: v.getitem(tx, ConstantVariable(at)), reversed)


class FromTheEnd:
    """A list from its end, as it is when an element is asked for."""

    def __init__(self, elements: list):
        self.elements = elements

    def __len__(self):
        return len(self.elements)

    def __getitem__(self, at: int):
        return self.elements[-1 - at]
