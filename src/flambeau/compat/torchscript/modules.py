"""What a program gets of an archive: modules whose methods are the archive's, and objects of its other classes."""

from __future__ import annotations

import copy
import functools
import keyword
from typing import TYPE_CHECKING, Any

from ...base.public import public_in
from ...modules.module import Module
from ..script_classes import LateGraph, ScriptModule
from . import calls

if TYPE_CHECKING:
    from ..script_graphs import Graph

__all__ = ["ArchivedModule", "ArchivedObject", "add_method", "subclass"]

_SHOWN_DUNDERS = frozenset(
    "__len__ __contains__ __getitem__ __iter__ __next__ __enter__ __exit__ __str__ __call__ __eq__ __hash__".split()
)


class ArchivedObject:
    """An object of a class of the archive that is no module."""

    _archived: Any = None  # the declared.Class


@public_in("jit", "RecursiveScriptModule")
class ArchivedModule(ScriptModule):
    """A module of a TorchScript archive: parameters, buffers, submodules and attributes are those of the file, methods are compiled from its code."""

    _archived: Any = None  # the declared.Class
    _program: Any = None

    @property
    def original_name(self) -> str:
        """The name of the class in the archive."""
        return self._archived.name

    @property
    def code(self) -> str:
        """The archive's text of ``forward``."""
        return self._method("forward").text

    @property
    def inlined_code(self) -> str:
        """The text of ``forward``; calls of submodules stand in it as calls."""
        return self.code

    @property
    def graph(self) -> Graph:
        """The graph of ``forward``, of the archive's code."""
        return _graph(self._program, self._method("forward"), False)

    @property
    def inlined_graph(self) -> Graph:
        """The graph of ``forward`` with what the methods and functions that it calls do in the place of the calls."""
        return _graph(self._program, self._method("forward"), True)

    def _method(self, name: str):
        found = self._archived.methods.get(name)
        if found is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return found

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    def _get_name(self) -> str:
        return "RecursiveScriptModule"

    def save(self, f, _extra_files=None) -> None:
        """``torch.jit.save``."""
        from . import writing

        writing.save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files=None) -> bytes:
        """The archive as bytes."""
        import io

        buffer = io.BytesIO()
        self.save(buffer, _extra_files)
        return buffer.getvalue()

    def __reduce_ex__(self, protocol):
        raise RuntimeError(
            f"Tried to serialize object {self._archived.qualified} which does not have a __getstate__ method defined! Modules of TorchScript are "
            "saved with torch.jit.save"
        )

    def __copy__(self):
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        for name in ("_parameters", "_buffers", "_modules"):
            made.__dict__[name] = self.__dict__[name].copy()
        return made

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    def copy(self):
        """A copy that shares no tensor."""
        return copy.deepcopy(self)


def _graph(program, method, inline: bool) -> Graph:
    from ..script_graphs.archived import of_method

    return of_method(method, program, inline)


def subclass(cls) -> type:
    """The Python class of a module class of the archive, without methods yet."""
    names = {"_archived": cls, "__module__": "flambeau.jit"}
    names |= {name: value for name, value in cls.values.items() if not hasattr(Module, name) and name.isidentifier()}
    made = type("RecursiveScriptModule", (ArchivedModule,), names)
    made.__qualname__ = "RecursiveScriptModule"
    return made


def _is_shown(cls: type, name: str) -> bool:
    """Whether programs see the method by its name: nothing of Module's is replaced but ``forward``."""
    if name.startswith("__") and name.endswith("__"):
        return name in _SHOWN_DUNDERS
    return not keyword.iskeyword(name) and (
        name == "forward" or not hasattr(Module, name) and not hasattr(ArchivedModule, name)
    )


def add_method(program, method) -> None:
    """Give the Python class a compiled method: itself, and the one that programs call."""
    cls = method.owner.python
    setattr(cls, program.raw(method.name), method.python)
    if issubclass(cls, Module):
        cls._program = program
        if _is_shown(cls, method.name):
            made = calls.public(program, method)
            made.code, made.schema, made.name = method.text, calls.declaration(method), method.name
            graphs = (LateGraph(functools.partial(_graph, program, method, inline)) for inline in (False, True))
            made.graph, made.inlined_graph = graphs
            setattr(cls, method.name, made)
    elif method.name in _SHOWN_DUNDERS or not method.name.startswith("__"):
        setattr(cls, method.name, method.python)


def new(cls):
    """An object of a class of the archive, without attributes."""
    made = cls.python.__new__(cls.python)
    if isinstance(made, Module):
        Module.__init__(made)
    return made


def fill(cls, made, state: dict) -> None:
    """Attributes of a new object, by what its class says they are."""
    if not isinstance(made, Module):
        made.__dict__.update(state)
        return
    parameters, buffers = (cls.source.lists.get(n, ()) for n in ("__parameters__", "__buffers__"))
    for name, value in state.items():
        if name in parameters:
            made._parameters[name] = value
        elif name in buffers:
            made._buffers[name] = value
        elif isinstance(value, Module):
            made._modules[name] = value
        else:
            made.__dict__[name] = value
