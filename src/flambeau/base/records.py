"""Small records: classes whose annotated names are slots, set by ``__init__``.

    @slotted
    class Argument:
        name: str
        optional: bool = False

What `dataclasses.dataclass(frozen=True, slots=True)` makes, at a quarter of its time: every import of flambeau makes some thirty of them.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, dataclass_transform

__all__ = ["replace", "slotted"]


@dataclass_transform(frozen_default=True)
def slotted(cls=None, *, frozen: bool = True, eq: bool = True) -> Any:
    """The class anew with slots for its annotated names, in order parameters of ``__init__``. Immutable when ``frozen`` (AttributeError), compared
    and hashed by its fields when ``eq`` (not hashable when it isn't frozen). Methods that the class writes itself are kept. Bases
    may have methods, no fields."""
    if cls is None:
        return lambda cls: slotted(cls, frozen=frozen, eq=eq)
    names = tuple(cls.__annotations__)
    body = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    defaults = {n: body.pop(n) for n in names if n in body}
    made = type(cls.__name__, cls.__bases__, {"__slots__": names, "__match_args__": names, **body})
    scope = {f"set_{n}": vars(made)[n].__set__ for n in names} | {f"default_{n}": v for n, v in defaults.items()}
    parameters = ", ".join(f"{n}=default_{n}" if n in defaults else n for n in names)
    text = f"def __init__(self, {parameters}):\n" + "".join(f"    set_{n}(self, {n})\n" for n in names)
    exec(text, scope)
    values = attrgetter(*names) if len(names) > 1 else lambda self, get=attrgetter(names[0]): (get(self),)
    methods = {
        "__init__": scope["__init__"],
        "__repr__": lambda self: f"{made.__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})",
        "__reduce__": lambda self: (made, values(self)),
    }
    if eq:
        methods["__eq__"] = lambda self, other: values(self) == values(other) if type(other) is made else NotImplemented
        methods["__hash__"] = (lambda self: hash(values(self))) if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
    for name, method in methods.items():
        if name not in body:
            if method is not None:
                method.__name__, method.__qualname__ = name, f"{made.__qualname__}.{name}"
            setattr(made, name, method)
    return made


def _refuse(self, name, value=None):
    raise AttributeError(f"{type(self).__name__} is immutable: cannot change its field '{name}'")


def replace(old: Any, **changes: Any) -> Any:
    """The record (or frozen dataclass) with some fields changed. TypeError for a name that is no field."""
    return type(old)(**{n: getattr(old, n) for n in old.__match_args__} | changes)
