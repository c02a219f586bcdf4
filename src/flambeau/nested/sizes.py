"""The size of a ragged dimension: a symbolic integer that stands for "one length for each sequence"."""

from __future__ import annotations

import itertools

from ..base.records import slotted
from ..base.symint import SymInt
from ..base.weak import Noted

__all__ = ["RAGGED_SIZES", "Extremes", "NestedInt", "ragged_size"]

_numbers = itertools.count(1)
RAGGED_SIZES = Noted()  # of offsets, or of lengths where there are some: tensors that share them have one size


@slotted
class Extremes:
    """The lengths of the shortest and of the longest sequence. An object, so that captured code that hands it on reads no length."""

    shortest: int
    longest: int


class NestedInt(SymInt):
    """``factor * j<number>``: equal to itself only, at least 2 as far as comparisons know. It has no value: arithmetic but products with numbers,
    and whatever asks for an int, raise."""

    __slots__ = ("number", "factor")

    def __init__(self, number: int, factor: int = 1):
        super().__init__(None, None)
        self.number, self.factor = number, factor

    def _key(self) -> tuple[int, int]:
        return self.number, self.factor

    def __repr__(self):
        return f"j{self.number}" if self.factor == 1 else f"{self.factor}*j{self.number}"

    __str__ = __repr__

    def __format__(self, spec):
        return format(repr(self), spec)

    @property
    def hint(self):
        """None: there is no example value."""
        return None

    def maybe_as_int(self):
        return None

    def __mul__(self, other):
        return NestedInt(self.number, self.factor * other) if isinstance(other, int) else self._no_value("product")

    __rmul__ = __mul__

    def __eq__(self, other):
        return isinstance(other, NestedInt) and self._key() == other._key()

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self._key())

    def _at_least(self, other, least: int, name: str) -> bool:
        if isinstance(other, int) and other <= least:
            return True
        if isinstance(other, NestedInt) and other.number == self.number:
            return self.factor >= other.factor if least == 2 else self.factor > other.factor
        raise ValueError(f"{name}: relation is indeterminate")

    def __ge__(self, other):
        return self._at_least(other, 2, "ge")

    def __gt__(self, other):
        return self._at_least(other, 1, "gt")

    def __lt__(self, other):
        return not self._at_least(other, 2, "ge")

    def __le__(self, other):
        return not self._at_least(other, 1, "gt")

    def __bool__(self):
        return True

    def _no_value(self, *_):
        raise NotImplementedError(
            f"{self!r}, the size of a ragged dimension, has no value: see offsets() and lengths()"
        )

    _value = __add__ = __radd__ = __sub__ = __rsub__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _no_value
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = __abs__ = __and__ = __or__ = __xor__ = _no_value
    __int__ = __float__ = __index__ = _no_value

    def __reduce__(self):
        return str, (repr(self),)


def ragged_size(source) -> NestedInt:
    """The size that ``source`` says, a nested tensor's lengths or, without them, its offsets: the same object for the same tensor."""
    found = RAGGED_SIZES.get(source)
    if found is None:
        found = RAGGED_SIZES[source] = NestedInt(next(_numbers))
    return found
