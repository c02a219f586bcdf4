"""Where programs find a class: PyTorch's path, for a class whose statement stands in a module of another name or of a finer subject.

Pickles, reprs and documents name a class by ``__module__``. It is the path that programs import the class from, as in PyTorch
(``flambeau.optim.lr_scheduler.CyclicLR``), and importing it from there gives the very class: tests/names holds it. Where the statement
stands is kept beside it: :func:`defined_in`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["NamedConstant", "defined_in", "public_in"]

_Class = TypeVar("_Class", bound=type)

# By id: a metaclass may have a hash of its own, and classes of the library stay.
_DEFINED: dict[int, tuple[str, str]] = {}


def public_in(module: str, name: str | None = None) -> Callable[[_Class], _Class]:
    """Class decorator: programs find the class in ``flambeau.<module>`` (in ``flambeau`` for ""), under ``name`` where its own is another."""

    def placed(cls: _Class) -> _Class:
        _DEFINED[id(cls)] = (cls.__module__, cls.__qualname__)
        cls.__module__ = f"flambeau.{module}" if module else "flambeau"
        if name is not None:
            cls.__name__ = cls.__qualname__ = name
        return cls

    return placed


def defined_in(cls: type) -> tuple[str, str]:
    """(module, qualified name) of the statement that defines a class."""
    return _DEFINED.get(id(cls)) or (cls.__module__, cls.__qualname__)


class NamedConstant:
    """A constant that programs find under a name in ``torch``: its repr is that name, copies and pickles are the constant itself."""

    def __init__(self, name: str):
        self._name = name

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name
