"""The classes of ``torch.jit`` that programs ask with ``isinstance``, and its error."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..base.public import public_in
from ..modules.module import Module

__all__ = ["Error", "LateGraph", "ScriptFunction", "ScriptModule"]


class Marks(type):
    """Instances are what ``torch.jit.script`` and ``torch.jit.trace`` gave, and objects of the class."""

    def __instancecheck__(cls, obj):
        marked = "_scripted_here" in getattr(obj, "__dict__", ())
        return type.__instancecheck__(cls, obj) or (marked and isinstance(obj, Module) is issubclass(cls, Module))


@public_in("jit")
class Error(Exception):
    """``torch.jit.Error``."""


@public_in("jit._script")
class ScriptModule(Module, metaclass=Marks):
    """The class of what ``torch.jit.script`` and ``torch.jit.trace`` make of modules, as ``isinstance`` says; as a base class an ordinary Module."""

    def __init__(self) -> None:
        super().__init__()


@public_in("jit")
class ScriptFunction(metaclass=Marks):
    """The class of scripted and traced functions, as ``isinstance`` says."""

    def __init__(self, name: str = "", graph=None):
        raise NotImplementedError(
            "torch.jit.ScriptFunction can't be made: torch.jit.script returns the Python function"
        )


class LateGraph:
    """A graph that is made when it is first asked for something: functions carry such as ``graph`` and ``inlined_graph``. ``make()`` gives it, or
    raises NotImplementedError for a construct whose graph isn't built."""

    def __init__(self, make: Callable):
        self._make = make

    @functools.cached_property
    def _made(self):
        return self._make()

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._made, name)

    def __repr__(self) -> str:
        return str(self._made)
