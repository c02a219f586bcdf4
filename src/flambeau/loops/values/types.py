"""The types of values, and how they are joined where paths of the region meet: a lattice, whose top is CONFLICT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.records import replace, slotted
from ...inductor.assembly.instructions import ParameterOperand
from ..numbers import bounds as between
from ..numbers.relations import NONE, Relations, both
from .declined import Declined
from .memory_types import Size
from .values import (
    ArrayView,
    Container,
    Element,
    Iterator,
    Known,
    LocalFunction,
    Method,
    Null,
    Scalar,
    Stream,
    Text,
    Tuple,
)

__all__ = [
    "CONFLICT",
    "ContainerType",
    "PerhapsType",
    "ScalarType",
    "State",
    "TextType",
    "TupleType",
    "ViewType",
    "join",
    "type_of",
    "unrelated",
    "with_relations",
]


@slotted
class ScalarType:
    dtype: np.dtype
    weak: bool | None
    bounds: tuple[int, int] | None = None
    below: between.Below = None
    relations: Relations = NONE


@slotted
class ViewType:
    """``sizes``: those that are known when the kernel starts, None for others. ``dense``: the last stride is one element.
    ``owned``: it may be in a buffer of the loop's own. ``rows``: see ArrayView."""

    dtype: np.dtype
    sizes: tuple[Size | None, ...]
    origins: frozenset
    dense: bool
    owned: bool
    whole: int | None
    turn: frozenset[tuple[int, int]]
    rows: bool = False

    @property
    def ndim(self) -> int:
        return len(self.sizes)


@slotted
class TextType:
    of: ViewType


@slotted
class TupleType:
    items: tuple[Any, ...]
    listed: bool = False


@slotted
class ContainerType:
    """``sites``: where it may be made, see containers/sites.py. ``method``: that of its methods which is on the stack. ``view``: see Container."""

    sites: frozenset
    kind: str
    method: str | None = None
    view: str = ""


@slotted
class PerhapsType:
    """A number, or no value yet: which of both, a slot of the variable's tells."""

    of: ScalarType


class _Conflict:
    """Different on different paths: reading it declines the region."""

    def __repr__(self):
        return "conflict"


CONFLICT = _Conflict()


def type_of(value):
    """The type under which a value is kept where paths join."""
    if isinstance(value, Scalar):
        bounds = value.bounds if value.dtype in (np.int64, np.float64) else None
        return ScalarType(value.dtype, value.weak, bounds, value.below, value.relations)
    if isinstance(value, ArrayView):
        return ViewType(
            value.dtype,
            tuple(n if isinstance(n, int | ParameterOperand) else None for n in value.sizes),
            value.origins,
            value.ndim > 0 and value.strides[-1] == value.dtype.itemsize,
            value.owner is not None,
            value.whole,
            value.turn,
            value.rows,
        )
    if isinstance(value, Tuple):
        if any(isinstance(item, ArrayView) and item.owner is not None for item in value.items):
            raise Declined("a tuple of arrays that are made in the loop")
        return TupleType(tuple(map(type_of, value.items)), value.listed)
    if isinstance(value, Text):
        return TextType(type_of(value.view))
    if isinstance(value, Container):
        return ContainerType(value.sites, value.kind, None, value.view)
    if isinstance(value, Method) and isinstance(value.owner, Container):
        return ContainerType(value.owner.sites, value.owner.kind, value.name)
    if isinstance(value, Method) and isinstance(value.owner, Stream):
        return value
    if isinstance(value, (Element, Iterator, Known, LocalFunction, Null, Stream)):
        return value
    raise Declined(f"a {type(value).__name__.lower()} is kept in a variable")


