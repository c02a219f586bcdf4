"""The sites of containers: where each may be made, and what is known of its items there."""

from __future__ import annotations

import functools
from typing import Any

from ...base.records import slotted
from ..machine import InterpreterPart, Machine
from ..values import TABLES, Container, Declined, TupleType
from .array_items import ArrayItem
from .item_types import NestedItem, as_item, merged, plain_type, sites_in, words

__all__ = ["MOST", "MOST_ALIKE", "Changed", "Given", "Site", "Sites"]


MOST = 64  # items that a container may have before the loop
MOST_ALIKE = 1 << 16  # the same of a list of one number


class Changed(Exception):
    """More is known of a site: the region has to be run again."""


@slotted
class Given:
    """A container from outside: ``items`` of a list or set, pairs of a dict, as what the loop may read (see operands.py). ``by``: by how much the
    integers of a list grow, where that is the same for all, as in ``list(range(n))``. ``behind``: the items are any things, which the loop doesn't
    read: it only appends to them."""

    kind: str
    items: tuple
    by: int | None = None
    behind: bool = False


@slotted(frozen=False)
class Site:
    """``kind``: "list", "deque", "dict" or "set"; the types of what it holds: None where nothing is known yet. ``key`` is also that of a set's
    elements."""

    kind: str
    key: Any = None
    value: Any = None
    changes: bool = False
    """Whether the loop changes it."""
    removes: bool = False
    """Whether elements leave it: the order of a set's others is then Python's own."""
    behind: bool = False
    """Whether it has items before the loop that the kernel doesn't know: see Given."""

    @property
    def nkey(self) -> int:
        return words(self.key) if self.kind in TABLES else 0

    @property
    def nvalue(self) -> int:
        return words(self.value) if self.kind != "set" else 0

    @property
    def width(self) -> int:
        return self.nkey + self.nvalue + (self.kind in TABLES)


class Sites(InterpreterPart):
    """``sites``: by name of a variable from outside, or number of the instruction that makes one. ``rerunnable``: see Inputs."""

    def __init__(self, machine: Machine, rerunnable: bool):
        super().__init__(machine)
        self.sites: dict[Any, Site] = {}
        self.rerunnable = rerunnable

    def site(self, c: Container) -> Site:
        """What is known of a container, which may be one of several sites: the same of all of them."""
        members = [self.sites[key] for key in c.sites]
        for what in ("key", "value"):
            known = [t for m in members if (t := getattr(m, what)) is not None]
            both = functools.reduce(lambda a, b: a if a == b else a and merged(a, b), known) if known else None
            if known and both is None:
                raise Declined(f"a {c.kind} of things of different types")
            if any(getattr(m, what) != both for m in members):
                for m in members:
                    setattr(m, what, both)
                raise Changed
        return members[0]

    def origins(self, c) -> frozenset:
        """Where the memory of arrays may be from that a container holds."""

        def of(t) -> frozenset:
            if isinstance(t, TupleType):
                return frozenset().union(*map(of, t.items))
            return t.origins if isinstance(t, ArrayItem) else frozenset()

        return of(self.sites[next(iter(c.sites))].value)

    def reached(self, sites: frozenset) -> frozenset:
        """These sites, and those of what is held there."""
        found, todo = set(sites), list(sites)
        while todo:
            for key in sites_in(self.sites[todo.pop()].value) - found:
                found.add(key)
                todo.append(key)
        return frozenset(found)

    def within(self, t) -> frozenset:
        """The sites of all that an item holds."""
        return self.reached(sites_in(t))

    def changes(self, c: Container, removes: bool = False) -> None:
        for key in c.sites:
            self.sites[key].changes = True
            self.sites[key].removes |= removes

    def learn(self, c: Container, what: str, value) -> None:
        """An item of this type is one of the container's."""
        site, t = self.site(c), plain_type(as_item(value))
        known = getattr(site, what)
        if isinstance(t, NestedItem | TupleType) and c.sites & (self.within(t)):
            raise Declined(f"a {c.kind} that may hold itself")
        if known is None:
            setattr(site, what, t)
            raise Changed
        both = merged(known, t)
        if both is not None and both != known:
            setattr(site, what, both)
            raise Changed
        if both is None and known != t:
            raise Declined(f"a {c.kind} of things of different types")

    def require_whole(self, c: Container) -> None:
        """Declined for a list to which the loop only may append."""
        if any(self.sites[key].behind for key in c.sites):
            raise Declined("a list of other things than known numbers, to which the loop does more than append")
