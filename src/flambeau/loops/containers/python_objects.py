"""The objects of Python that containers of a kernel become.

The kernel calls :func:`made` with the words of a container, and has the number of the object as a result; :func:`take` gives the object to whoever
has the number.
"""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from ..emitter import BOOL
from ..values import CHARACTER, TABLES
from . import array_items
from .descriptions import ArrayDescription, ContainerDescription, Description, TupleDescription, parsed_call
from .items import Word

__all__ = ["made", "take"]


_TAKEN: dict[int, Any] = {}
_NUMBERS = iter(range(1, 1 << 62))
KEPT = 1000  # objects that nobody has asked for (a call that was made again plainly)


def made(call: str, arrays_: tuple[np.ndarray, ...]) -> int:
    """Make the object that a kernel tells of; its number goes into the last array."""
    what = parsed_call(call)
    table, out = arrays_
    it: Any = np.array(table) if what.kind == "array" else _container(table, what, {})
    n = next(_NUMBERS)
    _TAKEN[n] = it
    while len(_TAKEN) > KEPT:
        _TAKEN.pop(next(iter(_TAKEN)), None)
    out[0] = n
    return 0


def _container(table: np.ndarray, what: ContainerDescription, nested: dict[int, Any]) -> Any:
    """``nested``: the objects that are made of containers within, by their addresses."""
    keys: list = []
    at = 0
    if what.kind in TABLES:
        table = table[table[:, -1] != 0]
        keys, at = _column(table, what.key, 0, nested)
    if what.kind == "set":
        return set(keys)
    values, _ = _column(table, what.value, at, nested)
    if what.kind == "dict":
        return dict(zip(keys, values))
    return collections.deque(values) if what.kind == "deque" else values


def _nested(p: int, what: ContainerDescription, nested: dict[int, Any]) -> Any:
    """The object that is made of the container at this address."""
    if p not in nested:
        words = np.array(array_items.Memory(p, (Word.WIDTH + 1,), (8,), "<i8")).tolist()
        items, used, width = words[Word.ITEMS], words[Word.USED], words[Word.WIDTH]
        memory = array_items.Memory(items, (used, width), (8 * width, 8), "<i8")
        table = np.array(memory) if used else np.zeros((0, width), np.int64)
        nested[p] = _container(table, what, nested)
    return nested[p]


def _column(table: np.ndarray, what: Description | None, at: int, nested: dict[int, Any]) -> tuple[list, int]:
    """The objects of some words of each entry, and the number of the word behind them."""
    if what is None:
        return [], at + 1
    if isinstance(what, ArrayDescription):
        return array_items.made(table, what.dtype, what.ndim, at)
    if isinstance(what, TupleDescription):
        columns = []
        for part in what.items:
            column, at = _column(table, part, at, nested)
            columns.append(column)
        return list(zip(*columns)), at
    if isinstance(what, ContainerDescription):
        return [_nested(p, what, nested) for p in table[:, at].tolist()], at + 1
    words = np.ascontiguousarray(table[:, at])
    if what.dtype == CHARACTER:
        return list(map(chr, words.tolist())), at + 1
    numbers: np.ndarray = words != 0 if what.dtype == BOOL else words.view(what.dtype)
    return (numbers.tolist() if what.weak else list(numbers)), at + 1


def take(number) -> Any:
    """The object with this number (a tensor), which is asked for once."""
    return _TAKEN.pop(int(number.item()))