def join(a, b, thresholds: tuple[int, ...] = ()):
    """The type that holds ``a``, which was known before, and ``b``; CONFLICT when there is none. ``thresholds``: see bounds.py.
    Python's and NumPy's number meet in a number of NumPy's dtype of which it isn't
    known which it is, Python's int and float likewise in float; a value that isn't exact there is an error of the kernel."""
    if a == b:
        return a
    if isinstance(a, PerhapsType) or isinstance(b, PerhapsType):
        a, b = (t.of if isinstance(t, PerhapsType) else t for t in (a, b))
        of = join(a, b, thresholds)
        return PerhapsType(of) if isinstance(of, ScalarType) else CONFLICT
    if isinstance(a, ScalarType) and isinstance(b, ScalarType):
        weak = a.weak if a.weak is b.weak else None
        if a.dtype == b.dtype:
            bounds = a.bounds if a.bounds == b.bounds else None
            if a.dtype == np.int64:
                bounds = between.widened(a.bounds, b.bounds, thresholds)
            return ScalarType(a.dtype, weak, bounds, _below(a, b), both(a.relations, b.relations))
        for python, other in ((a, b), (b, a)):
            holds = {"i": "iufc", "f": "f", "c": "c"}.get(python.dtype.kind, "")
            if other.dtype.kind == "c" and python.dtype.kind == "i" and not (python.bounds and python.bounds[0] >= 0):
                continue  # sums and products of others have other zeros as complex numbers
            if (
                python.weak is True
                and other.dtype.kind in holds
                and (other.weak is not True or other.dtype.kind in "fc")
            ):
                return ScalarType(other.dtype, None)
        return CONFLICT
    if isinstance(a, ViewType) and isinstance(b, ViewType) and (a.dtype, a.ndim) == (b.dtype, b.ndim):
        return ViewType(
            a.dtype,
            tuple(n if n == m else None for n, m in zip(a.sizes, b.sizes)),
            a.origins | b.origins,
            a.dense and b.dense,
            a.owned or b.owned,
            a.whole if a.whole == b.whole else None,
            a.turn & b.turn,
            a.rows and b.rows,
        )
    if isinstance(a, TupleType) and isinstance(b, TupleType) and (len(a.items), a.listed) == (len(b.items), b.listed):
        return TupleType(tuple(join(x, y, thresholds) for x, y in zip(a.items, b.items)), a.listed)
    if (
        isinstance(a, ContainerType)
        and isinstance(b, ContainerType)
        and (a.kind, a.method, a.view) == (b.kind, b.method, b.view)
    ):
        return ContainerType(a.sites | b.sites, a.kind, a.method, a.view)
    if isinstance(a, TextType) and isinstance(b, TextType):
        of = join(a.of, b.of, thresholds)
        return TextType(of) if isinstance(of, ViewType) else CONFLICT
    if isinstance(a, Element) and isinstance(b, Element):
        it = join(a.of, b.of, thresholds)
        return it if it is CONFLICT else Element(it)
    if isinstance(a, Iterator) and isinstance(b, Iterator):
        if replace(a, bounds=b.bounds, below=b.below, relations=b.relations) == b:
            bounds = between.widened(a.bounds, b.bounds, thresholds)
            return replace(a, bounds=bounds, below=_below(a, b), relations=both(a.relations, b.relations))
    return CONFLICT


def _below(a, b) -> between.Below:
    """What held before, where it still does: a bound that moves from turn to turn is none."""
    return a.below if between.either_below(a.below, b.below) == a.below else None


def with_relations(t, change: Callable[[Relations], Relations]):
    """The type with other relations to variables."""
    if isinstance(t, ScalarType | Iterator):
        return replace(t, relations=change(t.relations)) if t.relations else t
    if isinstance(t, PerhapsType | Element):
        return replace(t, of=with_relations(t.of, change))
    if isinstance(t, TupleType):
        return replace(t, items=tuple(with_relations(item, change) for item in t.items))
    return t


def unrelated(t):
    """The type without relations to variables."""
    return with_relations(t, lambda relations: NONE)


@slotted(frozen=False)
class State:
    """Types where control enters a block."""

    locals: dict[str, Any]
    stack: tuple[Any, ...] = ()

    def joined(self, other: State, thresholds: tuple[int, ...], perhaps: frozenset[str] = frozenset()) -> State:
        """``perhaps``: variables that may be read later, and have no value where they have no type."""
        if len(self.stack) != len(other.stack):
            raise Declined("paths meet with different stacks")
        names = self.locals.keys() & other.locals.keys()
        types = {n: join(self.locals[n], other.locals[n], thresholds) for n in names}
        for n in perhaps - names:
            t = self.locals.get(n) or other.locals.get(n)
            if isinstance(t, ScalarType | PerhapsType):
                types[n] = t if isinstance(t, PerhapsType) else PerhapsType(t)
        return State(types, tuple(join(x, y, thresholds) for x, y in zip(self.stack, other.stack)))
