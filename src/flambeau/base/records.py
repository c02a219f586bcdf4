"""Small records: classes whose annotated names are slots, set by ``__init__``.

    @slotted
    class Argument:
        name: str
        optional: bool = False

What `dataclasses.dataclass(frozen=True, slots=True)` makes, at a quarter of its time: an import of flambeau makes some thirty of them, the
first call of a compiled function some hundred and twenty more.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import attrgetter
from types import CodeType, FunctionType
from typing import Any, dataclass_transform

__all__ = ["astuple", "fields_of", "made_by", "replace", "slotted"]


class _MadeBy:
    """A default that is made anew for each record."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]):
        self.make = make


def made_by(make: Callable[[], Any]) -> Any:
    """The default of a field, made by a call for each record: ``items: list = made_by(list)``."""
    return _MadeBy(make)


@dataclass_transform(frozen_default=True, field_specifiers=(made_by,))
def slotted(cls=None, *, frozen: bool = True, eq: bool = True) -> Any:
    """The class anew with slots for its annotated names, in order parameters of ``__init__``. Immutable when ``frozen`` (AttributeError), compared
    and hashed by its fields when ``eq`` (not hashable when it isn't frozen). Methods that the class writes itself are kept. Fields of bases come
    first; an annotation ``ClassVar`` is no field."""
    if cls is None:
        return lambda cls: slotted(cls, frozen=frozen, eq=eq)
    own = tuple(n for n, kind in cls.__annotations__.items() if "ClassVar" not in str(kind).partition("[")[0])
    names = tuple(
        dict.fromkeys([n for b in reversed(cls.__mro__[1:]) for n in vars(b).get("__match_args__", ())] + [*own])
    )
    body = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    defaults = {n: v for b in cls.__mro__[:0:-1] for n, v in vars(b).get("__defaults__", {}).items()}
    defaults |= {n: body.pop(n) for n in own if n in body}
    made = type(
        cls.__name__, cls.__bases__, {"__slots__": own, "__match_args__": names, "__defaults__": defaults, **body}
    )
    for f in body.values():
        # ``super()`` finds the class in a cell of the method.
        if type(f) is FunctionType and "__class__" in f.__code__.co_freevars:
            f.__closure__[f.__code__.co_freevars.index("__class__")].cell_contents = made
    values = _values_of(names)
    methods: dict[str, Any] = {
        "__init__": _init_of(made, names, defaults),
        "__repr__": lambda self: f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})",
        "__reduce__": lambda self: (type(self), values(self)),
    }
    if eq:
        methods["__eq__"] = lambda self, other: (
            values(self) == values(other) if type(other) is type(self) else NotImplemented
        )
        methods["__hash__"] = (lambda self: hash(values(self))) if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
    for name, method in methods.items():
        if name not in body:
            if method is not None:
                method.__name__, method.__qualname__ = name, f"{made.__qualname__}.{name}"
            setattr(made, name, method)
    return made


def _init_of(made: type, names: tuple[str, ...], defaults: dict[str, Any]) -> FunctionType:
    """``__init__`` of a record."""
    given = [defaults[n] for n in names if n in defaults]
    for n in names[len(names) - len(given) :]:
        if n not in defaults:
            raise TypeError(f"the field {n!r} of {made.__name__} has no default, one before it has")
    scope: dict[str, Any] = {}
    for k, n in enumerate(names):
        scope[f"set_{k}"] = getattr(made, n).__set__
        if type(default := defaults.get(n)) is _MadeBy:
            scope[f"default_{k}"], scope[f"make_{k}"] = default, default.make
    code = _init_code(tuple(type(defaults.get(n)) is _MadeBy for n in names))
    return FunctionType(code.replace(co_varnames=("self", *names)), scope, "__init__", tuple(given))


@functools.cache
def _init_code(anew: tuple[bool, ...]) -> CodeType:
    """The code of ``__init__`` with a parameter for each field, numbered: compiled once for all records of as many. ``anew``: whether the
    field's default is made anew."""
    lines = [
        f"    set_{k}(self, make_{k}() if x{k} is default_{k} else x{k})\n" if made else f"    set_{k}(self, x{k})\n"
        for k, made in enumerate(anew)
    ]
    scope: dict[str, Any] = {}
    parameters = ", ".join(["self", *(f"x{k}" for k in range(len(anew)))])
    exec(f"def __init__({parameters}):\n" + ("".join(lines) or "    pass\n"), scope)
    return scope["__init__"].__code__


def fields_of(cls: Any) -> tuple[str, ...]:
    """The names of a record's fields, in order."""
    return cls.__match_args__


def _values_of(names: tuple[str, ...]) -> Callable[[Any], tuple]:
    """A function from a record to the tuple of its fields."""
    if not names:
        return lambda self: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda self: (get(self),)


def _refuse(self, name, value=None):
    raise AttributeError(f"{type(self).__name__} is immutable: cannot change its field '{name}'")


def replace(old: Any, **changes: Any) -> Any:
    """The record (or frozen dataclass) with some fields changed. TypeError for a name that is no field."""
    return type(old)(**{n: getattr(old, n) for n in old.__match_args__} | changes)


def astuple(x: Any) -> Any:
    """A record's fields as a tuple, those of records among them and in their tuples likewise; anything else as it is."""
    if type(x) is tuple:
        return tuple(map(astuple, x))
    if hasattr(type(x), "__match_args__"):
        return tuple(astuple(getattr(x, n)) for n in fields_of(type(x)))
    return x
