"""Which function of :mod:`.list_bodies` a builtin function or a method is, by its arguments."""

from __future__ import annotations

from collections.abc import Callable

from ..emitter import constant
from ..generators import COMPENSATED
from ..values import ArrayView, Call, Container, Expression, Known, Scalar, Slice, Tuple
from . import list_bodies as bodies
from .list_bodies import CODES, FREE_OF_ORDER

__all__ = ["CHANGING", "CODES", "FREE_OF_ORDER", "contains", "function", "joined", "method", "part"]

_OPTIONS = {(), ("reverse",), ("key",), ("key", "reverse")}
_SORTED = {
    (): bodies.sorted_,
    ("reverse",): bodies.sorted_down,
    ("key",): bodies.sorted_by,
    ("key", "reverse"): bodies.sorted_down_by,
}
_SORT = {
    (): bodies.sort,
    ("reverse",): bodies.sort_down,
    ("key",): bodies.sort_by,
    ("key", "reverse"): bodies.sort_down_by,
}
# A builtin and the names of its keyword arguments -> what it does of a list or row, and of a dict, a set or part of a dict.
_LEAST = {
    (min, ("key",)): (bodies.min_by, bodies.min_of_items_by),
    (max, ("key",)): (bodies.max_by, bodies.max_of_items_by),
    (min, ("default",)): (bodies.min_or, bodies.min_or),
    (max, ("default",)): (bodies.max_or, bodies.max_or),
    (min, ()): (None, bodies.min_of_items),
    (max, ()): (None, bodies.max_of_items),
    (sum, ()): (None, bodies.sum_of_items),
}
_METHODS: dict[tuple[str, int], Callable] = {
    ("reverse", 0): bodies.reverse, ("extend", 1): bodies.extend, ("insert", 2): bodies.insert, ("pop", 1): bodies.pop,
    ("index", 1): bodies.index, ("count", 1): bodies.count, ("remove", 1): bodies.remove, ("copy", 0): bodies.list_,
}  # fmt: skip
CHANGING = frozenset("append pop clear sort reverse extend insert remove".split())
"""Methods that change a list."""


def _is_list(a) -> bool:
    return isinstance(a, Container) and a.kind == "list"


def _is_row(a) -> bool:
    return isinstance(a, ArrayView | Expression) and a.ndim == 1


def _options(kwargs: dict) -> tuple[tuple[str, ...], list] | None:
    """(names, values) of a sort's keyword arguments, without those that say what is so anyway."""
    given = {name: v for name, v in kwargs.items() if v != Known(None)}
    down = given.pop("reverse", None)
    if down is not None and type(getattr(down, "const", None)) is not bool:
        return None
    names = (*sorted(given), *(("reverse",) if down is not None and down.const else ()))
    return (names, list(given.values())) if names in _OPTIONS else None


def function(f, args: list, kwargs: dict) -> Call | None:
    """What a builtin does of a list, dict or set, and of what; None for others."""
    if not args or not (isinstance(args[0], Container) or _is_row(args[0])):
        if f is list and _is_reversed(args) and not kwargs:
            return Call(bodies.reversed_, args[0].arguments)
        ends = _ends(f, args)
        return None if ends is None or kwargs else Call(bodies.list_of_range, ends)
    (a, *more) = args
    if f is sum and COMPENSATED and isinstance(a, Container):
        return None
    if f is sorted and not more:
        options = _options(kwargs)
        return options and Call(_SORTED[options[0]], (a, *options[1]))
    if f is list and not more and not kwargs:
        return Call(bodies.list_, (a,))
    if f is set and not more and not kwargs:
        return Call(bodies.set_, (a,))
    if f is sum and (len(more) == 1 or (kwargs.keys() == {"start"} and not more)):
        return Call(bodies.sum_from, (a, *more, *kwargs.values()))
    made = None if more else _LEAST.get((f, tuple(kwargs))) if f in (min, max, sum) else None
    made = made and made[not (_is_list(a) or _is_row(a))]
    return Call(made, (a, *kwargs.values())) if made else None


def _is_reversed(args: list) -> bool:
    return len(args) == 1 and isinstance(args[0], Call) and args[0].function is reversed


def _ends(f, args: list) -> tuple | None:
    """The ends and the step of a range of which a list is made."""
    if f is not list or len(args) != 1 or not isinstance(args[0], Call) or args[0].function is not range:
        return None
    ends = args[0].arguments
    return (constant(0), *ends, constant(1)) if len(ends) == 1 else (*ends, constant(1))[:3] if ends else None


def method(a: Container, name: str, args: list, kwargs: dict) -> Call | None:
    """What a method of a list does, and of what; None for those that are written otherwise."""
    if a.kind == "deque" and name in ("extend", "extendleft") and len(args) == 1 and not kwargs:
        ordered = _is_row(args[0]) or (isinstance(args[0], Container) and not args[0].is_table)
        return Call(bodies.extend if name == "extend" else bodies.extend_left, (a, *args)) if ordered else None
    if a.kind != "list":
        return None
    if name == "sort" and not args:
        options = _options(kwargs)
        return options and Call(_SORT[options[0]], (a, *options[1]))
    if kwargs or (name == "pop" and getattr(args[0] if args else None, "const", None) in (0, -1)):
        return None
    made = _METHODS.get((name, len(args)))
    if made is bodies.extend and not (_is_list(args[0]) or _is_row(args[0])):
        return None
    return made and Call(made, (a, *args))


def contains(c, key, lacks: bool) -> Call | None:
    """``key in c``, or ``key not in c``, of a list or deque."""
    listed = isinstance(c, Container) and not c.is_table
    return (
        Call(bodies.lacks if lacks else bodies.contains, (c, key))
        if listed and isinstance(key, Scalar | Tuple)
        else None
    )


def part(a, key) -> Call | None:
    """What a slice of a list is; None for other subscripts."""
    if not (_is_list(a) and isinstance(key, Slice)):
        return None
    start, stop, step = (None if k == Known(None) else k for k in (key.start, key.stop, key.step))
    if step is not None and getattr(step, "const", None) == -1 and start is None and stop is None:
        return Call(bodies.reversed_, (a,))
    if step is not None and getattr(step, "const", None) != 1:
        return None
    if start is None and stop is None:
        return Call(bodies.list_, (a,))
    return (
        Call(bodies.from_start, (a, start))
        if stop is None
        else Call(bodies.part, (a, constant(0) if start is None else start, stop))
    )


def joined(a, b) -> Call | None:
    return Call(bodies.joined, (a, b)) if _is_list(a) and _is_list(b) else None
