"""What a container may hold: numbers, characters, tuples of them, arrays, other containers. Each is a number of words of 8 bytes."""

from __future__ import annotations

from ...base.records import replace, slotted
from .. import text
from ..values import ArrayView, Container, Declined, Scalar, ScalarType, Tuple, TupleType
from . import array_items
from .array_items import ArrayItem

__all__ = ["NestedItem", "as_item", "merged", "plain_type", "sites_in", "words"]


@slotted
class NestedItem:
    """A list, deque, dict or set within another: one word, where it lies. ``sites``: see Container."""

    sites: frozenset
    kind: str


def words(t) -> int:
    if t is None or isinstance(t, NestedItem):
        return 1
    if isinstance(t, ArrayItem):
        return t.words
    return sum(map(words, t.items)) if isinstance(t, TupleType) else 1


def as_item(value):
    """What a container holds of a value: a string of one character is a character."""
    if isinstance(value, Tuple):
        return replace(value, items=tuple(map(as_item, value.items)))
    return text.character(value)


def plain_type(value):
    """The type of an item. Declined for what isn't one."""
    if isinstance(value, Tuple) and not value.listed and value.items:
        return TupleType(tuple(map(plain_type, value.items)))
    if isinstance(value, ArrayView) and value.owner is not None and value.ndim:
        return array_items.type_of(value)
    if isinstance(value, Container) and not value.view:
        if any(isinstance(key, str) for key in value.sites):
            raise Declined("a container that is made outside of the loop, within another one")
        return NestedItem(value.sites, value.kind)
    if (
        not isinstance(value, Scalar)
        or value.kind not in "biufU"
        or value.dtype.itemsize < 8
        and value.kind not in "bU"
    ):
        raise Declined("a container of other things than numbers")
    if value.weak is None:
        raise Declined("a container of numbers of which it isn't known whether they are Python's")
    return ScalarType(value.dtype, value.weak)


def sites_in(t) -> frozenset:
    if isinstance(t, TupleType):
        return frozenset().union(*map(sites_in, t.items))
    return t.sites if isinstance(t, NestedItem) else frozenset()


def merged(a, b):
    """The type of items of both types, which differ by where their memory is from; None for other types."""
    if isinstance(a, NestedItem) and isinstance(b, NestedItem) and a.kind == b.kind:
        return replace(a, sites=a.sites | b.sites)
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.items) == len(b.items):
        parts = [x if x == y else merged(x, y) for x, y in zip(a.items, b.items)]
        return None if None in parts else replace(a, items=tuple(parts))
    return array_items.merged(a, b)
