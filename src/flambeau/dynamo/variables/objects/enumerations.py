"""Enumerations that captured code makes by a call: ``Enum("Color", "RED GREEN")``.

The class is made while tracing, from constants, and its members are constants of the trace. Where it or one of them leaves, captured code makes the
class anew, as the call does each time, and reads its own members.
"""

from __future__ import annotations

import enum
import functools
from typing import Any

from ...exc import unsupported
from ..base import Variable
from ..containers.dicts import DictVariable
from ..containers.lists import ListVariable
from ..containers.sequences import TupleVariable
from .class_object import MAKERS, ClassVariable

__all__ = ["EnumerationVariable"]

BASES = [getattr(enum, n) for n in ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "ReprEnum") if hasattr(enum, n)]


class EnumerationVariable(ClassVariable):
    """``make()`` makes another one like ``value``."""

    mutable = True

    def __init__(self, value: type, make):
        super().__init__(value)
        self.make = make

    def reconstruct(self, cg):
        cg.call_function(self.make, None, 0)


def plain(v: Variable, tx) -> Any:
    """The constant that an argument is, or the list, tuple or dict of such."""
    v = tx.realize(v).unwrap()
    if isinstance(v, (ListVariable, TupleVariable)):
        return tuple(plain(x, tx) for x in v.elements)
    if isinstance(v, DictVariable):
        return {plain(k, tx): plain(x, tx) for k, x in v.pairs(tx)}
    if not v.can_constant():
        unsupported("construct", f"an enumeration of {v!r}", "Its members are no constants.")
    return v.as_constant()


def make(tx, base: type, args, kwargs) -> Variable | None:
    """The enumeration of a call with more than a value; None for other calls, which ask for a member."""
    if len(args) == 1 and not kwargs:
        return None
    if not tx.output.whole:
        unsupported(
            "construct", f"an enumeration by {base.__name__}()", "Behind a graph break it is another one at each call."
        )
    given = [plain(a, tx) for a in args]
    named = {"module": tx.globals.get("__name__")} | {k: plain(v, tx) for k, v in kwargs.items()}
    again = functools.partial(base, *given, **named)
    try:
        made = again()
    except (TypeError, ValueError, KeyError, AttributeError) as e:
        tx.raise_user(e)
    v = EnumerationVariable(made, again)
    tx.output.objects.enumerations[id(made)] = tx.output.objects.stood_for[id(made)] = v
    tx.output.objects.keep.append(made)
    return v


for _base in BASES:
    MAKERS[_base] = functools.partial(lambda base, tx, args, kwargs: make(tx, base, args, kwargs), _base)
