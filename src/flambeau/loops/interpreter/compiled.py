"""A loop as a kernel, and what its caller has to know of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...base.records import slotted
from ..faults import Fault
from ..values import TupleType

__all__ = ["BoundArray", "Compiled", "Grown", "NumberResult"]


class NumberResult(NamedTuple):
    """A number that is a result: that of a variable, or of the item of a tuple, ``name.k``. ``weak``: whether it is Python's number, None where
    another result, an int8 that follows it, tells."""

    name: str
    dtype: np.dtype
    weak: bool | None


class BoundArray(NamedTuple):
    """A variable, and the number of an operand: the one that the variable is after the loop, or that tells the shape of what it is."""

    name: str
    operand: int


@slotted
class Grown:
    """What a loop hands to Python as an object of its own: a list, dict, set or array (``kind``). ``given``: it stands for one that the loop was
    given."""

    name: str
    kind: str
    given: bool


@slotted(frozen=False)
class Compiled:
    """``text``: the kernel. ``arrays``: tokens of the operands; ``written``: which of them are written; ``fresh``: variables whose arrays
    are results, and the operand that tells the shape; ``same``: variables that are an operand after the loop; ``tuples``: those that are tuples of
    results, with their types; ``grown``: lists, dicts and sets that it changed or made, their kinds,
    and whether they were there before: a number for each follows the other results; ``behind``: those that have
    other items before these; ``held``: variables that hold those of other variables
    before the loop; ``ints`` and ``floats``: numbers read; ``dtypes``: of the arrays; ``sizes``: of
    each array, sizes that it always has, -1 for others; ``results``: the numbers; ``errors``: by number - 1. ``drawn``: (operand that is a
    generator's table, whether its spare normal number matters). ``returned``: type of what the function returns, named RETURNED among the
    results, where the region ends with ``return``; else None. ``in_order``: why the turns run on one thread; None where they are spread over
    several. ``listed``: the kernel that lists what it does, for further derivatives, where ``text`` is one with a tape."""

    text: str
    arrays: list[Any]
    shapes: list[int]
    written: list[int]
    fresh: list[BoundArray]
    same: list[BoundArray]
    tuples: list[tuple[str, TupleType]]
    grown: list[Grown]
    behind: frozenset[str]
    held: list[tuple[str, str]]
    ints: list[Any]
    floats: list[Any]
    results: list[NumberResult]
    errors: list[Fault]
    exit: int | None
    returned: Any
    dtypes: list[np.dtype]
    sizes: list[list[int]]
    drawn: list[tuple[int, bool]]
    in_order: str | None
    listed: str
